// The page: what stands in the editor is asked of the compiler, and the answers are shown.
import * as address from "./address.js";
import { Engine, Stopped } from "./engine.js";
import { codeViewer, specEditor } from "./editor.js";
import { gallery } from "./gallery.js";
import { element, find } from "./html.js";
import { equality } from "./equality.js";
import { showMistakes } from "./mistakes.js";
import { showSpectrum, showSystem } from "./results.js";
import { tabs } from "./tabs.js";

const FIRST = "gla";
const PAUSE = 300; // milliseconds without a keystroke, after which a text is compiled
const PATIENCE = 8000; // milliseconds after which work on an older text is given up

const specs = (await (await fetch("specs.json")).json()).specs;
const engine = new Engine();
const code = codeViewer(find("code"), "The PyTorch module");
const editor = specEditor(find("editor"), "The spec", () => later());
const chosen = tabs(document.querySelector('[role="tablist"]'), remember);
const compared = equality(new Engine(), specs, () => editor.text(), remember);

let timer = 0;
let working = null; // when the work on the text in hand began
let wanted = false; // whether there is a newer one

find("stop").onclick = () => {
  wanted = false;
  engine.stop();
};
find("theme").onclick = () => {
  const dark = getComputedStyle(document.documentElement).colorScheme === "dark";
  document.documentElement.dataset.theme = dark ? "light" : "dark";
  try {
    localStorage.setItem("theme", document.documentElement.dataset.theme);
  } catch {
    // A browser that keeps nothing asks again next time.
  }
};
find("copy-link").onclick = async () => {
  await remember();
  await copy(find("copy-link"), location.href);
};
find("copy-module").onclick = () => copy(find("copy-module"), find("download").dataset.text);
gallery(specs, (spec) => editor.replace(spec.text));
addEventListener("hashchange", open);
await open();

/** Shows what the address says. */
async function open() {
  const said = await address.read(location.hash, specs);
  chosen.show(said.tab ?? "system");
  compared.choose(said.other);
  const text = said.text ?? (editor.text() || specs.find((s) => s.name === FIRST).text);
  if (text !== editor.text()) editor.replace(text);
  clearTimeout(timer);
  compile();
}

/** Writes what is shown into the address. */
async function remember() {
  const shown = { text: editor.text(), tab: chosen.name(), other: compared.other() };
  history.replaceState(null, "", await address.written(shown, specs));
}

function later() {
  compared.forget();
  clearTimeout(timer);
  timer = setTimeout(compile, PAUSE);
}

/** Compiles what stands in the editor; work on an older text ends at the next answer, or soon. */
async function compile() {
  void remember();
  wanted = true;
  if (working !== null) {
    if (performance.now() - working > PATIENCE) engine.stop();
    return;
  }
  while (wanted) {
    wanted = false;
    working = performance.now();
    await compiled(editor.text());
    working = null;
  }
}

/** Asks all of one text, and shows each answer as it comes. */
async function compiled(text) {
  const slow = setTimeout(() => (find("stop").hidden = false), 1500);
  busy(true);
  try {
    await engine.start();
    const start = performance.now();
    say("Compiling…");
    const system = await engine.ask("system", { text });
    showSystem(find("system"), system);
    if (wanted) return;
    const module = await engine.ask("module", { text });
    showModule(module);
    if (wanted) return;
    const seconds = (performance.now() - start) / 1000;
    const checked = await engine.ask("check", { text });
    const errors = showMistakes(find("mistakes"), checked, editor);
    say(told(errors, module, seconds));
    if (wanted) return;
    showSpectrum(find("spectrum"), await engine.ask("spectra", { text }));
  } catch (problem) {
    if (problem instanceof Stopped) {
      if (!wanted) say("Stopped; a change of the text starts again.");
    } else fault(problem);
  } finally {
    clearTimeout(slow);
    find("stop").hidden = true;
    busy(wanted);
  }
}

function told(errors, module, seconds) {
  if (errors > 0) return errors === 1 ? "1 mistake" : `${errors} mistakes`;
  return module === null ? "No module is written for it" : `Compiled in ${seconds.toFixed(1)} s`;
}

function showModule(module) {
  const panel = find("module");
  panel.classList.toggle("stale", module === null);
  find("download").hidden = find("copy-module").disabled = module === null;
  if (module === null) {
    find("module-said").textContent = "The text in the editor gives no module.";
    return;
  }
  const lines = module.text.split("\n").length - 1;
  find("module-said").textContent = `${module.file}: ${lines} lines; it needs torch alone.`;
  const link = find("download");
  URL.revokeObjectURL(link.href);
  link.href = URL.createObjectURL(new Blob([module.text], { type: "text/x-python" }));
  link.download = module.file;
  link.dataset.text = module.text;
  code(module.text);
}

function say(text) {
  find("status").textContent = text;
}

function busy(on) {
  document.documentElement.dataset.state = on ? "busy" : "done";
}

function fault(problem) {
  say("A fault of the compiler");
  const about = "This is a fault of dsfc, not of the spec. Please report it with the spec and this text:";
  find("mistakes").replaceChildren(
    element("p", { class: "warning" }, about),
    element("pre", {}, String(problem.message)),
  );
}

async function copy(button, text) {
  const before = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Not allowed";
  }
  setTimeout(() => (button.textContent = before), 1500);
}
