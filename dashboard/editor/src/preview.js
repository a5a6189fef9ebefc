// The preview: a frame of another origin that shows markup without running its scripts.

// Limit of the height of the preview, in CSS pixels.
const MAX_HEIGHT = 640;

// Storage that is not available, as in some private windows, keeps nothing.
function stored(act) {
  try {
    return act(localStorage);
  } catch {
    return null;
  }
}

// Shows pages in copies of `first`: the next one is loaded behind the one that is shown, and takes its place when it is
// laid out. While a page is laid out, a mark is stored under `key`. If the browser had to end this page, the mark is still
// there at the next visit, and the preview waits to be asked. `layout` gives the size of what is rendered.
export function preview(first, key, layout) {
  const element = (id) => document.getElementById(id);
  const box = document.createElement("div");
  box.className = "preview-box";
  first.replaceWith(box);
  let isOn = stored((storage) => storage.getItem(key)) === null;
  let markup = null;
  let shown = null;
  let loading = null;
  let scroll = { x: 0, y: 0 };
  const removeMark = () => stored((storage) => storage.removeItem(key));

  function show() {
    if (!isOn || markup === null) return;
    loading?.remove();
    const frame = first.cloneNode();
    loading = frame;
    const { paper } = layout();
    frame.hidden = false;
    frame.classList.add("loading");
    fit(frame);
    frame.addEventListener("load", () => {
      if (frame !== loading) return;
      stored((storage) => storage.setItem(key, "1"));
      // The frame has an opaque origin, so "*" is the only target that matches. The message holds no secrets.
      frame.contentWindow.postMessage({ markup, paper, scroll }, "*");
    }, { once: true });
    box.append(frame);
  }

  // The frame has the size of what is rendered, and is scaled to the width that there is.
  function fit(frame) {
    const { width, height, paper } = layout();
    const available = box.clientWidth || width;
    // A scroll bar is beside the paper.
    const outer = paper ? width + 16 : width;
    const scale = Math.min(1, available / outer, paper ? 1 : MAX_HEIGHT / height);
    const inner = paper ? Math.min(height + 16, MAX_HEIGHT / scale) : height;
    Object.assign(frame.style, { width: `${outer}px`, height: `${inner}px`, transform: `scale(${scale})` });
    box.style.height = `${inner * scale}px`;
  }
  new ResizeObserver(() => {
    for (const frame of [shown, loading]) if (frame) fit(frame);
  }).observe(box);

  function describe(pages) {
    const { width, height, paper } = layout();
    const mm = (length) => Math.round((length * 25.4) / 96);
    element("preview-size").textContent = paper
      ? `About ${pages} ${pages === 1 ? "page" : "pages"} of ${mm(width)} × ${mm(height)} mm. “Render” shows the exact breaks, and the header and footer.`
      : `A viewport of ${width} × ${height} pixels.`;
  }

  addEventListener("message", ({ source, data }) => {
    if (source !== null && source === loading?.contentWindow && data?.shown === true) {
      shown?.remove();
      shown = loading;
      shown.classList.remove("loading");
      loading = null;
      describe(Number(data.pages));
      // A layout or a paint that does not end would stop this timer too, unless the frame has its own process.
      setTimeout(removeMark, 500);
    } else if (source !== null && source === shown?.contentWindow && typeof data?.scroll === "object") {
      scroll = data.scroll;
    }
  });
  // This page still runs, so the preview does not stop it.
  addEventListener("pagehide", removeMark);
  element("preview-off").hidden = isOn;
  element("preview-on").addEventListener("click", () => {
    isOn = true;
    element("preview-off").hidden = true;
    show();
  });
  return (text) => {
    markup = text;
    show();
  };
}
