// The template editor: sample values of placeholders, syntax highlighting, live preview, rendering.
// This page inserts template content as text only. The preview is a document of another origin.
"use strict";

const form = document.getElementById("template-form");
const markup = document.getElementById("html");
const samples = document.getElementById("samples");
const preview = document.getElementById("preview");
const highlight = document.getElementById("highlight");

// The same syntax as on the server: three braces take precedence over two.
const SPACE = "[ \\t\\r\\n]*";
const NAME = "([A-Za-z_][A-Za-z0-9_.-]*)";
const placeholderPattern = () =>
  new RegExp(`\\{\\{\\{${SPACE}${NAME}${SPACE}\\}\\}\\}|\\{\\{${SPACE}${NAME}${SPACE}\\}\\}`, "g");
const ESCAPES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
const escape = (text) => text.replace(/[&<>"']/g, (character) => ESCAPES[character]);

function placeholderNames(text) {
  const names = new Set();
  for (const match of text.matchAll(placeholderPattern())) names.add(match[1] ?? match[2]);
  return [...names].sort();
}

// Fields are kept when their placeholder is removed, because the user may add it again.
const sampleFields = new Map();
for (const field of samples.querySelectorAll("[data-sample]")) sampleFields.set(field.dataset.sample, field);

function showSamples() {
  const names = placeholderNames(markup.value);
  const rows = names.map((name) => {
    if (!sampleFields.has(name)) {
      const field = document.createElement("textarea");
      field.id = `sample-${name}`;
      field.name = `sample.${name}`;
      field.rows = 1;
      field.dataset.sample = name;
      sampleFields.set(name, field);
    }
    const field = sampleFields.get(name);
    if (field.parentElement) return field.parentElement;
    const row = document.createElement("div");
    row.className = "field";
    const label = document.createElement("label");
    label.htmlFor = field.id;
    const code = document.createElement("code");
    code.textContent = name;
    label.append(code);
    row.append(label, field);
    return row;
  });
  const unchanged = rows.length === samples.children.length && rows.every((row, i) => row === samples.children[i]);
  // Moving a field would take the focus from it.
  if (!unchanged) samples.replaceChildren(...rows);
  document.getElementById("no-samples").hidden = names.length > 0;
}

function filledMarkup() {
  const value = (name) => sampleFields.get(name)?.value ?? "";
  return markup.value.replace(placeholderPattern(), (_, raw, escaped) =>
    raw === undefined ? escape(value(escaped)) : value(raw));
}

// Storage that is not available, as in some private windows, keeps nothing.
function stored(act) {
  try {
    return act(localStorage);
  } catch {
    return null;
  }
}

// While markup is being shown, a mark is stored. If the browser had to end the page, the mark is still there
// when the template is opened again, and the preview waits to be asked.
const unfinishedMark = `preview ${form.dataset.template}`;
let previewIsOn = preview !== null && stored((storage) => storage.getItem(unfinishedMark)) === null;
let frameIsReady = false;
function showPreview() {
  if (!frameIsReady || !previewIsOn) return;
  stored((storage) => storage.setItem(unfinishedMark, "1"));
  // The frame has an opaque origin, so "*" is the only target that matches. The markup holds no secrets.
  preview.contentWindow.postMessage(filledMarkup(), "*");
}
const removeMark = () => stored((storage) => storage.removeItem(unfinishedMark));
if (preview) {
  addEventListener("message", (event) => {
    // A layout or a paint that does not end would stop this timer too, unless the frame has its own process.
    if (event.source === preview.contentWindow && event.data === "shown") setTimeout(removeMark, 500);
  });
  // This page still runs, so the preview does not stop it.
  addEventListener("pagehide", removeMark);
  const off = document.getElementById("preview-off");
  off.hidden = previewIsOn;
  document.getElementById("preview-on").addEventListener("click", () => {
    previewIsOn = true;
    off.hidden = true;
    preview.hidden = false;
    showPreview();
  });
  preview.addEventListener("load", () => { frameIsReady = true; showPreview(); });
  preview.hidden = !previewIsOn;
  // The frame may have loaded before this script ran. Loading it again makes sure that the event is received.
  preview.src = preview.src;
}

// Longer markup is not highlighted, because highlighting would delay typing.
const MAX_HIGHLIGHT_CHARS = 100_000;
const TOKEN = new RegExp([
  `(?<placeholder>\\{\\{\\{${SPACE}[A-Za-z_][\\w.-]*${SPACE}\\}\\}\\}|\\{\\{${SPACE}[A-Za-z_][\\w.-]*${SPACE}\\}\\})`,
  "(?<comment><!--[^]*?(?:-->|$))",
  "(?<tag></?[A-Za-z][\\w:-]*|/?>|<!doctype)",
  "(?<string>\"[^\"\\n]*\"|'[^'\\n]*')",
  "(?<name>[A-Za-z_:@][\\w:.-]*(?==))",
].join("|"), "gi");

function showHighlight() {
  const text = markup.value;
  const plain = text.length > MAX_HIGHLIGHT_CHARS;
  markup.classList.toggle("highlighted", !plain);
  highlight.hidden = plain;
  if (plain) return;
  const pieces = [];
  let end = 0;
  let inTag = false;
  for (const match of text.matchAll(TOKEN)) {
    const kind = Object.keys(match.groups).find((group) => match.groups[group] !== undefined);
    if ((kind === "string" || kind === "name") && !inTag) continue;
    if (kind === "tag") inTag = !match[0].endsWith(">");
    pieces.push(text.slice(end, match.index));
    const span = document.createElement("span");
    span.className = kind;
    span.textContent = match[0];
    pieces.push(span);
    end = match.index + match[0].length;
  }
  // Without the line break, an empty last line has no height.
  highlight.replaceChildren(...pieces, `${text.slice(end)}\n`);
  syncScroll();
}
function syncScroll() {
  highlight.scrollTop = markup.scrollTop;
  highlight.scrollLeft = markup.scrollLeft;
}
markup.addEventListener("scroll", syncScroll);

let updateTimer = 0;
function scheduleUpdate() {
  clearTimeout(updateTimer);
  updateTimer = setTimeout(() => { showSamples(); showPreview(); keepDraft(); }, 150);
}
let isDirty = "unsaved" in form.dataset;
form.addEventListener("input", (event) => {
  if (event.target === markup) showHighlight();
  scheduleUpdate();
  isDirty = true;
});
addEventListener("beforeunload", (event) => { if (isDirty) event.preventDefault(); });
addEventListener("pagehide", () => { if (isDirty) keepDraft(); });
addEventListener("keydown", (event) => {
  if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "s") return;
  event.preventDefault();
  form.requestSubmit();
});

// The server would refuse more, after the whole upload.
const sizeError = document.getElementById("size-error");
form.addEventListener("submit", (event) => {
  const size = new TextEncoder().encode(markup.value).length;
  const maximum = Number(form.dataset.maxBytes);
  sizeError.hidden = size <= maximum;
  if (size > maximum) {
    event.preventDefault();
    sizeError.textContent = `The HTML has ${size.toLocaleString("en")} bytes. At most ${maximum.toLocaleString("en")} are allowed.`;
    markup.focus();
    return;
  }
  clearTimeout(updateTimer);
  isDirty = false;
  keepDraft();
});

const draftKey = (template) => [form.dataset.user, template];
const revisionField = document.getElementById("revision");
const revision = revisionField?.value ?? "";
const samplesNow = () => Object.fromEntries([...sampleFields].map(([name, field]) => [name, field.value]));
const draftNow = () => ({
  name: document.getElementById("name").value, html: markup.value, samples: samplesNow(), revision: revisionField?.value ?? "",
  at: Date.now(),
});
function keepDraft() {
  withDrafts("readwrite", (drafts) => drafts.put(draftNow(), draftKey(form.dataset.template))).catch(() => {});
}
const deleteDraft = (template) =>
  withDrafts("readwrite", (drafts) => drafts.delete(draftKey(template))).catch(() => {});

async function offerDraft() {
  if (location.search.includes("done=template-created")) await deleteDraft("new");
  // The page shows what was entered last.
  if ("unsaved" in form.dataset) return keepDraft();
  const draft = await withDrafts("readonly", (drafts) => drafts.get(draftKey(form.dataset.template))).catch(() => null);
  if (!draft) return;
  const now = draftNow();
  const isSame = draft.name === now.name && draft.html === now.html &&
    Object.entries(now.samples).every(([name, value]) => (draft.samples[name] ?? "") === value);
  if (isSame) return deleteDraft(form.dataset.template);
  const bar = document.getElementById("draft");
  const older = draft.revision === revision ? "" : ", made from an older version of the template";
  document.getElementById("draft-text").textContent =
    `This browser has an unsaved draft of ${new Date(draft.at).toLocaleString()}${older}.`;
  document.getElementById("draft-restore").addEventListener("click", () => {
    document.getElementById("name").value = draft.name;
    markup.value = draft.html;
    showSamples();
    for (const [name, value] of Object.entries(draft.samples)) {
      const field = sampleFields.get(name);
      if (field) field.value = value;
    }
    // A save then tells of what was saved since.
    if (revisionField && draft.revision) revisionField.value = draft.revision;
    bar.hidden = true;
    isDirty = true;
    showHighlight();
    scheduleUpdate();
    markup.focus();
  });
  document.getElementById("draft-discard").addEventListener("click", () => {
    bar.hidden = true;
    deleteDraft(form.dataset.template);
  });
  bar.hidden = false;
}

showHighlight();
showSamples();
offerDraft();

const renderForm = document.getElementById("render-form");
if (renderForm) {
  const button = document.getElementById("render");
  const status = document.getElementById("render-status");
  const result = document.getElementById("rendered");
  const showStatus = (text, isError = false) => {
    status.textContent = text;
    status.classList.toggle("error", isError);
  };
  button.disabled = false;

  const options = document.getElementById("options");
  const optionsKey = `options ${renderForm.dataset.template}`;
  options.value = sessionStorage.getItem(optionsKey) ?? options.value;
  options.addEventListener("input", () => sessionStorage.setItem(optionsKey, options.value));

  function readOptions() {
    let value;
    try {
      value = JSON.parse(options.value.trim() || "{}");
    } catch (error) {
      throw new Error(`The options are not valid JSON: ${error.message}`);
    }
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      throw new Error('The options must be a JSON object, such as { "landscape": true }.');
    }
    for (const name of ["format", "templateId", "variables"]) {
      if (name in value) throw new Error(`Remove "${name}" from the options. It is set on this page.`);
    }
    return value;
  }

  renderForm.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (isDirty) return showStatus("Save your changes first. Only the saved template is rendered.", true);
    button.disabled = true;
    result.hidden = true;
    showStatus("Rendering…");
    try {
      showStatus(await render());
    } catch (error) {
      showStatus(error.message, true);
    }
    button.disabled = false;
  });

  async function render() {
    const chosen = readOptions();
    const keyResponse = await fetch(renderForm.action, { method: "POST", body: new URLSearchParams(new FormData(renderForm)) });
    if (keyResponse.status === 403) throw new Error("Your session has ended. Reload the page and sign in again.");
    if (!keyResponse.ok) throw new Error("The dashboard cannot be reached. Try again shortly.");
    const { key, templateId, variables } = await keyResponse.json();
    const format = document.getElementById("format").value;
    const startedAt = performance.now();
    const response = await fetch("/v1/render/template", {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ ...chosen, templateId, variables, format }),
      credentials: "omit",
    });
    if (!response.ok) throw new Error((await response.json()).error);
    const file = await response.blob();
    const seconds = ((performance.now() - startedAt) / 1000).toFixed(2);
    const url = URL.createObjectURL(file);
    const link = document.createElement("a");
    link.href = url;
    link.className = "button quiet";
    link.download = /filename="([^"]+)"/.exec(response.headers.get("content-disposition") ?? "")?.[1] ?? `file.${format}`;
    link.textContent = `Download ${link.download}`;
    const parts = [link];
    if (file.type.startsWith("image/")) {
      const image = document.createElement("img");
      image.src = url;
      image.alt = "The rendered image";
      parts.unshift(image);
    }
    result.replaceChildren(...parts);
    result.hidden = false;
    return `Rendered in ${seconds} s, ${(file.size / 1000).toFixed(1)} KB. Counted as one attempt.`;
  }
}
