// What `dsfc check` says: mistakes with place, code and hint, notes, and claims that are proved.
import { element } from "./html.js";

/**
 * @param {HTMLElement} parent
 * @param {object} checked the answer of the compiler.
 * @param {object} editor of the spec.
 * @returns {number} how many errors there are.
 */
export function showMistakes(parent, checked, editor) {
  const said = checked.diagnostics.map((d) => placed(d, editor));
  editor.mark(
    said.filter((d) => d.here).map(({ from, to, severity, message, code, hint }) => ({
      from,
      to,
      severity: severity === "error" ? "error" : "info",
      source: code,
      message: hint ? `${message}\n${hint}` : message,
    })),
  );
  const items = said.map((d) => mistake(d, editor));
  const claims = checked.mixers.flatMap((m) => m.claims).filter((c) => c.verdict === "proved");
  items.push(...claims.map(claim));
  for (const m of checked.mixers.filter((m) => m.why_not)) {
    items.push(element("li", {}, element("span", { class: "code" }, m.name), ` ${m.why_not}`));
  }
  const errors = said.filter((d) => d.severity === "error").length;
  const fine = errors === 0 ? element("p", { class: "fine" }, "No mistakes.") : null;
  parent.replaceChildren(...[fine, element("ol", {}, ...items)].filter(Boolean));
  return errors;
}

function placed(diagnostic, editor) {
  const { start, end, file } = diagnostic.span;
  const here = start.line > 0 && !file.startsWith("/lib/");
  const from = here ? editor.offset(start) : 0;
  return { ...diagnostic, here, line: start.line, from, to: here ? Math.max(from, editor.offset(end)) : 0 };
}

function mistake(d, editor) {
  const rows = [["expected", d.expected], ["found", d.found], ["help", d.hint ?? nearest(d)]];
  const details = rows.filter(([, text]) => text);
  const go = element("button", { type: "button", class: "go" }, `line ${d.line}`);
  go.onclick = () => editor.go(d.from, d.to);
  return element(
    "li",
    { class: d.severity },
    element("span", { class: "code" }, d.code),
    d.here ? go : null,
    element("div", {}, d.message),
    details.length === 0
      ? null
      : element("dl", {}, ...details.flatMap(([name, text]) =>
          [element("dt", {}, name), element("dd", {}, text)])),
  );
}

function nearest(d) {
  return d.nearest ? `did you mean ${d.nearest}?` : null;
}

function claim(c) {
  return element("li", { class: "claim" }, element("span", { class: "code" }, "proved"),
    element("div", {}, c.claim));
}
