// The files of a template: a list, to which files are added by a chooser or by drag and drop. The field of the form has them as
// JSON by path: a stored one with the hash of its content, a new one with its content in base64 besides.
import { sizeOf } from "./result.js";

// Media types that a browser needs to know, of files that have none.
const TYPES = { css: "text/css", svg: "image/svg+xml" };
const KINDS = [
  ["image", /^image\//, /\.(avif|gif|ico|jpe?g|png|svg|webp)$/i],
  ["font", /^font\//, /\.(otf|ttf|woff2?)$/i],
];

const typeOf = (path, { mimeType }) => mimeType || TYPES[path.split(".").pop().toLowerCase()] || "";
const kindOf = (path, { mimeType }) =>
  KINDS.find(([, types, names]) => (mimeType ? types.test(mimeType) : names.test(path)))?.[0];

// Contents by the objects that describe the files.
const contents = new WeakMap();

async function read({ hash, content, text }) {
  if (text !== undefined) return new Blob([text]);
  if (content !== undefined) {
    const binary = atob(content);
    const bytes = new Uint8Array(binary.length);
    for (let at = 0; at < bytes.length; at += 1) bytes[at] = binary.charCodeAt(at);
    return new Blob([bytes]);
  }
  const response = await fetch(`/dashboard/files/${hash}`);
  return response.ok ? response.blob() : null;
}

// The content of a file, which has `hash`, `content` (base64) or `text`; null if it cannot be read.
async function contentOf(path, file) {
  if (!contents.has(file))
    contents.set(
      file,
      read(file).catch(() => null),
    );
  const content = await contents.get(file);
  return content?.slice(0, content.size, typeOf(path, file)) ?? null;
}

// The contents of files by path, without those that cannot be read.
export async function contentsOf(files) {
  const all = Object.entries(files).map(async ([path, file]) => [path, await contentOf(path, file)]);
  return Object.fromEntries((await Promise.all(all)).filter(([, content]) => content !== null));
}

// Shows a picture small, a word in a font, and for other files nothing. A picture runs no scripts.
export async function showSample(place, path, file) {
  const kind = kindOf(path, file);
  const content = kind && (await contentOf(path, file));
  place.replaceChildren();
  if (!content) return;
  if (kind === "image") {
    const picture = new Image();
    picture.alt = "";
    picture.src = URL.createObjectURL(content);
    for (const type of ["load", "error"]) picture.addEventListener(type, () => URL.revokeObjectURL(picture.src));
    place.append(picture);
    return;
  }
  const face = await new FontFace("sample", await content.arrayBuffer()).load().catch(() => null);
  if (face === null) return;
  face.family = `sample-${crypto.randomUUID()}`;
  document.fonts.add(face);
  place.textContent = "Sample";
  place.style.fontFamily = face.family;
}

const hex = (bytes) => [...new Uint8Array(bytes)].map((byte) => byte.toString(16).padStart(2, "0")).join("");

export async function base64Of(content) {
  const bytes = new Uint8Array(await content.arrayBuffer());
  let binary = "";
  for (let at = 0; at < bytes.length; at += 32_768) binary += String.fromCharCode(...bytes.subarray(at, at + 32_768));
  return btoa(binary);
}

// As a description with its content.
async function described(content, mimeType) {
  const hash = hex(await crypto.subtle.digest("SHA-256", await content.arrayBuffer()));
  return { hash, size: content.size, ...(mimeType && { mimeType }), content: await base64Of(content) };
}

// `onChange` is called when a file is added, renamed or removed.
export function templateFiles(onChange) {
  const element = (id) => document.getElementById(id);
  const [part, field, list, error] = ["files-part", "files", "file-list", "files-error"].map(element);
  const [maxFiles, maxBytes] = [field.dataset.maxFiles, field.dataset.maxBytes].map(Number);
  let files = JSON.parse(field.value);
  const rows = new Map();

  const text = () => JSON.stringify(files);
  function problem(message) {
    error.textContent = message;
    error.hidden = message === "";
  }

  function rowOf(path, file) {
    const row = document.createElement("li");
    const [sample, name, facts, remove] = ["span", "input", "span", "button"].map((tag) => document.createElement(tag));
    sample.className = "sample";
    Object.assign(name, { value: path, autocomplete: "off", spellcheck: false });
    name.setAttribute("aria-label", `Path of ${path}`);
    name.addEventListener("change", () => rename(path, name.value.trim()));
    facts.className = "dim";
    facts.textContent = [file.size !== undefined && sizeOf(file), file.mimeType].filter(Boolean).join(", ");
    Object.assign(remove, { type: "button", className: "quiet small", textContent: "Remove" });
    remove.setAttribute("aria-label", `Remove ${path}`);
    remove.addEventListener("click", () => {
      const next = (row.nextElementSibling ?? row.previousElementSibling)?.lastChild ?? element("choose-files");
      delete files[path];
      changed();
      next.focus();
    });
    row.append(sample, name, facts, remove);
    showSample(sample, path, file);
    return row;
  }

  // Rows are kept, with the focus.
  function show() {
    const shown = Object.entries(files).map(([path, file]) => {
      if (rows.get(path)?.file !== file) rows.set(path, { file, row: rowOf(path, file) });
      return rows.get(path).row;
    });
    list.replaceChildren(...shown);
    element("no-files").hidden = shown.length > 0;
    field.value = text();
  }

  // Files of a request in the playground have neither hash nor size.
  async function complete() {
    for (const [path, file] of Object.entries(files)) {
      const content = file.hash === undefined && (await contentOf(path, file));
      if (content) files = { ...files, [path]: await described(content, file.mimeType) };
    }
    show();
  }

  function changed() {
    show();
    onChange();
  }

  function rename(path, to) {
    if (to === path) return;
    const isTaken = to === "" || Object.hasOwn(files, to);
    problem(
      isTaken ? `“${path}” was not renamed: ${to ? `another file has the path “${to}”` : "a path is not empty"}.` : "",
    );
    if (isTaken) rows.delete(path);
    else files = Object.fromEntries(Object.entries(files).map(([known, file]) => [known === path ? to : known, file]));
    changed();
    [...list.querySelectorAll("input")].find((name) => name.value === (isTaken ? path : to))?.focus();
  }

  let reading = 0;
  // What the server would refuse is refused before it is sent.
  async function add(added) {
    const refused = [];
    reading += 1;
    for (const file of added) {
      const others = Object.entries(files).filter(([path]) => path !== file.name);
      const size = others.reduce((sum, [, { size }]) => sum + size, 0);
      if (others.length >= maxFiles)
        refused.push(`“${file.name}” was not added: a template has at most ${maxFiles} files.`);
      else if (size + file.size > maxBytes)
        refused.push(
          `“${file.name}” was not added: the files of a template have at most ${maxBytes / 1_048_576} MiB in all.`,
        );
      else {
        const read = await described(file, file.type).catch(() => null);
        if (read === null) refused.push(`“${file.name}” was not added: it cannot be read.`);
        else files = { ...files, [file.name]: read };
      }
    }
    reading -= 1;
    problem(refused.join(" "));
    changed();
  }

  const chooser = element("choose-files");
  chooser.addEventListener("change", async () => {
    await add([...chooser.files]);
    // The same file can be chosen again.
    chooser.value = "";
  });
  const hasFiles = ({ dataTransfer }) => dataTransfer?.types.includes("Files");
  for (const type of ["dragenter", "dragover"]) {
    part.addEventListener(type, (event) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      part.classList.add("drop");
    });
  }
  part.addEventListener("dragleave", (event) => {
    if (!part.contains(event.relatedTarget)) part.classList.remove("drop");
  });
  part.addEventListener("drop", (event) => {
    part.classList.remove("drop");
    if (!hasFiles(event)) return;
    event.preventDefault();
    add([...event.dataTransfer.files]);
  });
  element("add-files").hidden = false;
  show();
  complete();

  return {
    text,
    all: () => files,
    isReading: () => reading > 0,
    set(given) {
      files = JSON.parse(given ?? "{}");
      show();
    },
  };
}

// Whether two texts of files describe the same ones.
export function areSameFiles(one, other) {
  const facts = (text) =>
    Object.entries(JSON.parse(text ?? "{}"))
      .map(([path, { hash, mimeType = "" }]) => JSON.stringify([path, hash, mimeType]))
      .sort()
      .join();
  return facts(one) === facts(other);
}
