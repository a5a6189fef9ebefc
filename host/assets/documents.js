// The address of this server in commands, copy buttons, results while the user types, and the key that leads to the search.
// Without this script users can still search, and select the code.
"use strict";

// What the documents have is the address of a server that was just installed.
const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (texts.nextNode()) {
  const text = texts.currentNode;
  if (text.parentElement.closest("pre")) text.data = text.data.replaceAll("http://127.0.0.1:3000", location.origin);
}

for (const block of document.querySelectorAll("pre")) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    const code = block.querySelector("code");
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "Copied";
    } catch {
      // The clipboard needs TLS and permission. Otherwise select the text, so that the user can copy it.
      getSelection().selectAllChildren(code);
      button.textContent = "Press Ctrl+C";
    }
    setTimeout(() => {
      button.textContent = "Copy";
    }, 2000);
  });
  block.append(button);
}

const search = document.querySelector("[type=search]");

// Shows the results of the search page below the field.
function showResults() {
  const box = document.createElement("section");
  box.id = "found";
  box.popover = "auto";
  box.setAttribute("aria-label", "Search results");
  const status = document.createElement("p");
  status.setAttribute("role", "status");
  box.append(status);
  search.form.append(box);
  let [timer, request] = [0, new AbortController()];

  async function find() {
    request.abort();
    request = new AbortController();
    const query = search.value.trim();
    if (query === "") return box.togglePopover(false);
    const address = `${search.form.action}?${new URLSearchParams({ q: query })}`;
    const response = await fetch(address, { signal: request.signal });
    const found = new DOMParser().parseFromString(await response.text(), "text/html");
    box.querySelector(".results")?.remove();
    box.append(found.querySelector(".results"));
    // A status that changes while it is shown is read aloud.
    box.togglePopover(true);
    status.textContent = found.querySelector("[role=status]").textContent;
  }
  search.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => find().catch(() => {}), 150);
  });

  // The arrows move from the field to the results and back.
  search.form.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step || !box.matches(":popover-open")) return;
    const places = [search, ...box.querySelectorAll("a")];
    places[places.indexOf(document.activeElement) + step]?.focus();
    event.preventDefault();
  });
}
if (search) showResults();

document.addEventListener("keydown", (event) => {
  const isTyping = event.target.closest("input, textarea, [contenteditable]");
  if (event.key === "/" && search && !isTyping && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    search.select();
  }
});

// A link to a section of this page leaves the list of contents open, over the section.
document.getElementById("contents")?.addEventListener("click", (event) => {
  if (event.target.closest("a") && event.currentTarget.matches(":popover-open")) event.currentTarget.hidePopover();
});
