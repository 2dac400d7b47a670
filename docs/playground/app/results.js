// The derived system and its spectrum.
import { drawing, element } from "./html.js";

const STALE = "The text in the editor has no system; this is that of the last one that had.";

/** Shows Λ, B, C, D and Φ; of a text without a system the last one stays, marked as such. */
export function showSystem(panel, system) {
  if (kept(panel, system)) return;
  const forms = system.forms.flatMap(({ title, mathml }) => [
    title ? element("p", { class: "quiet" }, `${title}:`) : null,
    element("div", { class: "formula", tabindex: "0", role: "group", "aria-label": "formulas" }, drawing(mathml)),
  ]);
  panel.replaceChildren(
    element("p", { class: "title" }, system.title),
    element("ul", { class: "lines" }, ...system.lines.map((line) => element("li", {}, line))),
    element("p", { class: "quiet" }, system.class),
    element("h3", {}, "Λ, B, C and D"),
    ...forms.filter((form) => form !== null),
    element("h3", {}, "Φ of y = Φ u"),
    element("pre", { class: "wide", tabindex: "0" }, system.phi),
  );
}

/** Shows the eigenvalues of every state, as formulas and as pictures. */
export function showSpectrum(panel, spectra) {
  if (kept(panel, spectra)) return;
  if (spectra.states.length === 0) {
    panel.replaceChildren(element("p", {}, "It has no state, so no Λ."));
    return;
  }
  const states = spectra.states.flatMap(({ state, bound, mathml }) => [
    element("h3", {}, "Λ of the state ", element("code", {}, state)),
    mathml === null ? null : element("div", { class: "formula", tabindex: "0", role: "group", "aria-label": "formula" }, drawing(mathml)),
    element("p", { class: "quiet" }, `|Λ| ${bound}`),
  ]);
  const sizes = Object.entries(spectra.sizes).map(([axis, size]) => `${axis} = ${size}`).join(", ");
  const pictures = spectra.pictures.length === 0
    ? [element("p", { class: "quiet" }, "No eigenvalues are computed here; the command line and its pages do with PyTorch.")]
    : [
        element("h3", {}, "At the start"),
        element("p", { class: "quiet" },
          `Eigenvalues with parameters drawn as the module draws them, ${spectra.tokens} standard normal tokens, ${sizes}.`),
        element("div", { class: "pictures" }, ...spectra.pictures.map(picture)),
      ];
  panel.replaceChildren(...states.filter((s) => s !== null), ...pictures);
}

function picture({ states, paper, svg, said }) {
  const where = paper ? ", in the paper’s gauge" : "";
  return element("figure", {}, drawing(svg), element("figcaption", {}, `${states.join(", ")}${where}: ${said}`));
}

/** Whether there is nothing new; what is shown is then marked as old. */
function kept(panel, value) {
  panel.querySelector(":scope > .warning")?.remove();
  panel.classList.toggle("stale", value === null);
  if (value === null) panel.prepend(element("p", { class: "warning" }, STALE));
  return value === null;
}
