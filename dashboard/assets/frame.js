// The document of the preview. It shows the markup that its parent sends, each time in a new frame, and removes
// the previous frame when the new one has loaded. This document and its frames have opaque origins,
// and no script runs in the frames.
"use strict";

let shown = null;
addEventListener("message", (event) => {
  if (event.source !== parent || typeof event.data !== "string") return;
  const next = document.createElement("iframe");
  next.setAttribute("sandbox", "");
  next.title = "Preview";
  next.className = "loading";
  next.srcdoc = event.data;
  next.addEventListener("load", () => {
    for (const other of document.querySelectorAll("iframe")) if (other !== next) other.remove();
    next.className = "";
    shown = next;
    parent.postMessage("shown", "*");
  }, { once: true });
  // Frames that have not loaded yet are dropped in favour of the new one.
  for (const other of document.querySelectorAll("iframe")) if (other !== shown) other.remove();
  document.body.append(next);
});
