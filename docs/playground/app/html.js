// Elements of the page. Text of others, of specs and of the compiler, is never read as HTML.

/** @param {string} id @returns {HTMLElement} */
export function find(id) {
  return document.getElementById(id);
}

/**
 * @param {string} tag
 * @param {Object<string, string>} attributes
 * @param {...(Node|string|null)} children null is left out.
 * @returns {HTMLElement}
 */
export function element(tag, attributes = {}, ...children) {
  const out = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) out.setAttribute(name, value);
  out.append(...children.filter((child) => child !== null));
  return out;
}

const DRAWS = new Set(
  ("math mrow mi mo mn ms mtext mspace mstyle mpadded mphantom menclose mfrac msqrt mroot msub msup " +
    "msubsup munder mover munderover mmultiscripts mtable mtr mtd svg path circle text").split(" "),
);

/**
 * Parses markup of the compiler, MathML or SVG, and keeps elements and attributes that draw.
 * @param {string} markup one element.
 * @returns {Element}
 */
export function drawing(markup) {
  const parsed = new DOMParser().parseFromString(markup, "text/html").body.firstElementChild;
  for (const node of [parsed, ...parsed.querySelectorAll("*")]) {
    if (!DRAWS.has(node.localName)) node.remove();
    for (const { name } of [...node.attributes]) {
      if (/^on|href|src|style/i.test(name)) node.removeAttribute(name);
    }
  }
  return document.importNode(parsed, true);
}
