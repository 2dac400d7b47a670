// Tabs as the ARIA practices describe them: arrow keys move, Home and End go to the ends.
import { find } from "./html.js";

/**
 * @param {HTMLElement} list with the role `tablist`.
 * @param {() => void} changed is told when the reader chose another.
 */
export function tabs(list, changed) {
  const all = [...list.querySelectorAll('[role="tab"]')];
  const names = all.map((tab) => tab.getAttribute("aria-controls"));
  let current = 0;

  function select(index) {
    current = index;
    all.forEach((tab, k) => {
      tab.setAttribute("aria-selected", String(k === index));
      tab.tabIndex = k === index ? 0 : -1;
      find(names[k]).hidden = k !== index;
    });
  }

  all.forEach((tab, k) => {
    tab.onclick = () => {
      select(k);
      changed();
    };
  });
  list.onkeydown = (event) => {
    const last = all.length - 1;
    const to = {
      ArrowRight: current === last ? 0 : current + 1,
      ArrowLeft: current === 0 ? last : current - 1,
      Home: 0,
      End: last,
    }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    select(to);
    all[to].focus();
    changed();
  };
  return {
    name: () => names[current],
    /** @param {string} name of the panel; another word shows the first. */
    show: (name) => select(Math.max(names.indexOf(name), 0)),
  };
}
