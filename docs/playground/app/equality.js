// "Equal to …?": `dsfc equiv` of the text and a shipped spec, in a worker that can be stopped.
import { Stopped } from "./engine.js";
import { element, find } from "./html.js";

const VERDICTS = {
  0: ["proved", "proved"],
  4: ["refuted", "refuted"],
  5: ["unknown", "unknown"],
  6: ["conditions", "proved under conditions"],
  7: ["conditions", "proved at some sizes alone"],
  1: ["refuted", "the spec has mistakes"],
  3: ["unknown", "a fault of dsfc"],
};
const FIRST = "s6";

const LABELLED = /^ {2}[a-z]+ +/;

/** A line of a verdict; where it is broken, what follows stands under what it says. */
function line(text) {
  const hang = LABELLED.exec(text)?.[0].length ?? text.search(/\S|$/) + 2;
  return element("p", { class: "line", style: `--hang: ${hang}ch` }, text);
}

/**
 * @param {Engine} engine of its own.
 * @param {{name: string, title: string, kind: string}[]} specs the shipped ones.
 * @param {() => string} text the spec in the editor.
 * @param {() => void} changed is told when the reader chose another.
 */
export function equality(engine, specs, text, changed) {
  const [other, status, verdict] = ["other", "compare-status", "verdict"].map(find);
  for (const { name, title } of specs) {
    other.append(element("option", { value: name }, title === name ? name : `${name}: ${title}`));
  }
  other.value = FIRST;
  other.onchange = changed;

  find("ask").onsubmit = async (event) => {
    event.preventDefault();
    const question = { text: text(), other: other.value, conditions: find("conditions").checked };
    const began = performance.now();
    const seconds = () => `${((performance.now() - began) / 1000).toFixed(0)} s`;
    let what = "Loading a compiler of its own";
    const clock = setInterval(() => (status.textContent = `${what}… ${seconds()}`), 1000);
    status.textContent = `${what}…`;
    running(true);
    verdict.replaceChildren();
    try {
      await engine.start();
      what = "Comparing";
      const { code, text: said } = await engine.ask("equiv", question);
      const [kind, word] = VERDICTS[code];
      verdict.replaceChildren(element("p", { class: `badge ${kind}` }, word),
        ...said.trimEnd().split("\n").map(line));
      status.textContent = `Answered after ${seconds()}.`;
    } catch (problem) {
      const stopped = problem instanceof Stopped;
      status.textContent = stopped ? `Stopped after ${seconds()}.` : "A fault of the compiler.";
      if (!stopped) verdict.replaceChildren(element("pre", {}, String(problem.message)));
    } finally {
      clearInterval(clock);
      running(false);
    }
  };
  find("stop-compare").onclick = () => engine.stop();

  function running(on) {
    find("compare").disabled = on;
    find("stop-compare").hidden = !on;
    verdict.setAttribute("aria-busy", String(on));
  }

  return {
    other: () => (other.value === FIRST ? "" : other.value),
    /** @param {?string} name a shipped spec; any other word chooses the first. */
    choose: (name) => (other.value = specs.some((s) => s.name === name) ? name : FIRST),
    /** Takes an answer away that is of another text than that in the editor. */
    forget() {
      if (verdict.childElementCount > 0) {
        verdict.replaceChildren();
        status.textContent = "The text has changed since; compare again.";
      }
    },
  };
}
