// The controls of options: only those that fit the format, code editors for long texts, switches, presets, the four sides of
// a margin, and the list of what is set.
import { attachedFiles } from "./attachments.js";
import { codeEditor } from "./code.js";
import { reveal } from "./tabs.js";

// A switch in place of a list of “true” and “false”, which keeps the value and is sent.
function switchOf(select) {
  const toggle = document.createElement("input");
  Object.assign(toggle, { type: "checkbox", id: `${select.id}-switch`, className: "switch-box" });
  toggle.setAttribute("role", "switch");
  toggle.setAttribute("aria-describedby", select.getAttribute("aria-describedby"));
  document.querySelector(`label[for="${select.id}"]`).htmlFor = toggle.id;
  select.after(toggle);
  select.hidden = true;
  return toggle;
}

// `source` gives what is rendered, in a form that lets it be chosen. `onChange` is called when a code editor or a button
// changes a value.
export function optionControls(form, { source = () => "template", onChange }) {
  const rows = [...form.querySelectorAll(".option")];
  const fields = rows.flatMap((row) => [...row.querySelectorAll("[name]")]);
  const rowOf = (field) => field.closest(".option");
  const isSet = (field) => !field.disabled && valueOf(field) !== "";
  const editors = new Map();
  const switches = new Map();
  const unset = new Map();
  // The options of the template that is rendered, by name, and the field that it has no use for.
  let base = {};
  let unused;

  const valueOf = (field) => editors.get(field)?.text ?? field.value;
  function setValue(field, value) {
    if (editors.has(field)) editors.get(field).text = value;
    else field.value = value;
  }

  // The value of a control as the list of what is set has it: of files their names.
  function summaryOf(field) {
    if (field.type === "password") return "…";
    if (field.dataset.language !== "json") return valueOf(field);
    try {
      const files = JSON.parse(valueOf(field));
      return (Array.isArray(files) ? files.map(({ name }) => name) : Object.keys(files)).join(", ");
    } catch {
      // The text is being typed.
      return valueOf(field);
    }
  }

  // The values of the controls that apply, by name.
  const values = () =>
    Object.fromEntries(fields.filter((field) => !field.disabled).map((field) => [field.name, valueOf(field)]));

  // The options of the template that no value takes the place of.
  function baseLeft() {
    const given = fields.filter(isSet).flatMap((field) => rowOf(field).dataset.replaces.split(" "));
    return Object.fromEntries(Object.entries(base).filter(([name]) => !given.includes(name.split(".")[0])));
  }

  // Controls that do not apply to the source or the format are hidden, and not sent.
  function show() {
    const format = form.elements.format?.value || base.format || "png";
    for (const row of rows) {
      const { source: ofSource, formats } = row.dataset;
      const inRow = [...row.querySelectorAll("[name]")];
      const isUsed = row.dataset.field !== unused || inRow.some((field) => valueOf(field) !== "");
      const applies =
        isUsed && (!ofSource || ofSource === source()) && (!formats || formats.split(" ").includes(format));
      row.hidden = !applies;
      for (const field of inRow) field.disabled = !applies;
      row.classList.toggle("changed", !ofSource && inRow.some(isSet));
    }
    const left = baseLeft();
    for (const field of fields) {
      const ofTemplate = left[field.name];
      if (field.tagName === "SELECT")
        field.options[0].text = ofTemplate ? `${ofTemplate} (template)` : unset.get(field);
      else field.placeholder = ofTemplate ?? unset.get(field);
    }
    for (const [field, toggle] of switches) {
      toggle.checked = (field.value || left[field.name] || field.dataset.default) === "true";
    }
    for (const group of form.querySelectorAll("details.group")) {
      group.hidden = !group.querySelector(".option:not([hidden])");
      const count = group.querySelectorAll(".changed:not([hidden])").length;
      group.querySelector("summary .dim").textContent = count === 0 ? "" : `${count} set`;
    }
    for (const button of presets) button.setAttribute("aria-pressed", String(isOfPreset(button)));
    showAttached();
    list();
  }

  // The list of what is set. Entries keep the focus while values change.
  const changed = form.querySelector(".changed-options");
  function list() {
    if (!changed) return;
    const set = rows.filter((row) => !row.hidden && row.classList.contains("changed"));
    for (const entry of [...changed.children]) {
      if (!set.some((row) => row.dataset.field === entry.dataset.field)) entry.remove();
    }
    set.forEach((row, index) => {
      const { field: name } = row.dataset;
      const entry = changed.querySelector(`[data-field="${name}"]`) ?? entryOf(row);
      if (changed.children[index] !== entry) changed.insertBefore(entry, changed.children[index] ?? null);
      const texts = [...row.querySelectorAll("[name]")].filter(isSet).map(summaryOf);
      entry.firstChild.lastChild.textContent = ` ${texts.join(" ").replace(/\s+/g, " ").slice(0, 40)}`;
      entry.classList.toggle("invalid", row.querySelector("[aria-invalid]") !== null);
    });
    changed.previousElementSibling.hidden = set.length > 0;
  }

  function entryOf(row) {
    const entry = document.createElement("li");
    entry.dataset.field = row.dataset.field;
    const [name, remove] = [document.createElement("button"), document.createElement("button")];
    for (const button of [name, remove]) button.type = "button";
    const code = document.createElement("code");
    code.textContent = row.dataset.field;
    name.append(code, document.createElement("span"));
    name.addEventListener("click", () => focus(row.querySelector("[name]")));
    remove.textContent = "×";
    remove.setAttribute("aria-label", `Remove ${row.dataset.field}`);
    remove.addEventListener("click", () => {
      const next = entry.nextElementSibling ?? entry.previousElementSibling;
      for (const field of row.querySelectorAll("[name]")) setValue(field, "");
      entered();
      (next?.lastChild ?? form.elements.format)?.focus();
    });
    entry.append(name, remove);
    return entry;
  }

  function entered() {
    show();
    onChange();
  }

  // Presets: the values of some options. Those that only other presets have are removed.
  const presets = [...form.querySelectorAll("[data-preset]")];
  const ofPreset = (button) => JSON.parse(button.dataset.preset);
  const presetNames = new Set(
    presets
      .flatMap((button) => Object.keys(ofPreset(button)))
      .flatMap((name) =>
        fields.filter((field) => rowOf(field).dataset.field === name.split(".")[0]).map((field) => field.name),
      ),
  );
  const presetFields = fields.filter((field) => presetNames.has(field.name));
  const isOfPreset = (button) => presetFields.every((field) => valueOf(field) === (ofPreset(button)[field.name] ?? ""));
  for (const button of presets) {
    button.addEventListener("click", () => {
      const wanted = ofPreset(button);
      for (const field of presetFields) setValue(field, wanted[field.name] ?? "");
      entered();
    });
  }
  const presetRow = form.querySelector(".presets");
  if (presetRow) presetRow.hidden = false;

  // A request has one margin, or one for each side.
  function oneKindOfMargin(event) {
    const { margin } = form.elements;
    const sides = fields.filter((field) => field.name.startsWith("margin."));
    if (event.target === margin && margin.value !== "") for (const side of sides) side.value = "";
    if (!sides.includes(event.target) || event.target.value === "" || margin.value === "") return;
    for (const side of sides) side.value ||= margin.value;
    margin.value = "";
  }
  form.addEventListener("input", oneKindOfMargin);

  for (const field of fields) {
    unset.set(field, field.tagName === "SELECT" ? field.options[0].text : field.placeholder);
    if (field.dataset.language)
      editors.set(field, codeEditor(field, { language: field.dataset.language, onChange: entered }));
    if (!field.dataset.default) continue;
    const toggle = switchOf(field);
    switches.set(field, toggle);
    // What the switch shows without a value is not given.
    toggle.addEventListener("input", () => {
      const otherwise = base[field.name] ?? field.dataset.default;
      field.value = String(toggle.checked) === otherwise ? "" : String(toggle.checked);
    });
  }
  const showAttached = attachedFiles(form, { valueOf, setValue });
  for (const type of ["input", "change"]) form.addEventListener(type, show);

  function focus(field) {
    reveal(field);
    for (let details = field.closest("details"); details; details = details.parentElement.closest("details"))
      details.open = true;
    (editors.get(field) ?? switches.get(field) ?? field).focus();
  }

  const controlOf = (name) => form.elements[name] ?? fields.find((field) => field.name.startsWith(`${name}.`));
  // Shows an error at the control that it is about, in place of the one before; whether there is such a control.
  function showProblem(name, message) {
    for (const field of form.querySelectorAll(".option [aria-invalid]")) field.removeAttribute("aria-invalid");
    for (const line of form.querySelectorAll(".option .error")) line.hidden = true;
    const field = name && message ? controlOf(name) : undefined;
    const line = field?.id && document.getElementById(`${field.id}-error`);
    const isShown = Boolean(line) && !rowOf(field).hidden;
    if (isShown) {
      line.textContent = message;
      line.hidden = false;
      for (const control of [field, switches.get(field)]) control?.setAttribute("aria-invalid", "true");
    }
    list();
    return isShown;
  }

  show();
  return {
    fields,
    valueOf,
    setValue,
    values,
    show,
    showProblem,
    // What is rendered: the values, and the options of the template.
    effective: () => ({
      ...baseLeft(),
      ...Object.fromEntries(fields.filter(isSet).map((field) => [field.name, valueOf(field)])),
    }),
    setBase(options, unusedField) {
      base = options;
      unused = unusedField;
      show();
    },
    set(given) {
      for (const field of fields) setValue(field, given[field.name] ?? "");
      show();
    },
    // What is sent has the texts of the editors.
    toFields() {
      for (const [field, editor] of editors) if (!field.disabled) editor.toField();
    },
    focusOn: (name) => focus(controlOf(name)),
  };
}
