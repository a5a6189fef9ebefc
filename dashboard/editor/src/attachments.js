// Files that are chosen for options of a request: the attachments of a PDF as a list, and the XML of an invoice.
import { base64Of } from "./files.js";
import { sizeOf } from "./result.js";

const RELATIONSHIPS = ["unspecified", "source", "data", "alternative", "supplement"];

function make(tag, properties, attributes = {}) {
  const element = Object.assign(document.createElement(tag), properties);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

// A chooser of files at the end of the option's head. `onFiles` gets those that are chosen.
function addChooser(option, text, properties, onFiles) {
  const id = `choose-${option.dataset.field}`;
  const chooser = make("input", { type: "file", id, ...properties });
  chooser.addEventListener("change", async () => {
    await onFiles([...chooser.files]);
    // The same file can be chosen again.
    chooser.value = "";
  });
  const field = make("div", { className: "field" });
  field.append(make("label", { htmlFor: id, textContent: text }), chooser);
  option.querySelector(".option-head").after(field);
  return field;
}

// `options` reads and sets the value of a control. The result shows the value of the control of attachments as a list.
export function attachedFiles(form, { valueOf, setValue }) {
  const option = form.querySelector('[data-field="attachments"]');
  if (option === null) return () => {};
  const xml = form.elements.invoiceXml;
  addChooser(xml.closest(".option"), "From a file", { accept: ".xml,text/xml,application/xml" }, async ([file]) => {
    if (file) setValue(xml, await file.text());
  });

  const field = form.elements.attachments;
  const list = make("ul", { className: "files attached" }, { "aria-label": "Attachments" });
  const chooser = addChooser(option, "Add files", { multiple: true }, async (added) => {
    const described = added.map(async (file) => ({
      name: file.name,
      content: await base64Of(file),
      ...(file.type && { mimeType: file.type }),
    }));
    set([...(read() ?? []), ...(await Promise.all(described))]);
  });
  chooser.after(list);
  const json = make("details", {});
  json.append(
    make("summary", { textContent: "As JSON" }),
    ...[...option.children].filter((it) => it.matches(".cm-editor, textarea")),
  );
  list.after(json);

  // The attachments; null if the text, which is perhaps being typed, has none.
  function read() {
    try {
      const value = JSON.parse(valueOf(field) || "[]");
      return Array.isArray(value) && value.every((item) => typeof item === "object" && item !== null) ? value : null;
    } catch {
      return null;
    }
  }

  let shown = "[]";
  function set(attachments) {
    // A change in the list leaves its rows as they are.
    setValue(field, attachments.length === 0 ? "" : JSON.stringify(attachments, null, 2));
  }

  function rowOf(attachments, index) {
    const { name = "", content = "", mimeType, description = "", relationship = "unspecified" } = attachments[index];
    const change = (changes) => {
      const changed = { ...read()[index], ...changes };
      for (const key of ["description", "relationship"]) if (!changed[key]) delete changed[key];
      shown = null;
      set(read().with(index, changed));
    };
    const row = make("li", {});
    const bytes = Math.floor((String(content).replace(/=+$/, "").length * 3) / 4);
    const title = make("input", { value: name, maxLength: 160 }, { "aria-label": `Name of attachment ${index + 1}` });
    title.addEventListener("change", () => change({ name: title.value.trim() }));
    const about = make("input", { value: description, placeholder: "Description", maxLength: 1000 });
    about.setAttribute("aria-label", `Description of ${name}`);
    about.addEventListener("change", () => change({ description: about.value.trim() }));
    const kind = make("select", {}, { "aria-label": `Relationship of ${name}` });
    for (const value of RELATIONSHIPS)
      kind.append(new Option(value, value === "unspecified" ? "" : value, false, value === relationship));
    kind.addEventListener("change", () => change({ relationship: kind.value }));
    const facts = [sizeOf({ size: bytes }), mimeType].filter(Boolean).join(", ");
    const remove = make("button", { type: "button", className: "quiet small", textContent: "Remove" });
    remove.setAttribute("aria-label", `Remove ${name}`);
    remove.addEventListener("click", () => {
      set(read().filter((_, other) => other !== index));
      (list.children[Math.min(index, list.children.length - 1)]?.lastChild ?? chooser.lastChild).focus();
    });
    row.append(title, make("span", { className: "dim", textContent: facts }), about, kind, remove);
    return row;
  }

  return () => {
    const attachments = read() ?? [];
    const text = JSON.stringify(attachments);
    if (shown === text) return;
    const isOwn = shown === null;
    shown = text;
    if (!isOwn) list.replaceChildren(...attachments.map((_, index) => rowOf(attachments, index)));
  };
}
