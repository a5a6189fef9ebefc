// The page of a template: editor, sample values, live preview, draft, save.
import { codeEditor } from "./code.js";
import { deleteDraft, getDraft, putDraft } from "./drafts.js";
import { layoutOf } from "./layout.js";
import { filled, placeholderNames } from "./placeholders.js";
import { preview } from "./preview.js";
import { parsedSamples, sampleFields } from "./samples.js";

export function templatePage(form, requestForm) {
  const element = (id) => document.getElementById(id);
  const samples = sampleFields(element("samples"), element("no-samples"));
  const names = () => [...new Set([...placeholderNames(editor.text), ...samples.names()])];
  const editor = codeEditor(element("html"), { onChange: changed, names });
  const template = form.dataset.template;

  const frame = element("preview");
  const papers = JSON.parse(frame?.dataset.papers ?? "{}");
  const starter = JSON.parse(frame?.dataset.options ?? "{}");
  const options = () => (requestForm ? Object.fromEntries(new FormData(requestForm)) : starter);
  const show = frame === null ? () => {} : preview(frame, `preview ${template}`, () => layoutOf(options(), papers));
  function refresh() {
    editor.toField();
    const markup = editor.text;
    samples.show(placeholderNames(markup));
    show(filled(markup, samples.value));
  }

  // The larger the markup, the longer the browser needs to show it.
  let timer = 0;
  let isDirty = "unsaved" in form.dataset;
  function changed() {
    isDirty = true;
    clearTimeout(timer);
    timer = setTimeout(() => {
      refresh();
      keepDraft();
    }, 150 + editor.view.state.doc.length / 2_000);
  }
  form.addEventListener("input", changed);
  // Options change what the preview shows.
  let layout = "";
  for (const type of ["input", "change"]) {
    requestForm?.addEventListener(type, () => {
      const next = JSON.stringify(layoutOf(options(), papers));
      if (next === layout) return;
      layout = next;
      refresh();
    });
  }
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
    editor.toField();
    clearTimeout(timer);
    isDirty = false;
    keepDraft();
  });

  const revision = element("revision");
  const key = [form.dataset.user, template];
  const draftNow = () => ({
    name: element("name").value, html: editor.text, samples: samples.values(), revision: revision?.value ?? "",
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
    const isSame = draft.name === now.name && draft.html === now.html &&
      Object.entries(now.samples).every(([name, value]) => (draft.samples[name] ?? "") === value);
    if (isSame) return deleteDraft(key);
    const bar = element("draft");
    const older = draft.revision === now.revision ? "" : ", made from an older version of the template";
    element("draft-text").textContent =
      `This browser has an unsaved draft of ${new Date(draft.at).toLocaleString()}${older}.`;
    element("draft-restore").addEventListener("click", () => {
      element("name").value = draft.name;
      editor.text = draft.html;
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
      const names = placeholderNames(editor.text);
      jsonField.value = JSON.stringify(Object.fromEntries(names.map((name) => [name, samples.value(name)])), null, 2);
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
