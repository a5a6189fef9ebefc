// Adds a space to each cell of a table that may be empty: one that has no text itself. Remembers them by their cells. Where only some
// pages are printed (`isPart`), a space is where its cell is, which takes Chromium long for many.
function addSpaces(color, isPart) {
  const cells = "td, th, [role=cell], [role=gridcell], [role=columnheader], [role=rowheader]";
  own.spaces = new Map();
  const add = (root) => {
    const spaces = [];
    for (const cell of root.querySelectorAll("*")) {
      const { matches, hasAttribute, setAttribute, shadowRoot } = as(Element, cell);
      if (shadowRoot) add(shadowRoot);
      if (!(cell instanceof HTMLElement) || !matches(cells) || hasAttribute("aria-owns")) continue;
      const { childNodes, textContent } = as(Node, cell);
      const hasText = (node) => node.nodeType === Node.TEXT_NODE && node.data.trim();
      if (isPart ? textContent.trim() : Array.from(childNodes).some(hasText)) continue;
      const space = document.createElement("span");
      const name = `platen-space-${own.spaces.size}`;
      // It takes no room.
      const style = {
        all: "initial",
        position: "absolute",
        "position-anchor": `--${name}`,
        top: isPart ? "anchor(top, 0px)" : "2px",
        left: isPart ? "anchor(left, 0px)" : 0,
        font: `1px/0 ${getComputedStyle(cell).fontFamily}`,
        "white-space": "pre",
        color,
        "print-color-adjust": "exact",
        "forced-color-adjust": "none",
      };
      for (const [key, value] of Object.entries(style)) space.style.setProperty(key, value, "important");
      space.id = name;
      space.textContent = "\u00a0";
      if (isPart) as(HTMLElement, cell).style.setProperty("anchor-name", `--${name}`, "important");
      setAttribute("aria-owns", name);
      own.spaces.set(cell, space);
      spaces.push(space);
    }
    // Beside what the page's style sheets know.
    if (spaces.length) (root.documentElement ?? root).append(...spaces);
  };
  add(document);
}
