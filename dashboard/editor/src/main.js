import { codeEditor } from "./code.js";
import { layoutOf } from "./layout.js";
import { ask, requestPanel } from "./panel.js";
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
  const key = `preview ${frame.dataset.version}`;
  const html = document.getElementById("markup").value;
  if (frame.dataset.language === "jinja") {
    let texts = {};
    const show = preview(frame, key, () => layoutOf({ ...options, ...texts }, papers));
    const form_token = document.querySelector("[name=form_token]").value;
    const entered = { ...options, html, language: "jinja", sampleData: frame.dataset.samples, form_token };
    ask("fill", new URLSearchParams(entered)).then((answer) => {
      texts = answer;
      show(answer.html ?? null);
    });
  } else {
    const fill = (text) => filled(text, (name) => samples[name] ?? "");
    const show = preview(frame, key, () => layoutOf(options, papers, fill));
    show(fill(html));
  }
}

for (const field of document.querySelectorAll("textarea[data-code]"))
  codeEditor(field, { language: field.dataset.code });
