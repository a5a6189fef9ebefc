// The page of a template: editor, sample values, live preview, draft, save.
import { codeEditor } from "./code.js";
import { areSameFiles, templateFiles } from "./files.js";
import { optionControls } from "./options.js";
import { ask, clearError, showStatus } from "./panel.js";
import { placeholderNames } from "./placeholders.js";
import { preview } from "./preview.js";
import { parsedSamples, sampleFields } from "./samples.js";
import { deleteDraft, getDraft, putDraft } from "./storage.js";

export function templatePage(form) {
  const element = (id) => document.getElementById(id);
  const samples = sampleFields(element("samples"), element("no-samples"));
  const names = () => [...new Set([...placeholderNames(editor.text), ...samples.names()])];
  const language = element("language");
  const isJinja = () => language.value === "jinja";
  const sampleData = codeEditor(element("sample-data"), { language: "json", onChange: changed });
  let values = {};
  const editor = codeEditor(element("html"), {
    language: isJinja() ? "jinja" : "html",
    onChange: changed,
    names,
    values: () => values,
  });
  language.addEventListener("change", () => {
    editor.language = isJinja() ? "jinja" : "html";
    editor.showError(null);
  });
  const options = optionControls(form, { onChange: changed });
  const files = templateFiles(changed);
  const template = form.dataset.template;

  const show = preview(element("preview"), `preview ${template}`);
  // Some options have placeholders too.
  function placeholders() {
    const values = options.values();
    const ofOptions = form.dataset.filled.split(" ").map((name) => values[name] ?? "");
    return placeholderNames(editor.text + ofOptions.join(""));
  }
  function refresh() {
    editor.toField();
    if (isJinja()) return refreshJinja();
    samples.show(placeholders());
    return show({ html: editor.text, options: options.values(), files: files.all(), value: samples.value });
  }

  async function refreshJinja() {
    try {
      values = JSON.parse(sampleData.text);
    } catch {
      // The text is being typed.
    }
    const page = { html: editor.text, options: options.values(), files: files.all() };
    const answer = await show({ ...page, data: sampleData.text });
    if (answer === null || !isJinja()) return;
    const { error, line, field } = answer;
    editor.showError(error && line && !field ? { line, message: error } : null);
    if (error === undefined) clearError();
    else showStatus(error, true);
  }

  // Options are checked as those of a request, whose rules they have.
  let last = 0;
  async function check() {
    last += 1;
    const number = last;
    const body = new URLSearchParams({
      ...options.values(),
      source: "html",
      html: "-",
      form_token: form.elements.form_token.value,
    });
    const { field, error } = await ask("request", body).catch(() => ({ error: "" }));
    if (number !== last || (error !== undefined && field === undefined)) return undefined;
    const control = form.elements[field];
    // What is being typed is not complete yet.
    if (error !== undefined && (control === document.activeElement || !control?.value)) return undefined;
    options.showProblem(field, error);
    if (error !== undefined) return showStatus(error, true);
    clearError();
    return element("options-error")?.remove();
  }

  // The larger the markup, the longer the browser needs to show it.
  let timer = 0;
  let isDirty = "unsaved" in form.dataset;
  function changed() {
    isDirty = true;
    clearTimeout(timer);
    timer = setTimeout(
      () => {
        refresh();
        check();
        keepDraft();
      },
      150 + editor.view.state.doc.length / 2_000,
    );
  }
  form.addEventListener("input", changed);
  form.addEventListener("change", changed);
  addEventListener("beforeunload", (event) => {
    if (isDirty) event.preventDefault();
  });
  addEventListener("pagehide", () => {
    if (isDirty) keepDraft();
  });
  addEventListener("keydown", (event) => {
    if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "s") return;
    event.preventDefault();
    form.requestSubmit();
  });

  // The server would refuse more, after the whole upload.
  const sizeError = element("size-error");
  form.addEventListener("submit", (event) => {
    const size = new TextEncoder().encode(editor.text).length;
    const maximum = Number(form.dataset.maxBytes);
    sizeError.hidden = size <= maximum;
    if (size > maximum) {
      event.preventDefault();
      const [found, allowed] = [size, maximum].map((bytes) => bytes.toLocaleString("en"));
      sizeError.textContent = `The HTML has ${found} bytes. At most ${allowed} are allowed.`;
      editor.focus();
      return;
    }
    if (files.isReading()) {
      event.preventDefault();
      showStatus("A file is still being read. Save again in a moment.", true);
      return;
    }
    editor.toField();
    sampleData.toField();
    options.toFields();
    clearTimeout(timer);
    isDirty = false;
    keepDraft();
  });

  const revision = element("revision");
  const key = [form.dataset.user, template];
  const draftNow = () => ({
    name: element("name").value,
    html: editor.text,
    options: options.values(),
    samples: samples.values(),
    language: language.value,
    sampleData: sampleData.text,
    files: files.text(),
    revision: revision?.value ?? "",
    at: Date.now(),
  });
  function keepDraft() {
    putDraft(key, draftNow());
  }

  async function offerDraft() {
    if (location.search.includes("done=template-created")) await deleteDraft([form.dataset.user, "new"]);
    // The page shows what was entered last.
    if ("unsaved" in form.dataset) return keepDraft();
    const draft = await getDraft(key);
    if (!draft) return undefined;
    const now = draftNow();
    const hasAll = (kept, values) => Object.entries(values).every(([name, value]) => (kept[name] ?? "") === value);
    const isSame =
      draft.name === now.name &&
      draft.html === now.html &&
      draft.language === now.language &&
      (!isJinja() || draft.sampleData === now.sampleData) &&
      areSameFiles(draft.files, now.files) &&
      hasAll(draft.options, now.options) &&
      hasAll(draft.samples, now.samples);
    if (isSame) return deleteDraft(key);
    const bar = element("draft");
    const older = draft.revision === now.revision ? "" : ", made from an older version of the template";
    element("draft-text").textContent =
      `This browser has an unsaved draft of ${new Date(draft.at).toLocaleString("sv", { dateStyle: "short", timeStyle: "short" })}${older}.`;
    element("draft-restore").addEventListener("click", () => {
      element("name").value = draft.name;
      language.value = draft.language;
      language.dispatchEvent(new Event("change"));
      sampleData.text = draft.sampleData;
      files.set(draft.files);
      editor.text = draft.html;
      options.set(draft.options);
      samples.set(draft.samples);
      // A save then tells of what was saved since.
      if (revision && draft.revision) revision.value = draft.revision;
      bar.hidden = true;
      changed();
      refresh();
      editor.focus();
    });
    element("draft-discard").addEventListener("click", () => {
      bar.hidden = true;
      deleteDraft(key);
    });
    bar.hidden = false;
    return undefined;
  }

  // Sample values as JSON, in place of the fields.
  const toggle = element("samples-as-json");
  const jsonPart = element("samples-json-part");
  const jsonField = element("samples-json");
  const jsonError = element("samples-json-error");
  let json = null;
  toggle.hidden = false;
  toggle.addEventListener("click", () => {
    const isJson = jsonPart.hidden;
    if (isJson) {
      jsonField.value = JSON.stringify(
        Object.fromEntries(placeholders().map((name) => [name, samples.value(name)])),
        null,
        2,
      );
      if (json === null) json = codeEditor(jsonField, { language: "json", onChange: readJson });
      else json.text = jsonField.value;
      json.focus();
    }
    jsonPart.hidden = !isJson;
    element("samples").hidden = isJson;
    toggle.textContent = isJson ? "Show as fields" : "Show as JSON";
    toggle.setAttribute("aria-pressed", String(isJson));
  });
  function readJson() {
    try {
      samples.set(parsedSamples(json.text));
      jsonError.hidden = true;
      changed();
    } catch (error) {
      jsonError.textContent = error.message;
      jsonError.hidden = false;
    }
  }

  refresh();
  offerDraft();
  return { isDirty: () => isDirty };
}
