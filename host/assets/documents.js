// Copy buttons, and the key that leads to the search. Without this script users can still search, and select the code.
"use strict";

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

document.addEventListener("keydown", (event) => {
  const search = document.querySelector("[type=search]");
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
