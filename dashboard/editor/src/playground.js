// The page of the playground: what is entered is kept, and shown as a request and in the preview.
import { asLink, fromLink } from "./link.js";
import { optionControls } from "./options.js";
import { ask, clearError, requestPanel, showRequest, showStatus } from "./panel.js";
import { preview } from "./preview.js";
/* global withDrafts */

const element = (id) => document.getElementById(id);
// The request of a longer form is shown when it is rendered, and not after each change.
const MAX_LIVE_CHARACTERS = 100_000;

export function playgroundPage(form) {
  const source = () => form.elements.source.value;
  const options = optionControls(form, { source, onChange: changed });
  const { valueOf } = options;
  requestPanel(form, { options, onRender: stopAsking });
  // Passwords are neither kept nor in a link.
  const controls = [...form.elements].filter((field) => field.name && !["hidden", "password"].includes(field.type));

  // What was entered, without empty controls.
  function entered() {
    const values = {};
    for (const field of controls) {
      if (field.type === "radio" ? field.checked : valueOf(field) !== "") values[field.name] = valueOf(field);
    }
    return values;
  }

  function enter(values) {
    for (const field of controls) {
      const value = values[field.name];
      if (field.type !== "radio") options.setValue(field, typeof value === "string" ? value : "");
      else if (typeof value === "string") field.checked = field.value === value;
    }
  }

  // The preview.
  const show = preview(element("preview"), "preview playground");
  let template = { html: "", options: {}, variables: "" };
  // Together they are the values of a template in Jinja. The text of `data` alone keeps the digits of numbers.
  function dataWith(variables) {
    const text = valueOf(form.elements.data) || "{}";
    if (Object.keys(variables ?? {}).length === 0) return text;
    try {
      return JSON.stringify({ ...JSON.parse(text), ...variables });
    } catch {
      // The text is being typed.
      return text;
    }
  }
  let variables = {};
  let assets = {};
  async function showPreview() {
    try {
      assets = JSON.parse(valueOf(form.elements.assets) || "{}");
    } catch {
      // The text is being typed.
    }
    const page = { html: valueOf(form.elements.html), options: options.effective(), files: assets ?? {} };
    element("preview-none")?.toggleAttribute("hidden", source() !== "url");
    if (source() !== "template") return show(source() === "url" ? null : page);
    try {
      variables = JSON.parse(valueOf(form.elements.variables) || "{}");
    } catch {
      // The text is being typed.
    }
    const isJinja = template.language === "jinja";
    const filling = isJinja ? { data: dataWith(variables) } : { value: (name) => String(variables?.[name] ?? "") };
    const answer = await show({
      ...page,
      html: template.html,
      files: { ...template.files, ...page.files },
      ...filling,
    });
    if (answer?.error === undefined) return undefined;
    if (answer.error) showStatus(answer.error, true);
    return show(null);
  }

  // Reading a long text takes too long for each typed character.
  let timer = 0;
  let last = 0;
  function changed() {
    keep();
    clearTimeout(timer);
    timer = setTimeout(showCurrent, 300);
  }
  function stopAsking() {
    clearTimeout(timer);
    timer = 0;
    last += 1;
    keep();
  }
  async function showCurrent() {
    stopAsking();
    const unused = { jinja: "variables", placeholders: "data" }[template.language];
    options.setBase(source() === "template" ? template.options : {}, unused);
    showPreview();
    if (JSON.stringify(entered()).length > MAX_LIVE_CHARACTERS) return;
    const number = last;
    options.toFields();
    const request = await ask("request", new URLSearchParams(new FormData(form))).catch(() => ({ error: "" }));
    // An answer to an earlier state is of no use, and an error that is not one of the request says nothing about it.
    if (number !== last || (request.error !== undefined && request.field === undefined)) return;
    showRequest(request.error === undefined ? request : null);
    // What is being typed is not complete yet.
    const field = form.elements[request.field];
    if (request.error !== undefined && (field === document.activeElement || !field?.value)) return;
    options.showProblem(request.field, request.error);
    if (request.error === undefined) clearError();
    else showStatus(request.error, true);
  }
  for (const type of ["input", "change"]) form.addEventListener(type, changed);
  addEventListener("pagehide", () => {
    if (timer !== 0) keep();
  });

  // What is entered is kept in the browser. A page that was opened from a link does not replace what was kept without one.
  const opened = location.hash;
  const linked = fromLink(opened);
  const key = [form.dataset.kept, "request", ""];
  async function keep() {
    const isLinked = (await linked) !== null;
    const kept = { values: entered(), opened };
    await withDrafts("readwrite", (drafts) => drafts.put(kept, isLinked ? [...key, "link"] : key)).catch(() => {});
  }
  const kept = (of) => withDrafts("readonly", (drafts) => drafts.get(of)).catch(() => undefined);

  async function restore() {
    const values = await linked;
    if (values !== null) {
      const changedSince = await kept([...key, "link"]);
      enter(changedSince?.opened === opened ? changedSince.values : values);
      element("restored").hidden = false;
    } else {
      const before = (await kept(key))?.values;
      // The address may name a template, a URL and a format.
      const query = new URLSearchParams(location.search);
      if (before && ["template", "url", "format"].some((name) => query.has(name))) {
        enter({ html: before.html, url: before.url, ...entered() });
      } else if (before) {
        enter(before);
      }
    }
    await readTemplate();
    showCurrent();
  }

  // The template that is chosen: its markup, its options, and its sample values unless other values were entered.
  const sampled = { variables: form.elements.variables.value, data: form.elements.data.value };
  async function readTemplate() {
    const id = form.elements.templateId.value.trim();
    const response =
      id && (await fetch(`/dashboard/playground/template?id=${encodeURIComponent(id)}`).catch(() => null));
    template = response?.ok ? await response.json() : { html: "", options: {}, variables: "" };
    if (!response?.ok) return;
    for (const name of ["variables", "data"]) {
      if (!["", sampled[name]].includes(valueOf(form.elements[name]))) continue;
      sampled[name] = template[name] ?? "";
      options.setValue(form.elements[name], sampled[name]);
    }
  }
  form.elements.templateId.addEventListener("change", async () => {
    await readTemplate();
    changed();
  });
  restore();

  const link = element("copy-link");
  link.hidden = false;
  link.addEventListener("click", async () => {
    const note = element("link-status");
    try {
      history.replaceState(null, "", await asLink(entered()));
      note.textContent = "The address of this page now holds the request.";
      await navigator.clipboard.writeText(location.href);
      note.textContent = "The link was copied. It holds everything that you entered, and no key or password.";
    } catch (error) {
      if (error instanceof RangeError) note.textContent = error.message;
    }
    note.hidden = false;
  });
}
