// The editor: placeholders and their sample values, highlighting, the live preview, and rendering.
// All text from the template is put in place as text; the preview is a document of another origin.
"use strict";

const form = document.getElementById("template-form");
const markup = document.getElementById("html");
const samples = document.getElementById("samples");
const preview = document.getElementById("preview");
const highlight = document.getElementById("highlight");

// As the server reads them: three braces on both sides win over two.
const SPACE = "[ \\t\\r\\n]*";
const NAME = "([A-Za-z_][A-Za-z0-9_.-]*)";
const placeholder = () =>
  new RegExp(`\\{\\{\\{${SPACE}${NAME}${SPACE}\\}\\}\\}|\\{\\{${SPACE}${NAME}${SPACE}\\}\\}`, "g");
const ESCAPES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
const escape = (text) => text.replace(/[&<>"']/g, (character) => ESCAPES[character]);

function placeholders(text) {
  const names = new Set();
  for (const match of text.matchAll(placeholder())) names.add(match[1] ?? match[2]);
  return [...names].sort();
}

// Values typed before stay when their placeholder goes, in case it comes back.
const known = new Map();
for (const field of samples.querySelectorAll("[data-sample]")) known.set(field.dataset.sample, field);

function showSamples() {
  const names = placeholders(markup.value);
  const fields = names.map((name) => {
    if (!known.has(name)) {
      const field = document.createElement("textarea");
      field.id = `sample-${name}`;
      field.name = `sample.${name}`;
      field.rows = 1;
      field.dataset.sample = name;
      known.set(name, field);
    }
    const field = known.get(name);
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
  const same = fields.length === samples.children.length && fields.every((row, i) => row === samples.children[i]);
  // Moving a field takes the focus from it.
  if (!same) samples.replaceChildren(...fields);
  document.getElementById("no-samples").hidden = names.length > 0;
}

function filled() {
  const value = (name) => known.get(name)?.value ?? "";
  return markup.value.replace(placeholder(), (_, raw, escaped) =>
    raw === undefined ? escape(value(escaped)) : value(raw));
}

let frameIsReady = false;
function showPreview() {
  // Its origin is nobody's, so no other target can be named; nothing secret is in it.
  if (frameIsReady) preview.contentWindow.postMessage(filled(), "*");
}
preview.addEventListener("load", () => { frameIsReady = true; showPreview(); });
preview.hidden = false;
// Loaded before this script ran, or not yet: either way it loads once more, and is heard.
preview.src = preview.src;

// Large markup is shown plain: to colour it would take longer than to type it.
const HIGHLIGHT_CHARS = 100_000;
const TOKEN = new RegExp([
  `(?<hole>\\{\\{\\{${SPACE}[A-Za-z_][\\w.-]*${SPACE}\\}\\}\\}|\\{\\{${SPACE}[A-Za-z_][\\w.-]*${SPACE}\\}\\})`,
  "(?<comment><!--[^]*?(?:-->|$))",
  "(?<tag></?[A-Za-z][\\w:-]*|/?>|<!doctype)",
  "(?<string>\"[^\"\\n]*\"|'[^'\\n]*')",
  "(?<name>[A-Za-z_:@][\\w:.-]*(?==))",
].join("|"), "gi");

function showHighlight() {
  const text = markup.value;
  const plain = text.length > HIGHLIGHT_CHARS;
  markup.classList.toggle("over", !plain);
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
  // A last empty line has no height by itself.
  highlight.replaceChildren(...pieces, `${text.slice(end)}\n`);
  scroll();
}
function scroll() {
  highlight.scrollTop = markup.scrollTop;
  highlight.scrollLeft = markup.scrollLeft;
}
markup.addEventListener("scroll", scroll);

let later = 0;
function changed() {
  clearTimeout(later);
  later = setTimeout(() => { showSamples(); showPreview(); }, 150);
}
form.addEventListener("input", (event) => {
  if (event.target === markup) showHighlight();
  changed();
  isDirty = true;
});
let isDirty = false;
form.addEventListener("submit", () => { isDirty = false; });
addEventListener("beforeunload", (event) => { if (isDirty) event.preventDefault(); });
showHighlight();
showSamples();

const renderForm = document.getElementById("render-form");
if (renderForm) {
  const button = document.getElementById("render");
  const status = document.getElementById("render-status");
  const place = document.getElementById("rendered");
  const say = (text, bad = false) => { status.textContent = text; status.classList.toggle("error", bad); };
  button.disabled = false;

  renderForm.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (isDirty) return say("Save first: the saved template is what is rendered.", true);
    button.disabled = true;
    place.hidden = true;
    say("Rendering…");
    try {
      say(await render());
    } catch (error) {
      say(error.message, true);
    }
    button.disabled = false;
  });

  async function render() {
    const answer = await fetch(renderForm.action, { method: "POST", body: new URLSearchParams(new FormData(renderForm)) });
    if (!answer.ok || answer.redirected) throw new Error("You are not signed in any more. Load the page again.");
    const { key, templateId, variables } = await answer.json();
    const format = document.getElementById("format").value;
    const began = performance.now();
    const response = await fetch("/v1/render/template", {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ templateId, variables, format, printBackground: true }),
      credentials: "omit",
    });
    if (!response.ok) throw new Error((await response.json()).error);
    const file = await response.blob();
    const seconds = ((performance.now() - began) / 1000).toFixed(2);
    const url = URL.createObjectURL(file);
    const link = document.createElement("a");
    link.href = url;
    link.className = "button quiet";
    link.download = /filename="([^"]+)"/.exec(response.headers.get("content-disposition") ?? "")?.[1] ?? `file.${format}`;
    link.textContent = `Download ${link.download}`;
    const parts = [link];
    if (file.type.startsWith("image/")) {
      const picture = document.createElement("img");
      picture.src = url;
      picture.alt = "The rendered image";
      parts.unshift(picture);
    }
    place.replaceChildren(...parts);
    place.hidden = false;
    return `Rendered in ${seconds} s, ${(file.size / 1000).toFixed(1)} KB. It counted as one attempt.`;
  }
}
