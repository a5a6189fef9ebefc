// The request of a form: it shows the programs that send it, and renders it.
import { showResult, sizeOf } from "./result.js";
import { reveal } from "./tabs.js";

const element = (id) => document.getElementById(id);
const status = element("render-status");

// Messages of the API have no full stop.
const sentence = (text) => text.replace(/[^.!?]$/, "$&.");

// `request` is the id of the request that the text is about.
export function showStatus(text, isError = false, request = null) {
  status.textContent = isError ? sentence(text) : text;
  if (request !== null) {
    const link = document.createElement("a");
    link.href = `/dashboard/requests?id=${encodeURIComponent(request)}`;
    link.textContent = "Show the request";
    status.append(" ", link);
  }
  status.classList.toggle("error", isError);
}

// An error goes with its cause.
export function clearError() {
  if (status.classList.contains("error")) showStatus("");
}

// What the dashboard says of a form: a request, or an error with a field.
export async function ask(path, body) {
  const response = await fetch(`/dashboard/playground/${path}`, { method: "POST", body });
  if (response.ok || response.status === 422) return response.json();
  const [what, then] =
    response.status === 403 || response.redirected
      ? ["Your session has ended.", "What you entered is kept in this browser: reload the page and sign in again."]
      : [`The dashboard answered with the status ${response.status}.`, "Try again shortly."];
  return { error: `${what} ${then}` };
}

export function showRequest(request) {
  element("no-request").hidden = request !== null;
  element("snippets").hidden = request === null;
  element("download-request").hidden = request === null;
  element("reads-file").hidden = !request?.readsFile;
  for (const [id, program] of Object.entries(request?.snippets ?? {})) element(`snippet-${id}`).textContent = program;
}

// `refusal` gives the reason why nothing can be rendered now, or null; `options` are the form's controls of options, if it
// has some; `onRender` is called before the form is read.
export function requestPanel(form, { refusal = () => null, options = null, onRender = () => {} }) {
  const button = element("render");
  button.textContent = "Render";

  function showError(name, message, details = "", request = null) {
    if (options?.showProblem(name, message)) options.focusOn(name);
    showStatus(`${sentence(message)}${details}`, true, request);
  }

  form.addEventListener("submit", async (event) => {
    if (event.submitter !== button && event.submitter !== null) {
      options?.toFields();
      return;
    }
    event.preventDefault();
    const refused = refusal();
    if (refused !== null) return showStatus(refused, true);
    button.disabled = true;
    options?.showProblem("", "");
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
    onRender();
    // The value of a number that the browser cannot read is empty.
    const unread = [...form.elements].find((field) => !field.disabled && field.validity?.badInput);
    if (unread) return showError(unread.name, `"${unread.name}" must be a number`);
    options?.toFields();
    const request = await ask("render", new URLSearchParams(new FormData(form)));
    showRequest(request.error === undefined ? request : null);
    if (request.error !== undefined) return showError(request.field, request.error);
    element("rendered").hidden = true;
    element("no-result").hidden = false;
    reveal(element("no-result"));
    const startedAt = performance.now();
    const response = await fetch(request.path, {
      method: "POST",
      headers: { authorization: `Bearer ${request.key}`, "content-type": "application/json" },
      body: request.body,
      credentials: "omit",
    });
    const left = attemptsLeft(response.headers.get("ratelimit"));
    const id = response.headers.get("x-request-id");
    if (!response.ok) {
      const other = { error: `The server answered with the status ${response.status}.` };
      const failure = await response.json().catch(() => other);
      const counts = request.counted.includes(response.status) ? "counts as one attempt" : "does not count";
      return showError(failure.field, failure.error, ` Nothing was rendered; this ${counts}.${left}`, id);
    }
    const file = await response.blob();
    const seconds = ((performance.now() - startedAt) / 1000).toFixed(2);
    const name = /filename="([^"]+)"/.exec(response.headers.get("content-disposition") ?? "")?.[1];
    await showResult(file, name ?? `file.${request.extension}`);
    showStatus(`Rendered in ${seconds} s, ${sizeOf(file)}.${left}`, false, id);
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
