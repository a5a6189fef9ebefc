// Copy buttons, menus, drafts and local times, on every page. Without this script users can still select and copy the texts.
"use strict";

// The drafts of the template editor: what was typed and not saved, by user and template.
// IndexedDB, because a template may be larger than what localStorage holds.
function openDrafts() {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open("platen-drafts", 1);
    request.onupgradeneeded = () => request.result.createObjectStore("drafts");
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

// Runs one request on the drafts and gives its result.
async function withDrafts(mode, act) {
  const database = await openDrafts();
  try {
    return await new Promise((resolve, reject) => {
      const transaction = database.transaction("drafts", mode);
      const request = act(transaction.objectStore("drafts"));
      transaction.oncomplete = () => resolve(request.result);
      transaction.onabort = () => reject(transaction.error);
    });
  } finally {
    database.close();
  }
}

// A user who signs out may share the browser with others. The editor has asked about unsaved text before.
const signOut = document.querySelector("form[action='/dashboard/sign-out']");
signOut?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const own = IDBKeyRange.bound([signOut.dataset.user], [signOut.dataset.user, []]);
  await withDrafts("readwrite", (drafts) => drafts.delete(own)).catch(() => {});
  signOut.submit();
});

// Without a new page, which would lose what is not saved.
const themes = document.querySelector("form[action='/dashboard/theme']");
themes?.addEventListener("submit", (event) => {
  event.preventDefault();
  document.documentElement.dataset.theme = event.submitter.value;
  for (const button of themes.querySelectorAll("button")) {
    button.setAttribute("aria-pressed", String(button === event.submitter));
  }
  const body = new URLSearchParams(new FormData(themes, event.submitter));
  fetch(themes.action, { method: "POST", body, redirect: "manual", keepalive: true }).catch(() => {});
});

// A link to the playground holds its request after the "#", which browsers do not send: it stays in the address while the
// user signs in.
const signIn = document.querySelector("form[action='/dashboard/sign-in']");
if (signIn) signIn.action += location.hash;

// Each copies what is before it.
for (const button of document.querySelectorAll("button.copy")) {
  button.hidden = false;
  const label = button.querySelector("span") ?? button;
  const text = label.textContent;
  button.addEventListener("click", async () => {
    const source = button.previousElementSibling;
    try {
      await navigator.clipboard.writeText(source.textContent);
      label.textContent = "Copied";
      button.classList.add("done");
    } catch {
      // The clipboard needs TLS and permission. Otherwise select the text, so that the user can copy it.
      getSelection().selectAllChildren(source);
      label.textContent = "Press Ctrl+C";
    }
    setTimeout(() => {
      label.textContent = text;
      button.classList.remove("done");
    }, 2000);
  });
}

// A menu closes by Escape, and when the focus or a click is outside of it.
function closeMenus(isLeft) {
  for (const menu of document.querySelectorAll(".menu[open]")) if (isLeft(menu)) menu.open = false;
}
for (const type of ["click", "focusin"]) {
  document.addEventListener(type, ({ target }) => closeMenus((menu) => !menu.contains(target)));
}
document.addEventListener("keydown", ({ key }) => {
  if (key !== "Escape") return;
  const summary = document.activeElement.closest(".menu")?.querySelector("summary");
  closeMenus(() => true);
  summary?.focus();
});

// The value of the day under the pointer, beside the sum.
for (const chart of document.querySelectorAll(".chart")) {
  const value = chart.previousElementSibling.querySelector("output");
  chart.addEventListener("pointerover", ({ target }) => {
    value.textContent = target.closest("g")?.firstElementChild.textContent ?? "";
  });
  chart.addEventListener("pointerleave", () => {
    value.textContent = "";
  });
}

for (const time of document.querySelectorAll("time")) {
  time.title = new Date(time.dateTime).toLocaleString("sv", { dateStyle: "short", timeStyle: "long" });
}
for (const hint of document.querySelectorAll("[data-local-hint]")) {
  hint.textContent = hint.dataset.localHint;
}
