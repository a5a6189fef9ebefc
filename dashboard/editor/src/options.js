// The controls of options: code editors for long texts, and only those that fit the format.
import { codeEditor } from "./code.js";

const isControl = (field) => field.closest(".option") !== null;

// `source` gives what is rendered, in a form that lets it be chosen. `onChange` is called when a code editor changes.
export function optionControls(form, { source = () => "template", onChange }) {
  const editors = new Map();
  const fields = [...form.elements].filter((field) => field.name && isControl(field));
  const valueOf = (field) => editors.get(field)?.text ?? field.value;

  function setValue(field, value) {
    if (editors.has(field)) editors.get(field).text = value;
    else field.value = value;
  }

  // Controls that do not apply to the source or the format are hidden, and not sent.
  function showApplicable() {
    const format = form.elements.format?.value || "png";
    for (const row of form.querySelectorAll(".option")) {
      const { source: ofSource, formats } = row.dataset;
      const applies = (!ofSource || ofSource === source()) && (!formats || formats.split(" ").includes(format));
      row.hidden = !applies;
      for (const field of row.querySelectorAll("[name]")) field.disabled = !applies;
    }
    for (const group of form.querySelectorAll("details.group")) {
      group.hidden = !group.querySelector(".option:not([hidden])");
      const inGroup = [...group.querySelectorAll("[name]")];
      const count = inGroup.filter((field) => !field.disabled && valueOf(field) !== "").length;
      group.querySelector("summary .dim").textContent = count === 0 ? "" : `${count} set`;
    }
  }

  for (const field of form.querySelectorAll(".option textarea[data-language]")) {
    editors.set(field, codeEditor(field, { language: field.dataset.language, onChange }));
  }
  showApplicable();
  return {
    fields,
    valueOf,
    setValue,
    showApplicable,
    // The values of the controls that apply, by name.
    values: () => Object.fromEntries(fields.filter((field) => !field.disabled).map((field) => [field.name, valueOf(field)])),
    set(values) {
      for (const field of fields) setValue(field, values[field.name] ?? "");
      showApplicable();
    },
    // What is sent has the texts of the editors.
    toFields() {
      for (const [field, editor] of editors) if (!field.disabled) editor.toField();
    },
    focus: (field) => (editors.get(field) ?? field).focus(),
  };
}
