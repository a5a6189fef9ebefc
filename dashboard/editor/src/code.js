// A code editor in place of a text field. The field stays in the form, and gets the text when it is needed.
import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { css } from "@codemirror/lang-css";
import { html } from "@codemirror/lang-html";
import { json } from "@codemirror/lang-json";
import { bracketMatching, HighlightStyle, indentOnInput, syntaxHighlighting } from "@codemirror/language";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { setDiagnostics } from "@codemirror/lint";
import { Compartment, EditorState } from "@codemirror/state";
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  keymap,
  lineNumbers,
} from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { jinjaOf } from "./jinja.js";
import { placeholderCompletion, placeholderHighlight } from "./placeholders.js";

// Classes of the style sheet, which has the colours of both themes.
const highlight = HighlightStyle.define([
  { tag: [tags.tagName, tags.angleBracket, tags.documentMeta], class: "tok-tag" },
  { tag: [tags.attributeName, tags.propertyName], class: "tok-name" },
  { tag: [tags.attributeValue, tags.string], class: "tok-string" },
  { tag: [tags.keyword, tags.bool, tags.null, tags.number, tags.unit, tags.atom], class: "tok-keyword" },
  { tag: [tags.comment, tags.blockComment, tags.lineComment], class: "tok-comment" },
  { tag: tags.invalid, class: "tok-invalid" },
]);

const LANGUAGES = { html: () => html({ autoCloseTags: false }), json: () => json(), css: () => css() };

// Shows an editor with the text of `field`, and hides the field. `names` gives the placeholders that are completed, `values`
// the sample values of a template in Jinja.
export function codeEditor(field, { language = "html", onChange = () => {}, names = null, values = () => ({}) } = {}) {
  const label = document.querySelector(`label[for="${field.id}"]`);
  label.id ||= `${field.id}-label`;
  const attributes = { "aria-labelledby": label.id, "aria-multiline": "true", spellcheck: "false", tabindex: "0" };
  for (const name of ["aria-describedby", "aria-invalid"]) {
    if (field.hasAttribute(name)) attributes[name] = field.getAttribute(name);
  }
  // The same object each time: completions are told apart by their functions.
  const data = names === null ? [] : [{ autocomplete: placeholderCompletion(names) }];
  const placeholders = names === null ? [] : [placeholderHighlight, EditorState.languageData.of(() => data)];
  const jinja = jinjaOf(values);
  const extensionsOf = (name) => (name === "jinja" ? jinja : [LANGUAGES[name](), placeholders]);
  const current = new Compartment();
  const view = new EditorView({
    doc: field.value,
    extensions: [
      lineNumbers(),
      highlightActiveLineGutter(),
      highlightActiveLine(),
      history(),
      drawSelection(),
      indentOnInput(),
      bracketMatching(),
      closeBrackets(),
      autocompletion(),
      search({ top: true }),
      highlightSelectionMatches(),
      syntaxHighlighting(highlight),
      current.of(extensionsOf(language)),
      EditorState.readOnly.of(field.readOnly),
      EditorView.contentAttributes.of(attributes),
      EditorView.cspNonce.of(document.querySelector("meta[name=style-nonce]")?.content ?? ""),
      EditorView.updateListener.of((update) => {
        if (update.docChanged) onChange();
      }),
      keymap.of([
        ...closeBracketsKeymap,
        ...completionKeymap,
        ...searchKeymap,
        ...historyKeymap,
        indentWithTab,
        ...defaultKeymap,
      ]),
    ],
  });
  view.dom.id = `${field.id}-editor`;
  field.before(view.dom);
  field.hidden = true;
  label.addEventListener("click", () => view.focus());
  const text = () => view.state.doc.toString();
  return {
    view,
    get text() {
      return text();
    },
    set text(insert) {
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert } });
    },
    // Writes the text into the field, which the form sends.
    toField() {
      field.value = text();
    },
    set language(name) {
      view.dispatch({ effects: current.reconfigure(extensionsOf(name)) });
    },
    // Marks a line (from 1) with what is wrong in it; null marks none.
    showError(error) {
      const line = error && view.state.doc.line(Math.min(Math.max(error.line, 1), view.state.doc.lines));
      const marks = error ? [{ from: line.from, to: line.to, severity: "error", message: error.message }] : [];
      view.dispatch(setDiagnostics(view.state, marks));
    },
    focus: () => view.focus(),
  };
}
