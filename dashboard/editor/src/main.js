import { codeEditor } from "./code.js";
import { layoutOf } from "./layout.js";
import { requestPanel } from "./panel.js";
import { filled } from "./placeholders.js";
import { playgroundPage } from "./playground.js";
import { preview } from "./preview.js";
import { paneTabs } from "./tabs.js";
import { templatePage } from "./template.js";

paneTabs();
const form = document.getElementById("template-form");
const requestForm = document.getElementById("request-form");
if (form) {
  const editor = templatePage(form);
  const unsaved = "Save your changes first. Only the saved template is rendered.";
  if (requestForm) requestPanel(requestForm, { refusal: () => (editor.isDirty() ? unsaved : null) });
} else if (requestForm) {
  playgroundPage(requestForm);
}
// The preview of an earlier version.
const frame = document.querySelector("iframe[data-version]");
if (frame) {
  const [options, papers, samples] = ["options", "papers", "samples"].map((name) => JSON.parse(frame.dataset[name]));
  const fill = (text) => filled(text, (name) => samples[name] ?? "");
  const show = preview(frame, `preview ${frame.dataset.version}`, () => layoutOf(options, papers, fill));
  show(fill(document.getElementById("markup").value));
}

for (const field of document.querySelectorAll("textarea[data-code]"))
  codeEditor(field, { language: field.dataset.code });
