// The preview: a frame of another origin that shows markup without running its scripts.
import { contentsOf } from "./files.js";
import { layoutOf } from "./layout.js";
import { ask } from "./panel.js";
import { filled } from "./placeholders.js";
import { stored } from "./storage.js";

// Limit of the height of a frame, in CSS pixels. What is longer is scrolled in it.
const MAX_HEIGHT = 100_000;

// A preview in place of `first`, which is null if there is none. The result shows a page: its `html`, the `options` of the
// request, its `files`, and for a template either `value`, which gives the value of a placeholder, or `data`, the JSON text with which a farm
// fills a template in Jinja. It gives the farm's answer, whose `error` says why nothing else is shown, and null if another
// page was shown meanwhile. A page that is null is none.
export function preview(first, key) {
  const papers = JSON.parse(first?.dataset.papers ?? "{}");
  let layout = null;
  const show = first === null ? () => {} : frames(first, key, () => layout);
  let last = 0;
  return async (page) => {
    last += 1;
    const number = last;
    const { html = null, options = {}, files = {}, value = null, data = null } = page ?? {};
    const contents = await contentsOf(files);
    let answer = {};
    if (data !== null) {
      const form_token = document.querySelector("[name=form_token]").value;
      const entered = new URLSearchParams({ ...options, html, language: "jinja", sampleData: data, form_token });
      answer = await ask("fill", entered).catch(() => ({ error: "" }));
      if (number !== last) return null;
      if (answer.error !== undefined) return answer;
    }
    if (number !== last) return null;
    const fill = (text) => (value === null || text === null ? text : filled(text, value));
    layout = { ...layoutOf({ ...options, ...answer }, papers, fill), files: contents };
    show(answer.html ?? fill(html));
    return answer;
  };
}

// Shows pages in copies of `first`: the next one is loaded behind the one that is shown, and takes its place when it is
// laid out. While a page is laid out, a mark is stored under `key`. If the browser had to end this page, the mark is still
// there at the next visit, and the preview waits to be asked. `layout` gives what `layoutOf` does. The result shows
// markup; null for none.
function frames(first, key, layout) {
  const element = (id) => document.getElementById(id);
  const box = document.createElement("div");
  box.className = "preview-box";
  box.tabIndex = 0;
  box.setAttribute("role", "region");
  box.setAttribute("aria-label", first.title);
  const sheet = document.createElement("div");
  box.append(sheet);
  // Until there is a page.
  box.hidden = true;
  first.replaceWith(box);
  let isOn = stored((storage) => storage.getItem(key)) === null;
  let markup = null;
  // Each with its frame, size and layout.
  let shown = null;
  let loading = null;
  let isStale = false;
  let scroll = { x: 0, y: 0 };
  const removeMark = () => stored((storage) => storage.removeItem(key));

  function show() {
    loading?.frame.remove();
    loading = null;
    // Nothing is laid out in a pane that is hidden.
    isStale = box.clientWidth === 0;
    if (!isOn || isStale || markup === null) return;
    const { css, isPrint, base, files, ...next } = layout();
    next.frame = first.cloneNode();
    loading = next;
    next.frame.hidden = false;
    next.frame.classList.add("loading");
    size(next);
    next.frame.addEventListener(
      "load",
      () => {
        if (next !== loading) return;
        stored((storage) => storage.setItem(key, "1"));
        const desk = getComputedStyle(box).backgroundColor;
        // The frame has an opaque origin, so "*" is the only target that matches. The message holds no secrets.
        next.frame.contentWindow.postMessage(
          { markup, css, isPrint, base, files, part: next.part, paper: next.paper, desk, scroll },
          "*",
        );
      },
      { once: true },
    );
    sheet.append(next.frame);
  }

  function size({ frame, width, height }) {
    Object.assign(frame.style, { width: `${width}px`, height: `${height}px` });
  }

  // The frame has the size of what is rendered, and is scaled to the width that there is.
  function fit() {
    if (shown === null || box.clientWidth === 0) return;
    const { frame } = shown;
    size(shown);
    const { x, y, width, height } = shown.seen ?? { x: 0, y: 0, width: shown.width, height: shown.height };
    const style = getComputedStyle(box);
    const available = box.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
    const scale = Math.min(1, available / width);
    frame.style.transform = `scale(${scale}) translate(${-x}px, ${-y}px)`;
    Object.assign(sheet.style, { width: `${width * scale}px`, height: `${height * scale}px` });
  }
  new ResizeObserver(() => {
    if (isStale) show();
    fit();
  }).observe(box);

  // The page has the colour of what is behind its sheets.
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
  new MutationObserver(show).observe(document.documentElement, { attributeFilter: ["data-theme"] });

  function describe({ width, height, isWhole, part, paper, seen, notShown }, pages, page) {
    const mm = (length) => Math.round((length * 25.4) / 96);
    const count = `About ${pages} ${pages === 1 ? "page" : "pages"}`;
    const size = paper
      ? `${count} of ${mm(page.width)} × ${mm(page.height)} mm.`
      : seen
        ? `A part of ${Math.round(seen.width)} × ${Math.round(seen.height)} pixels.`
        : part
          ? "Nothing matches the selector."
          : `${isWhole ? "The full page:" : "A viewport of"} ${width} × ${height} pixels.`;
    return notShown.length === 0 ? size : `${size} Not in the preview: ${notShown.join(", ")}.`;
  }

  addEventListener("message", ({ source, data }) => {
    if (source === null || typeof data !== "object") return;
    if (source === loading?.frame.contentWindow && data.isBlocked === true) loading.isBlocked = true;
    if (source === shown?.frame.contentWindow && data.isBlocked === true) element("preview-pictures").hidden = false;
    if (source === loading?.frame.contentWindow && data.shown === true) {
      if (box.clientWidth === 0) isStale = true;
      shown?.frame.remove();
      shown = loading;
      loading = null;
      shown.frame.classList.remove("loading");
      element("preview-pictures").hidden = !shown.isBlocked;
      const own = shown.height;
      shown.seen = data.seen;
      if (shown.isWhole) {
        if (shown.paper) shown.width = data.width;
        shown.height = Math.min(Math.max(data.height, shown.paper ? 0 : own), MAX_HEIGHT);
      }
      fit();
      element("preview-size").textContent = describe(shown, data.pages, data.page);
      shown.own = own;
      // A layout or a paint that does not end would stop this timer too, unless the frame has its own process.
      setTimeout(removeMark, 500);
    } else if (source === shown?.frame.contentWindow) {
      if (typeof data.scroll === "object") scroll = data.scroll;
      // The height of the page depends on that of its frame: it is scrolled instead.
      if (shown.isWhole && !shown.paper && data.height > shown.height + 1) {
        shown.height = shown.own;
        shown.isWhole = false;
        fit();
      }
    }
  });
  // This page still runs, so the preview does not stop it.
  addEventListener("pagehide", removeMark);
  // For this visit, also of what is edited afterwards.
  element("preview-load").addEventListener("click", () => {
    first.src = first.dataset.pictures;
    element("preview-pictures").hidden = true;
    box.focus();
    show();
  });
  element("preview-off").hidden = isOn;
  element("preview-on").addEventListener("click", () => {
    isOn = true;
    element("preview-off").hidden = true;
    show();
  });
  return (text) => {
    markup = text;
    box.hidden = text === null;
    element("preview-size").hidden = text === null;
    show();
  };
}
