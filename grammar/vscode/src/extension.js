// Starts `dsfc lsp` for the .dsf files of a window, and again when the command of it is changed.
const { window, workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

async function start() {
  const command = workspace.getConfiguration("dsf").get("command");
  client = new LanguageClient(
    "dsf",
    "dsfc",
    { command, args: ["lsp"] },
    {
      documentSelector: [{ language: "dsf" }],
      synchronize: { fileEvents: workspace.createFileSystemWatcher("**/*.dsf") },
    },
  );
  try {
    await client.start();
  } catch (error) {
    window.showErrorMessage(
      `dsf: \`${command} lsp\` did not start (${error?.message ?? error}). Install dsfc with its extra ` +
        "`lsp`, or name the whole path of dsfc in the setting dsf.command.",
    );
  }
}

async function stop() {
  const running = client;
  client = undefined;
  if (running?.isRunning()) {
    await running.stop();
  }
}

async function activate(context) {
  context.subscriptions.push(
    workspace.onDidChangeConfiguration(async (event) => {
      if (event.affectsConfiguration("dsf.command")) {
        await stop();
        await start();
      }
    }),
  );
  await start();
}

module.exports = { activate, deactivate: stop };
