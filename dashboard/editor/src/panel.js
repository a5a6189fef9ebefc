// The form of a request: it keeps what is entered, shows the programs that send the request, and renders it.
import { asLink, fromLink } from "./link.js";
import { optionControls } from "./options.js";
import { showResult } from "./result.js";
/* global withDrafts */

const element = (id) => document.getElementById(id);
// The request of a longer form is shown when it is rendered, and not after each change.
const MAX_LIVE_CHARACTERS = 100_000;

// `refusal` gives the reason why nothing can be rendered now, or null.
export function requestPanel(form, refusal) {
  const options = optionControls(form, { source: () => form.elements.source.value, onChange: changed });
  const { valueOf, showApplicable } = options;
  const button = element("render");
  button.textContent = "Render";

  // Controls.
  const controls = [...form.elements].filter((field) => field.name && field.name !== "form_token");
  const isKept = (field) => field.type !== "hidden";

  function setValue(field, value) {
    if (field.type === "radio") field.checked = field.value === value;
    else options.setValue(field, value);
  }

  // What was entered, without empty controls.
  function entered() {
    const values = {};
    for (const field of controls.filter(isKept)) {
      if (field.type === "radio" ? field.checked : valueOf(field) !== "") values[field.name] = valueOf(field);
    }
    return values;
  }

  function enter(values) {
    for (const field of controls.filter(isKept)) {
      if (typeof values[field.name] === "string") setValue(field, values[field.name]);
      else if (field.type !== "radio") setValue(field, "");
    }
  }

  function body() {
    options.toFields();
    return new URLSearchParams(new FormData(form));
  }

  // Errors, at the control that they are about.
  function showError(name, message, summary = "The request is not valid.") {
    for (const field of form.querySelectorAll(".option [aria-invalid]")) field.removeAttribute("aria-invalid");
    for (const line of form.querySelectorAll(".option .error")) line.hidden = true;
    if (!message) return showStatus("");
    const field = name && (form.elements[name] ?? form.querySelector(`[name^="${CSS.escape(name)}."]`));
    const line = field?.id && element(`${field.id}-error`);
    if (!line || field.closest("[hidden].option")) return showStatus(message, true);
    line.textContent = message;
    line.hidden = false;
    field.setAttribute("aria-invalid", "true");
    field.closest("details")?.setAttribute("open", "");
    showStatus(summary, true);
    options.focus(field);
    return undefined;
  }

  const status = element("render-status");
  function showStatus(text, isError = false) {
    status.textContent = text;
    status.classList.toggle("error", isError);
  }

  // Programs.
  function showRequest(request) {
    element("no-request").hidden = request !== null;
    element("snippets").hidden = request === null;
    element("download-request").hidden = request === null;
    element("reads-file").hidden = !request?.readsFile;
    for (const [id, program] of Object.entries(request?.snippets ?? {})) element(`snippet-${id}`).textContent = program;
  }

  async function ask(path) {
    const response = await fetch(`${form.getAttribute("action")}/${path}`, { method: "POST", body: body() });
    if (response.ok || response.status === 422) return response.json();
    const [what, then] = response.status === 403 || response.redirected
      ? ["Your session has ended.", "What you entered is kept in this browser: reload the page and sign in again."]
      : [`The dashboard answered with the status ${response.status}.`, "Try again shortly."];
    return { error: `${what} ${then}` };
  }

  // Reading a long text takes too long for each typed character.
  let timer = 0;
  let last = 0;
  function changed() {
    clearTimeout(timer);
    timer = setTimeout(showCurrentRequest, 300);
  }
  async function showCurrentRequest() {
    timer = 0;
    keep();
    if (JSON.stringify(entered()).length > MAX_LIVE_CHARACTERS) return;
    last += 1;
    const number = last;
    const request = await ask("request").catch(() => ({ error: "" }));
    // An answer to an earlier state is of no use, and an error that is not one of the request says nothing about it.
    if (number !== last || (request.error !== undefined && request.field === undefined)) return;
    showRequest(request.error === undefined ? request : null);
    if (request.error === undefined && status.classList.contains("error")) showError("", "");
  }
  for (const type of ["input", "change"]) {
    form.addEventListener(type, () => {
      showApplicable();
      keep();
      changed();
    });
  }
  addEventListener("pagehide", () => {
    if (timer !== 0) keep();
  });

  // What is entered is kept in the browser. A page that was opened from a link does not replace what was kept without one.
  const link = element("copy-link");
  const opened = location.hash;
  const linked = link === null ? Promise.resolve(null) : fromLink(opened);
  const key = [form.dataset.kept, "request", form.dataset.template ?? ""];
  async function keep() {
    const isLinked = (await linked) !== null;
    const kept = { values: entered(), opened };
    await withDrafts("readwrite", (drafts) => drafts.put(kept, isLinked ? [...key, "link"] : key)).catch(() => {});
  }
  const kept = (of) => withDrafts("readonly", (drafts) => drafts.get(of)).catch(() => undefined);

  async function restore() {
    const values = await linked;
    const query = new URLSearchParams(location.search);
    if (values !== null) {
      const changedSince = await kept([...key, "link"]);
      enter(changedSince?.opened === opened ? changedSince.values : values);
      element("restored").hidden = false;
    } else {
      const before = (await kept(key))?.values;
      if (!before) return;
      const { html, url } = before;
      enter(query.has("template") ? { ...entered(), html, url } : before);
    }
    // The preview of a template depends on the options as well.
    form.dispatchEvent(new Event("input"));
  }

  restore();

  // The sample values of the template that is chosen, unless other values were entered.
  let sampled = form.elements.variables?.value ?? "";
  form.elements.templateId?.addEventListener("change", async (event) => {
    const field = form.elements.variables;
    const id = event.target.value.trim();
    if (field.type === "hidden" || !id || !["", sampled].includes(valueOf(field))) return;
    const response = await fetch(`/dashboard/playground/samples/${encodeURIComponent(id)}`).catch(() => null);
    if (!response?.ok || !["", sampled].includes(valueOf(field))) return;
    sampled = (await response.json()).variables;
    setValue(field, sampled);
    changed();
  });

  if (link !== null) {
    link.hidden = false;
    link.addEventListener("click", async () => {
      const note = element("link-status");
      try {
        history.replaceState(null, "", await asLink(entered()));
        note.textContent = "The address of this page now holds the request.";
        await navigator.clipboard.writeText(location.href);
        note.textContent = "The link was copied. It holds everything that you entered, and no key.";
      } catch (error) {
        if (error instanceof RangeError) note.textContent = error.message;
      }
      note.hidden = false;
    });
  }

  form.addEventListener("submit", async (event) => {
    if (event.submitter !== button && event.submitter !== null) {
      body();
      return;
    }
    event.preventDefault();
    const refused = refusal();
    if (refused !== null) return showStatus(refused, true);
    button.disabled = true;
    element("rendered").hidden = true;
    element("no-result").hidden = false;
    showError("", "");
    showStatus("Rendering…");
    try {
      await render();
    } catch (error) {
      showStatus(`The request could not be sent: ${error.message}`, true);
    }
    button.disabled = false;
    return undefined;
  });

  async function render() {
    clearTimeout(timer);
    timer = 0;
    last += 1;
    keep();
    // The value of a number that the browser cannot read is empty.
    const unread = controls.find((field) => !field.disabled && field.validity?.badInput);
    if (unread) return showError(unread.name, `"${unread.name}" must be a number`);
    const request = await ask("render");
    showRequest(request.error === undefined ? request : null);
    if (request.error !== undefined) return showError(request.field, request.error);
    const startedAt = performance.now();
    const response = await fetch(request.path, {
      method: "POST",
      headers: { authorization: `Bearer ${request.key}`, "content-type": "application/json" },
      body: request.body,
      credentials: "omit",
    });
    const left = attemptsLeft(response.headers.get("ratelimit"));
    if (!response.ok) {
      const other = { error: `The server answered with the status ${response.status}.` };
      const failure = await response.json().catch(() => other);
      const id = response.headers.get("x-request-id");
      const details = `${id ? ` Request ${id}.` : ""}${left}`;
      showError(failure.field, failure.error, `Nothing was rendered.${details}`);
      return undefined;
    }
    const file = await response.blob();
    const seconds = ((performance.now() - startedAt) / 1000).toFixed(2);
    const name = /filename="([^"]+)"/.exec(response.headers.get("content-disposition") ?? "")?.[1];
    showResult(file, name ?? `file.${request.extension}`);
    const size = file.size < 1000 ? `${file.size} B` : `${(file.size / 1000).toFixed(1)} KB`;
    showStatus(`Rendered in ${seconds} s, ${size}.${left}`);
    return undefined;
  }
}

// What a `ratelimit` field says, as a sentence.
function attemptsLeft(field) {
  const left = Number(/;r=(\d+)/.exec(field ?? "")?.[1] ?? NaN);
  // The largest number of the field means no limit.
  if (Number.isNaN(left) || left >= 999_999_999_999_999) return "";
  return ` ${left.toLocaleString("en")} ${left === 1 ? "attempt is" : "attempts are"} left this month.`;
}
