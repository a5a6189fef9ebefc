// Placeholders of templates: their syntax, highlighting and completion.
import { Decoration, MatchDecorator, ViewPlugin } from "@codemirror/view";

// The same syntax as on the server: three braces take precedence over two, and names are compared in NFC.
const SPACE = "[ \\t\\r\\n]*";
const NAME = "([\\p{XID_Start}_][\\p{XID_Continue}.\\-]*)";
const pattern = () => new RegExp(`\\{\\{\\{${SPACE}${NAME}${SPACE}\\}\\}\\}|\\{\\{${SPACE}${NAME}${SPACE}\\}\\}`, "gu");
const ESCAPES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
const escaped = (text) => text.replace(/[&<>"']/g, (character) => ESCAPES[character]);

// The names in the order of the markup.
export function placeholderNames(markup) {
  const names = new Set();
  for (const match of markup.matchAll(pattern())) names.add((match[1] ?? match[2]).normalize());
  return [...names];
}

// The markup with the value of each placeholder, as the server fills it.
export function filled(markup, value) {
  return markup.replace(pattern(), (_, raw, name) =>
    raw === undefined ? escaped(value(name.normalize())) : value(raw.normalize()),
  );
}

// Only what is visible is matched.
const decorator = new MatchDecorator({ regexp: pattern(), decoration: Decoration.mark({ class: "tok-placeholder" }) });
export const placeholderHighlight = ViewPlugin.fromClass(
  class {
    constructor(view) {
      this.decorations = decorator.createDeco(view);
    }

    update(update) {
      this.decorations = decorator.updateDeco(update, this.decorations);
    }
  },
  { decorations: (plugin) => plugin.decorations },
);

// Completes a name after two or three braces with those that `names` gives.
export function placeholderCompletion(names) {
  return (context) => {
    const typed = context.matchBefore(/\{\{\{?[ \t]*[\p{XID_Continue}.\-]*/u);
    if (!typed) return null;
    const start = typed.from + typed.text.search(/[\p{XID_Continue}.\-]*$/u);
    const name = context.state.sliceDoc(start, typed.to);
    const braces = typed.text.startsWith("{{{") ? "}}}" : "}}";
    const apply = (view, { label }, from, to) => {
      const after = view.state.sliceDoc(to, to + 8);
      const missing = /^[ \t]*\}\}/.test(after) ? "" : ` ${braces}`;
      const space = view.state.sliceDoc(from - 1, from) === "{" ? " " : "";
      const insert = space + label + (missing || (/^[ \t]/.test(after) ? "" : " "));
      view.dispatch({ changes: { from, to, insert }, selection: { anchor: from + insert.length } });
    };
    return {
      from: start,
      options: names()
        .filter((label) => label !== name)
        .map((label) => ({ label, type: "variable", apply })),
    };
  };
}
