// Copy buttons, drafts and local times, on every page. Without this script users can still select and copy the texts, and
// times are in UTC.
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

// A link to the playground holds its request after the "#", which browsers do not send: it stays in the address while the
// user signs in.
const signIn = document.querySelector("form[action='/dashboard/sign-in']");
if (signIn) signIn.action += location.hash;

for (const button of document.querySelectorAll("button[data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    const source = document.getElementById(button.dataset.copy);
    try {
      await navigator.clipboard.writeText(source.textContent);
      button.textContent = "Copied";
    } catch {
      // The clipboard needs TLS and permission. Otherwise select the text, so that the user can copy it.
      getSelection().selectAllChildren(source);
      button.textContent = "Press Ctrl+C";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
}

// The same form as the text that is replaced.
function localTime(date) {
  const two = (number) => String(number).padStart(2, "0");
  const day = [date.getFullYear(), two(date.getMonth() + 1), two(date.getDate())].join("-");
  return `${day} ${[date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(":")}`;
}

for (const time of document.querySelectorAll("time[data-local]")) {
  time.textContent = localTime(new Date(time.dateTime));
}
for (const hint of document.querySelectorAll("[data-local-hint]")) {
  hint.textContent = hint.dataset.localHint;
}
