// The document of the preview. It becomes the page that its parent sends, once: the parent loads it again for the next
// page. It has an opaque origin, and no script of the page runs: scripts are removed, the policy of this document allows
// none, and none in attributes.
"use strict";

// Pictures and style sheets that take longer change the layout later.
const MAX_WAIT_MS = 2_000;

addEventListener(
  "message",
  async (event) => {
    if (event.source !== parent || typeof event.data?.markup !== "string") return;
    const { markup, css, isPrint, base, files, part, paper, desk, scroll } = event.data;
    const page = new DOMParser().parseFromString(markup, "text/html");
    become(page, await withFiles(page, css, base, files));
    await loaded();
    if (isPrint) forPrint();
    const size = () => ({ width: document.documentElement.scrollWidth, height: document.documentElement.scrollHeight });
    // `pages`, `page` (the size of one), and the width and height of all of them.
    const laidOut = paper ? paginate(paper, desk) : {};
    document.scrollingElement?.scrollTo(scroll.x, scroll.y);
    tell({ shown: true, ...size(), ...laidOut, seen: part ? show(part) : undefined });
    addEventListener("resize", () => tell(size()));
    let isQueued = false;
    addEventListener("scroll", () => {
      if (isQueued) return;
      isQueued = true;
      requestAnimationFrame(() => {
        isQueued = false;
        tell({ scroll: { x: scrollX, y: scrollY } });
      });
    });
  },
  { once: true },
);

// The message holds no secrets, and the parent looks at its sender.
const tell = (message) => parent.postMessage(message, "*");

// An address in a style sheet.
const REFERENCE = /url\(\s*(?:"([^"]*)"|'([^']*)'|([^"'()\s]+))\s*\)|@import\s+(?:"([^"]*)"|'([^']*)')/gi;
// Style sheets may import each other in a circle.
const MAX_STYLE_SHEETS = 200;

// Replaces what names a file by an address of its content, and gives `css` with it. `files` are contents by path, which is
// relative to `base`, whatever the base of the page.
async function withFiles(page, css, base, files) {
  // Addresses without a query are compared decoded and in NFC.
  const nameOf = ({ origin, pathname }) => {
    try {
      return origin + decodeURIComponent(pathname).normalize();
    } catch {
      return origin + pathname;
    }
  };
  const found = new Map();
  for (const [path, content] of Object.entries(files)) {
    if (!URL.canParse(path, base)) continue;
    const isStyleSheet = content.type.startsWith("text/css");
    const file = isStyleSheet ? { text: await content.text() } : { url: URL.createObjectURL(content) };
    found.set(nameOf(new URL(path, base)), file);
  }
  if (found.size === 0) return css;
  const find = (reference, from) =>
    URL.canParse(reference, from) ? found.get(nameOf(new URL(reference, from))) : undefined;
  let sheets = 0;
  const urlOf = ({ text, url }, address) => {
    if (url) return url;
    sheets += 1;
    return URL.createObjectURL(
      new Blob([sheets > MAX_STYLE_SHEETS ? "" : rewritten(text, address)], { type: "text/css" }),
    );
  };
  const rewritten = (text, from) =>
    text.replace(REFERENCE, (whole, ...groups) => {
      const reference = groups.slice(0, 5).find((group) => group !== undefined);
      const file = find(reference, from);
      if (file === undefined) return whole;
      const url = `url("${urlOf(file, new URL(reference, from))}")`;
      return whole.startsWith("@") ? `@import ${url}` : url;
    });
  const own = page.querySelector("base[href]")?.getAttribute("href") ?? "";
  const from = URL.canParse(own, base) ? new URL(own, base) : base;
  for (const link of page.querySelectorAll("link[rel~=stylesheet i][href]")) {
    const href = link.getAttribute("href");
    const { text } = find(href, from) ?? {};
    if (text === undefined) continue;
    const style = page.createElement("style");
    style.media = link.media;
    style.textContent = rewritten(text, new URL(href, from));
    link.replaceWith(style);
  }
  for (const style of page.querySelectorAll("style")) style.textContent = rewritten(style.textContent, from);
  for (const element of page.querySelectorAll("[style]")) {
    element.setAttribute("style", rewritten(element.getAttribute("style"), from));
  }
  for (const name of ["src", "poster", "href", "xlink:href"]) {
    for (const element of page.querySelectorAll(name === "src" ? "[src]" : name === "poster" ? "[poster]" : "image")) {
      const file = find(element.getAttribute(name) ?? "", from);
      if (file?.url) element.setAttribute(name, file.url);
    }
  }
  for (const element of page.querySelectorAll("[srcset]")) {
    const replaced = element.getAttribute("srcset").replace(/(^|,)\s*([^\s,]+)/g, (whole, before, reference) => {
      const file = find(reference, from);
      return file?.url ? `${before} ${file.url}` : whole;
    });
    element.setAttribute("srcset", replaced);
  }
  return rewritten(css, from);
}

function removeUnsafe(page) {
  // Other links, such as those that open connections ahead, are not subject to the policy.
  for (const element of page.querySelectorAll("script, meta[http-equiv], base, link:not([rel=stylesheet i])"))
    element.remove();
  for (const element of page.querySelectorAll("[autofocus]")) element.removeAttribute("autofocus");
  for (const frame of page.querySelectorAll("iframe")) frame.setAttribute("sandbox", "");
}

function become(page, css) {
  removeUnsafe(page);
  // The file has no scroll bars, and its own colours.
  for (const text of ["html { scrollbar-width: none; forced-color-adjust: none }", css]) {
    const style = page.createElement("style");
    style.textContent = text;
    page.documentElement.append(style);
  }
  const isQuirky = page.compatMode === "BackCompat";
  if (isQuirky) {
    document.open();
    document.write("<html>");
    document.close();
  }
  // What the policy of the other frame would load.
  document.addEventListener("securitypolicyviolation", ({ effectiveDirective, blockedURI }) => {
    const isBlocked = /^(img|style|font|media)-src/.test(effectiveDirective) && blockedURI.startsWith("https:");
    if (isBlocked) tell({ isBlocked });
  });
  document.replaceChild(document.adoptNode(page.documentElement), document.documentElement);
  // A link or a form would replace the preview.
  for (const type of ["click", "submit"]) document.addEventListener(type, (event) => event.preventDefault(), true);
}

async function loaded() {
  const parts = [...document.querySelectorAll("img[src]:not([loading=lazy])")].filter((image) => !image.complete);
  parts.push(...[...document.querySelectorAll("link[rel~=stylesheet i][href]")].filter((link) => !link.sheet));
  const ends = parts.map(
    (part) =>
      new Promise((resolve) => {
        part.addEventListener("load", resolve);
        part.addEventListener("error", resolve);
      }),
  );
  await Promise.race([Promise.all(ends), new Promise((resolve) => setTimeout(resolve, MAX_WAIT_MS))]);
}

// The rules of all style sheets that this document may read.
function* rulesOf(container) {
  let rules;
  try {
    rules = container.cssRules;
  } catch {
    return;
  }
  for (const rule of rules ?? []) {
    yield rule;
    if (rule.styleSheet) yield* rulesOf(rule.styleSheet);
    else yield* rulesOf(rule);
  }
}

// Makes what is meant for print apply, and what is meant for screens not.
function printed(media) {
  if (!media.length) return;
  const queries = media.mediaText.split(",").map((query) =>
    query
      .trim()
      .replace(/^only\s+/i, "")
      .replace(/^(not\s+)?print\b/i, (_, not) => (not ? "not all" : "all"))
      .replace(/^screen\b.*/i, "not all"),
  );
  media.mediaText = queries.join(",");
}

// Makes style sheets apply as for print.
function forPrint() {
  for (const sheet of document.styleSheets) {
    printed(sheet.media);
    for (const rule of rulesOf(sheet)) if (rule instanceof CSSMediaRule) printed(rule.media);
  }
}

// Scrolls to a part of the page, a selector or a rectangle, and gives where it is seen; undefined if nothing matches.
function show(part) {
  const root = document.documentElement;
  let box = part;
  if (typeof part === "string") {
    try {
      box = document.querySelector(part)?.getBoundingClientRect();
    } catch {
      // The selector is being typed.
      return undefined;
    }
    if (!box) return undefined;
    box = { x: box.x + scrollX, y: box.y + scrollY, width: box.width, height: box.height };
  }
  set(root, { overflow: "hidden" });
  document.scrollingElement.scrollTo({ left: box.x, top: box.y, behavior: "instant" });
  return { ...box, x: box.x - scrollX, y: box.y - scrollY };
}

// Lays the page out on sheets of paper below each other, and gives their number and sizes. The browser breaks columns by the
// same rules as pages.
function paginate(paper, desk) {
  const page = {};
  for (const sheet of document.styleSheets) {
    for (const rule of rulesOf(sheet)) {
      if (rule instanceof CSSPageRule && rule.selectorText === "") {
        for (const name of ["margin-top", "margin-right", "margin-bottom", "margin-left", "size"]) {
          page[name] = rule.style.getPropertyValue(name) || page[name];
        }
      }
    }
  }
  const [width, height] = (paper.prefersPage && sizeOf(page.size)) || [paper.width, paper.height];
  const margin = {};
  for (const side of ["top", "right", "bottom", "left"]) {
    margin[side] = paper.margin?.[side] ?? pixels(page[`margin-${side}`]) ?? paper.defaultMargin;
  }
  const inner = { width: width - margin.left - margin.right, height: height - margin.top - margin.bottom };
  if (inner.width < 1 || inner.height < 1) return { pages: 0, page: { width, height } };
  const gap = 16;
  const root = document.documentElement;
  const { body } = document;
  if (!paper.hasBackground) {
    const unprinted = [...document.querySelectorAll("*")].filter(
      (element) => getComputedStyle(element).printColorAdjust !== "exact",
    );
    for (const element of unprinted) set(element, { "background-color": "transparent", "background-image": "none" });
  }
  const background =
    [root, body]
      .map((element) => element && getComputedStyle(element).backgroundColor)
      .find((color) => color && color !== "rgba(0, 0, 0, 0)") ?? "#fff";
  if (paper.isSingle) {
    set(root, { width: `${width}px`, padding: padding(margin) });
    const page = { width, height: Math.ceil(root.getBoundingClientRect().height) };
    root.append(...edges(paper, margin, 1, 1, { ...page, left: 0, top: 0 }));
    return { pages: 1, page, ...page };
  }
  for (const element of body?.querySelectorAll("*") ?? []) {
    const style = getComputedStyle(element);
    for (const name of ["break-before", "break-after"]) {
      if (/page|left|right|recto|verso|always/.test(style.getPropertyValue(name))) set(element, { [name]: "column" });
    }
    if (style.breakInside === "avoid-page") set(element, { "break-inside": "avoid-column" });
  }
  const isStacked = CSS.supports("column-wrap", "wrap");
  const pitch = isStacked ? height + gap : width + gap;
  set(root, {
    "box-sizing": "content-box",
    width: `${inner.width}px`,
    height: isStacked ? "auto" : `${inner.height}px`,
    padding: padding(margin),
    columns: `${inner.width}px`,
    "column-fill": "auto",
    "column-rule": "none",
    "column-gap": `${margin.left + margin.right + gap}px`,
    background: desk,
    margin: "0",
    overflow: "visible",
    ...(isStacked && {
      "column-wrap": "wrap",
      "column-height": `${inner.height}px`,
      "row-gap": `${margin.top + margin.bottom + gap}px`,
    }),
  });
  if (body && paper.scale !== 1) set(body, { zoom: String(paper.scale) });
  const length = isStacked ? root.scrollHeight : root.scrollWidth;
  const pages = Math.max(1, Math.round((length + gap) / pitch));
  // Sheets are behind the page.
  for (let index = 0; index < Math.min(pages, 500); index += 1) {
    const sheet = document.createElement("div");
    const [top, left] = isStacked ? [index * pitch, 0] : [0, index * pitch];
    set(sheet, {
      position: "absolute",
      "z-index": "-1",
      width: `${width}px`,
      height: `${height}px`,
      background,
      margin: "0",
      top: `${top}px`,
      left: `${left}px`,
    });
    root.append(sheet, ...edges(paper, margin, index + 1, pages, { width, height, left, top }));
  }
  const all = pages * pitch - gap;
  return { pages, page: { width, height }, width: isStacked ? width : all, height: isStacked ? all : height };
}

// The header and the footer of a sheet, which have none of the page's styles.
function edges(paper, margin, page, pages, sheet) {
  const { title } = document;
  const texts = {
    title,
    url: "about:blank",
    date: new Date().toLocaleDateString(),
    pageNumber: page,
    totalPages: pages,
  };
  const edge = (text, height, top, align) => {
    const host = document.createElement("div");
    set(host, {
      all: "initial",
      "forced-color-adjust": "none",
      position: "absolute",
      top: `${top}px`,
      left: `${sheet.left}px`,
      width: `${sheet.width}px`,
      height: `${height}px`,
      overflow: "hidden",
      display: "flex",
      "align-items": align,
      "box-sizing": "border-box",
      padding: "0.4cm 0",
      font: "10px Arial, sans-serif",
    });
    const content = new DOMParser().parseFromString(text, "text/html");
    removeUnsafe(content);
    for (const [name, value] of Object.entries(texts)) {
      for (const element of content.getElementsByClassName(name)) element.textContent = value;
    }
    host.attachShadow({ mode: "open" }).append(...content.head.childNodes, ...content.body.childNodes);
    return host;
  };
  const [header, footer] = page === 1 ? [paper.firstHeader, paper.firstFooter] : [paper.header, paper.footer];
  return [
    header && edge(header, margin.top, sheet.top, "start"),
    footer && edge(footer, margin.bottom, sheet.top + sheet.height - margin.bottom, "end"),
  ].filter(Boolean);
}

const padding = ({ top, right, bottom, left }) => `${top}px ${right}px ${bottom}px ${left}px`;

function set(element, properties) {
  for (const [name, value] of Object.entries(properties)) element.style.setProperty(name, value, "important");
}

// A length in CSS pixels; undefined for anything else.
function pixels(length) {
  if (!length || !CSS.supports("width", length) || length.includes("%")) return undefined;
  const probe = document.createElement("div");
  set(probe, { position: "absolute", width: length, padding: "0", border: "0" });
  document.documentElement.append(probe);
  const { width } = probe.getBoundingClientRect();
  probe.remove();
  return width;
}

// The sheet of a `size` of an `@page` rule; undefined for a name, `auto` or an orientation alone.
function sizeOf(size) {
  const lengths = (size ?? "")
    .split(/\s+/)
    .map(pixels)
    .filter((length) => length !== undefined);
  return lengths.length === 0 ? undefined : [lengths[0], lengths[1] ?? lengths[0]];
}
