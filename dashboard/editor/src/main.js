import { codeEditor } from "./code.js";
import { showSample } from "./files.js";
import { requestPanel } from "./panel.js";
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
  const { version, language, samples } = frame.dataset;
  const [options, files] = ["options", "files"].map((name) => JSON.parse(frame.dataset[name]));
  const values = JSON.parse(samples);
  const html = document.getElementById("markup").value;
  const filling = language === "jinja" ? { data: samples } : { value: (name) => values[name] ?? "" };
  preview(frame, `preview ${version}`)({ html, options, files, ...filling });
  Object.entries(files).forEach(([path, file], index) => {
    showSample(document.getElementById("file-list").children[index].firstElementChild, path, file);
  });
}

for (const field of document.querySelectorAll("textarea[data-code]"))
  codeEditor(field, { language: field.dataset.code });
