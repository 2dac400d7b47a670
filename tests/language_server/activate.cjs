// Loads the extension as VS Code does, with a `vscode` that agrees to all, and activates it:
//     node activate.cjs EXTENSION COMMAND     # the setting dsf.command is COMMAND
// It prints what the extension tells of, and ends when nothing is left to do: the server went away.
const Module = require("node:module");

const anything = () =>
  new Proxy(class {}, {
    get: (target, key) => {
      if (key === "prototype") return target.prototype;
      if (key === "then") return undefined; // it is no promise
      if (key === Symbol.toPrimitive) return () => "";
      if (key === Symbol.iterator) return () => [][Symbol.iterator]();
      return anything();
    },
    construct: () => anything(),
    apply: () => anything(),
  });
const with_ = (known) =>
  new Proxy({}, { get: (_, key) => (key in known ? known[key] : anything()) });

const [extension, command] = process.argv.slice(2);
const settings = { dsf: { command } };
const say = async (text) => console.log(text);
const vscode = with_({
  version: "1.90.0",
  window: with_({ showErrorMessage: say }),
  workspace: with_({
    workspaceFolders: undefined,
    textDocuments: [],
    getConfiguration: (section) => ({ get: (name) => settings[section]?.[name] }),
  }),
});
const load = Module._load;
Module._load = (name, ...rest) => (name === "vscode" ? vscode : load(name, ...rest));
require(extension).activate({ subscriptions: [] });
