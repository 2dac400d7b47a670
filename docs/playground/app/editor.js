// The two editors: of the spec, and of the module, which is only read.
import { defaultHighlightStyle, HighlightStyle, StreamLanguage, syntaxHighlighting }
  from "@codemirror/language";
import { lintGutter, setDiagnostics } from "@codemirror/lint";
import { python } from "@codemirror/lang-python";
import { EditorState } from "@codemirror/state";
import { tags } from "@lezer/highlight";
import { basicSetup, EditorView } from "codemirror";
import grammar from "../../../grammar/dsf.tmLanguage.json";

const PATTERNS = grammar.patterns.map((p) => ({
  match: new RegExp(p.match, "y"), // its escapes are those of regular expressions without `u`
  // A pattern has a name, or names for the words that it captures.
  scopes: p.captures ? Object.values(p.captures).map((c) => c.name) : [p.name],
  captures: Boolean(p.captures),
}));

const STYLES = {
  comment: "comment",
  string: "string",
  storage: "keyword",
  keyword: "keyword",
  "keyword.operator": null,
  entity: "typeName",
  constant: "number",
};

/** Colours a spec by the patterns of its TextMate grammar, which names of scopes stand for. */
const dsf = StreamLanguage.define({
  name: "dsf",
  languageData: { commentTokens: { line: "#" } },
  startState: () => ({ next: null }),
  token(stream, state) {
    if (stream.eatSpace()) return null;
    if (state.next !== null) {
      const scope = state.next;
      state.next = null;
      if (stream.match(/[\p{L}_][\p{L}\p{N}_]*/u)) return style(scope);
    }
    for (const { match, scopes, captures } of PATTERNS) {
      match.lastIndex = stream.pos;
      const hit = match.exec(stream.string);
      if (hit !== null && hit[0] !== "" && startsWord(stream)) {
        stream.pos += hit[captures ? 1 : 0].length;
        state.next = scopes[1] ?? null;
        return style(scopes[0]);
      }
    }
    if (!stream.match(/[\p{L}_][\p{L}\p{N}_]*/u)) stream.next();
    return null;
  },
});

function startsWord(stream) {
  const before = stream.string.slice(0, stream.pos);
  return !/[\p{L}\p{N}_]$/u.test(before) || !/^[\p{L}\p{N}_]/u.test(stream.string.slice(stream.pos));
}

function style(scope) {
  const [kind, part] = (scope ?? "").split(".");
  const narrow = `${kind}.${part}`;
  return (narrow in STYLES ? STYLES[narrow] : STYLES[kind]) ?? null;
}

// Colours are variables of the page, so that they follow its theme.
const colours = HighlightStyle.define([
  { tag: tags.comment, color: "var(--code-comment)", fontStyle: "italic" },
  { tag: [tags.string, tags.docString], color: "var(--code-string)" },
  { tag: [tags.keyword, tags.modifier, tags.operatorKeyword], color: "var(--code-keyword)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--code-number)" },
  { tag: [tags.typeName, tags.className, tags.definition(tags.className)], color: "var(--code-type)" },
  { tag: [tags.function(tags.definition(tags.variableName))], color: "var(--code-type)" },
  { tag: tags.propertyName, color: "var(--code-type)" },
]);

const shared = [
  basicSetup,
  syntaxHighlighting(colours),
  syntaxHighlighting(defaultHighlightStyle, { fallback: true }),
];

/**
 * @param {HTMLElement} parent
 * @param {string} label its name for those who do not see it.
 * @param {(text: string) => void} changed is told of every new text.
 */
export function specEditor(parent, label, changed) {
  const view = new EditorView({
    parent,
    extensions: [
      ...shared,
      dsf,
      lintGutter(),
      EditorView.lineWrapping,
      EditorView.contentAttributes.of({ "aria-label": label, spellcheck: "false" }),
      EditorView.updateListener.of((u) => u.docChanged && changed(u.state.doc.toString())),
    ],
  });
  return {
    text: () => view.state.doc.toString(),
    /** Puts another text in place of the one there is; that can be undone. */
    replace(text) {
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } });
    },
    /** Underlines mistakes. @param {{from: number, to: number, severity: string, message: string}[]} marks */
    mark(marks) {
      view.dispatch(setDiagnostics(view.state, marks));
    },
    /** Puts the cursor to a place. */
    go(from, to) {
      view.dispatch({ selection: { anchor: from, head: to }, scrollIntoView: true });
      view.focus();
    },
    /** Offset of a line and a column, both from 1, columns in code points. */
    offset({ line, column }) {
      const at = view.state.doc.line(Math.min(line, view.state.doc.lines));
      const before = Array.from(at.text).slice(0, column - 1).join("");
      return at.from + before.length;
    },
  };
}

/**
 * @param {HTMLElement} parent
 * @param {string} label its name for those who do not see it.
 */
export function codeViewer(parent, label) {
  const extensions = [
    ...shared,
    python(),
    EditorState.readOnly.of(true),
    EditorView.contentAttributes.of({ "aria-label": label, "aria-readonly": "true" }),
  ];
  const view = new EditorView({ parent, extensions });
  return (text) => {
    if (view.state.doc.toString() !== text) view.setState(EditorState.create({ doc: text, extensions }));
  };
}
