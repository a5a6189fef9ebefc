// Sample values: a field for each placeholder, or all of them as JSON.

// `container` has the fields that the server has made. `onChange` is called when a value changes.
export function sampleFields(container, emptyNotice) {
  // Fields are kept when their placeholder is removed, because the user may add it again.
  const fields = new Map();
  for (const field of container.querySelectorAll("[data-sample]")) fields.set(field.dataset.sample, field);

  function rowOf(name) {
    if (!fields.has(name)) {
      const field = document.createElement("textarea");
      field.id = `sample-${name}`;
      field.name = `sample.${name}`;
      field.rows = 1;
      field.dataset.sample = name;
      fields.set(name, field);
    }
    const field = fields.get(name);
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
  }

  return {
    show(names) {
      const rows = names.map(rowOf);
      const isSame = rows.length === container.children.length && rows.every((row, i) => row === container.children[i]);
      // Moving a field would take the focus from it.
      if (!isSame) container.replaceChildren(...rows);
      emptyNotice.hidden = names.length > 0;
    },
    value: (name) => fields.get(name)?.value ?? "",
    // Those with a value: a name that is being typed has a field too.
    names: () => [...fields].filter(([, field]) => field.value !== "").map(([name]) => name),
    values: () => Object.fromEntries([...fields].map(([name, field]) => [name, field.value])),
    set(values) {
      for (const [name, value] of Object.entries(values)) {
        rowOf(name);
        fields.get(name).value = value;
      }
    },
  };
}

// The values of a JSON text, or an error that names what is wrong.
export function parsedSamples(text) {
  let values;
  try {
    values = JSON.parse(text.trim() || "{}");
  } catch (error) {
    throw new Error(`This is not valid JSON: ${error.message}`);
  }
  if (typeof values !== "object" || values === null || Array.isArray(values)) {
    throw new Error('The sample values must be a JSON object, such as { "name": "Ada" }.');
  }
  for (const [name, value] of Object.entries(values)) {
    if (typeof value !== "string" && typeof value !== "number") {
      throw new Error(`The value of "${name}" must be a string or a number.`);
    }
  }
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name.normalize(), String(value)]));
}
