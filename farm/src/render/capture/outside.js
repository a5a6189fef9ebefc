// Defines `own.outside`: what Chromium does not draw, or does not load, outside of the viewport.
function defineOutside() {
  const { getBoundingClientRect, append } = Element.prototype;
  const set = (element, name, value) => {
    const { style } = element instanceof HTMLElement ? as(HTMLElement, element) : element;
    style.setProperty(name, value, "important");
  };

  // Calls `visit` with each element of the document, also in open shadow trees and in frames of its origin.
  const each = (visit, root = document) => {
    const all = root.querySelectorAll("*");
    for (const element of all) {
      visit(element);
      const { shadowRoot } = as(Element, element);
      if (shadowRoot) each(visit, shadowRoot);
      if (isFrame(element) && element.contentDocument) each(visit, as(Document, element.contentDocument));
    }
  };
  const isFrame = (element) => /^(iframe|frame|object|embed)$/.test(element.localName);

  own.outside = {
    // Lazy images and frames are loaded, as for printing; `content-visibility: auto` has its content; and a fixed
    // background is one that scrolls. Returns the number of changes.
    show() {
      let changes = 0;
      each((element) => {
        if ((element.localName === "img" || element.localName === "iframe") && element.loading === "lazy") {
          element.loading = "eager";
          changes++;
        }
        const { contentVisibility, backgroundAttachment } = getComputedStyle(element);
        if (contentVisibility === "auto") {
          set(element, "content-visibility", "visible");
          changes++;
        }
        if (backgroundAttachment.includes("fixed")) {
          set(element, "background-attachment", backgroundAttachment.replaceAll("fixed", "scroll"));
          changes++;
        }
      });
      return changes;
    },
    // Whether a frame of another origin is below the viewport.
    hasFrames() {
      let has = false;
      each((element) => {
        if (has || !isFrame(element) || element.contentDocument) return;
        const { width, height, bottom } = getBoundingClientRect.call(element);
        has = width > 0 && height > 0 && (bottom > innerHeight || element.ownerDocument !== window.document);
      });
      return has;
    },
    // Keeps the layout of the page when its device becomes `scale` times as wide and high: the viewport of the layout
    // has the width of `meta`, and the device's proportions. Something wide allows to zoom out to a tenth, by which
    // the viewport of scrolling is larger. Fixed elements would be laid out for that, so they stay as they are.
    keepLayout(scale) {
      const fixed = [];
      each((element) => {
        const style = getComputedStyle(element);
        if (style.position !== "fixed") return;
        const kept = {
          right: "auto",
          bottom: "auto",
          "min-width": "0",
          "min-height": "0",
          "max-width": "none",
          "max-height": "none",
        };
        for (const name of ["top", "left", "width", "height"]) kept[name] = style[name];
        for (const box of ["margin", "padding"])
          for (const side of ["top", "left", "right", "bottom"])
            kept[`${box}-${side}`] = style.getPropertyValue(`${box}-${side}`);
        fixed.push([element, kept]);
      });
      for (const [element, kept] of fixed) for (const name in kept) set(element, name, kept[name]);
      const meta = document.createElement("meta");
      const wide = document.createElement("div");
      meta.name = "viewport";
      meta.content = `width=${innerWidth},initial-scale=${scale},minimum-scale=0.1,maximum-scale=10`;
      wide.style.cssText = `all:initial;position:absolute;left:${innerWidth * scale * 10 - 1}px;top:0;width:1px;height:1px`;
      append.call(document.documentElement, meta, wide);
      own.outside.timeline = new ScrollTimeline();
    },
    // Whether the main thread has had a frame in which the whole page is in view.
    isInView: () => own.outside.timeline.currentTime === null,
  };
}
