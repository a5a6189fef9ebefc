import { codeEditor } from "./code.js";
import { layoutOf } from "./layout.js";
import { requestPanel } from "./panel.js";
import { filled } from "./placeholders.js";
import { preview } from "./preview.js";
import { templatePage } from "./template.js";

const form = document.getElementById("template-form");
const requestForm = document.getElementById("request-form");
const editor = form === null ? null : templatePage(form);
if (requestForm) {
  const unsaved = "Save your changes first. Only the saved template is rendered.";
  requestPanel(requestForm, () => (editor?.isDirty() ? unsaved : null));
}
// The preview of an earlier version.
const frame = document.querySelector("iframe[data-version]");
if (frame) {
  const [options, papers] = [frame.dataset.options, frame.dataset.papers].map((json) => JSON.parse(json));
  const show = preview(frame, `preview ${frame.dataset.version}`, () => layoutOf(options, papers));
  const samples = JSON.parse(frame.dataset.samples);
  show(filled(document.getElementById("markup").value, (name) => samples[name] ?? ""));
}

for (const field of document.querySelectorAll("textarea[data-code]")) codeEditor(field, { language: field.dataset.code });
