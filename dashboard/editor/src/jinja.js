// Jinja templates in a code editor.
import { closePercentBrace, jinjaCompletionSource, jinjaLanguage } from "@codemirror/lang-jinja";
import { html } from "@codemirror/lang-html";

// What these values have at a path: the members of an object, or of the first item of a list.
function membersAt(values, path) {
  let value = values;
  for (const name of path) value = firstOf(value)?.[name];
  value = firstOf(value);
  return value !== null && typeof value === "object" ? Object.keys(value) : [];
}

const firstOf = (value) => (Array.isArray(value) ? value[0] : value);

// The list that a name stands for in a loop: `{% for item in order.items %}` before the cursor.
function pathOf(name, before) {
  const loops = [...before.matchAll(/\{%-?\s*for\s+(\w+)\s+in\s+([\w.]+)/g)].reverse();
  const loop = loops.find(([, item]) => item === name);
  return loop === undefined ? [name] : resolved(loop[2].split("."), before.slice(0, loop.index));
}

function resolved([first, ...rest], before) {
  return [...pathOf(first, before), ...rest];
}

// The language, which completes the names of `values()`, the sample values.
export function jinjaOf(values) {
  const completion = (label) => ({ label, type: "variable" });
  const source = (context) =>
    jinjaCompletionSource({
      variables: Object.keys(values()).map(completion),
      properties: (path, state, { pos }) => membersAt(values(), resolved(path, state.sliceDoc(0, pos))).map(completion),
    })(context);
  return [
    jinjaLanguage,
    html({ autoCloseTags: false }).support,
    jinjaLanguage.data.of({ autocomplete: source }),
    jinjaLanguage.data.of({ closeBrackets: { brackets: ["(", "[", "{", "'", '"'] } }),
    closePercentBrace,
  ];
}
