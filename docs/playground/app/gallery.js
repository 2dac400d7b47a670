// The shipped specs, by the class of their transition.
import { element, find } from "./html.js";

/**
 * @param {{name: string, title: string, kind: string, text: string}[]} specs
 * @param {(spec: {text: string}) => void} chosen
 */
export function gallery(specs, chosen) {
  const dialog = find("gallery");
  const groups = new Map();
  for (const spec of specs) groups.set(spec.kind, [...(groups.get(spec.kind) ?? []), spec]);
  const list = find("specs");
  for (const [kind, members] of [...groups].sort()) {
    const items = members.map((spec) => {
      const button = element("button", { type: "button" },
        element("b", {}, spec.name), element("span", {}, spec.title));
      button.onclick = () => {
        chosen(spec);
        dialog.close();
      };
      const item = element("li", {}, button);
      item.dataset.words = `${spec.name} ${spec.title} ${kind}`.toLowerCase();
      return item;
    });
    list.append(element("section", {}, element("h3", {}, kind.replaceAll("_", " ")), element("ul", {}, ...items)));
  }
  find("filter").oninput = ({ target }) => {
    const word = target.value.trim().toLowerCase();
    for (const section of list.children) {
      const items = [...section.querySelectorAll("li")];
      for (const item of items) item.hidden = !item.dataset.words.includes(word);
      section.hidden = items.every((item) => item.hidden);
    }
  };
  find("open-gallery").onclick = () => {
    dialog.showModal();
    find("filter").focus();
  };
  find("close-gallery").onclick = () => dialog.close();
}
