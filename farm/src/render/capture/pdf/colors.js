// Gives each text of the page a colour that is the number of its element, for a print of which only the numbers are used: it
// has the same texts at the same places as the print of the page. Returns what the numbers mean.
//
// Elements are numbered in the order of the document. Number n has the colours 3n before its content (`::before`), 3n + 1 in
// it and 3n + 2 after it, all plus the first one.
function numberElements(first) {
  const parents = [];
  const kinds = [];
  const frames = {}; // The colours of frames that cannot be entered, by their places.
  const color = (value) => `#${value.toString(16).padStart(6, "0")}`;
  const hidden = color(first - 1);
  const spaces = new Set(own.spaces?.values());
  // Transitions that run stay as they are, and none begins.
  const css = `*, ::before, ::after { transition-duration: 0s !important; transition-delay: 0s !important;
            print-color-adjust: exact !important }
        ::before { -webkit-text-fill-color: var(--platen-before) !important }
        ::after { -webkit-text-fill-color: var(--platen-after) !important }`;
  const adopt = (root, kind, view) => {
    const sheet = new view.CSSStyleSheet();
    sheet.replaceSync(css);
    const members = as(kind, root);
    members.adoptedStyleSheets = [...members.adoptedStyleSheets, sheet];
  };
  const styled = {
    "http://www.w3.org/1999/xhtml": HTMLElement,
    "http://www.w3.org/2000/svg": SVGElement,
    "http://www.w3.org/1998/Math/MathML": MathMLElement,
  };
  const paint = (element, own, before, after) => {
    const kind = styled[as(Element, element).namespaceURI];
    if (!kind) return;
    const { style } = as(kind, element);
    style.setProperty("-webkit-text-fill-color", own, "important");
    if (kind === SVGElement) style.setProperty("fill", own, "important");
    style.setProperty("--platen-before", before, "important");
    style.setProperty("--platen-after", after, "important");
  };
  // The types of the structure tree that elements have.
  const byName = {
    p: "P",
    ul: "L",
    ol: "L",
    li: "LI",
    table: "Table",
    tr: "TR",
    td: "TD",
    th: "TH",
    caption: "Caption",
    h1: "H1",
    h2: "H2",
    h3: "H3",
    h4: "H4",
    h5: "H5",
    h6: "H6",
  };
  const byRole = {
    list: "L",
    listitem: "LI",
    table: "Table",
    grid: "Table",
    row: "TR",
    cell: "TD",
    gridcell: "TD",
    columnheader: "TH",
    rowheader: "TH",
    img: "Figure",
    link: "Link",
  };
  const kindOf = (element) => {
    const { localName, getAttribute, hasAttribute } = as(Element, element);
    const role = getAttribute("role")?.trim().toLowerCase();
    const ofName = localName === "a" && hasAttribute("href") ? "Link" : byName[localName];
    const kind =
      role === "heading"
        ? `H${Math.min(parseInt(getAttribute("aria-level") ?? 2, 10) || 2, 6)}`
        : role
          ? byRole[role]
          : ofName;
    const span = (name) => Math.max(1, parseInt(getAttribute(name) ?? 1, 10) || 1);
    if (kind === "Figure") return { kind, label: getAttribute("aria-label") ?? getAttribute("title") ?? "" };
    if (!/^T[DH]$/.test(kind)) return kind ? { kind } : null;
    const isOfRow = role === "rowheader" || getAttribute("scope") === "row";
    return { kind, columns: span("colspan"), rows: span("rowspan"), isOfRow };
  };
  const documentIn = (element) => {
    const kind = { iframe: HTMLIFrameElement, frame: HTMLFrameElement, object: HTMLObjectElement }[
      as(Element, element).localName
    ];
    return kind && as(kind, element);
  };
  const number = (element, parent, view) => {
    const { getAttribute, shadowRoot, localName, children, querySelectorAll } = as(Element, element);
    const isRoot = parent === null || localName === "body";
    if (!isRoot && getAttribute("aria-hidden")?.toLowerCase() === "true") {
      paint(element, hidden, hidden, hidden);
      // Documents do not inherit it.
      for (const inner of [element, ...querySelectorAll("iframe, frame, object")]) {
        const contentWindow = documentIn(inner)?.contentWindow;
        if (contentWindow) frames[path(contentWindow)] = hidden;
      }
      return;
    }
    const at = parents.length;
    parents.push(parent);
    kinds.push(kindOf(element));
    const colors = [1, 0, 2].map((kind) => color(first + 3 * at + kind));
    // Margin boxes inherit the colour of the root.
    if (parent === null) colors[0] = color(0);
    paint(element, ...colors);
    const space = own.spaces?.get(element);
    if (space) paint(space, ...colors);
    const frame = documentIn(element);
    if (frame) {
      const inner = frame.contentDocument;
      const { contentWindow } = frame;
      if (inner) numberDocument(inner, at);
      else if (contentWindow) frames[path(contentWindow)] = color(first + 3 * at + 1);
    }
    if (shadowRoot) adopt(shadowRoot, ShadowRoot, view);
    const assigned = localName === "slot" ? as(HTMLSlotElement, element).assignedElements() : [];
    const inside = assigned.length ? assigned : shadowRoot ? as(DocumentFragment, shadowRoot).children : children;
    for (const child of inside) if (!spaces.has(child)) number(child, at, view);
  };
  const numberDocument = (inner, parent) => {
    const { documentElement, defaultView } = as(Document, inner);
    if (!documentElement || !defaultView) return;
    adopt(inner, Document, defaultView);
    number(documentElement, parent, defaultView);
  };
  const path = (inner) => {
    if (inner === inner.parent) return "";
    const { parent } = inner;
    return `${path(parent)}/${Array.from({ length: parent.length }, (_, at) => parent[at]).indexOf(inner)}`;
  };
  numberDocument(window.document, null);
  return { parents, kinds, frames };
}
