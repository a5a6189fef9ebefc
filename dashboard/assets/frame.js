// The preview's own document: shows the markup its parent sends, each time in a new frame, and swaps
// the frames when the new one is drawn. It runs in an origin of its own, and so does what it shows.
"use strict";

let shown = null;
addEventListener("message", (event) => {
  if (event.source !== parent || typeof event.data !== "string") return;
  const next = document.createElement("iframe");
  next.setAttribute("sandbox", "allow-scripts");
  next.title = "Preview";
  next.className = "waiting";
  next.srcdoc = event.data;
  next.addEventListener("load", () => {
    for (const other of document.querySelectorAll("iframe")) if (other !== next) other.remove();
    next.className = "";
    shown = next;
  }, { once: true });
  // One that never loads does not keep the next from being shown.
  for (const other of document.querySelectorAll("iframe")) if (other !== shown) other.remove();
  document.body.append(next);
});
