// Defines `own.sides`: what a sheet would cut of a page at its sides.
function defineSides() {
  const { getBoundingClientRect } = Element.prototype;
  const isFrame = (element) => /^(iframe|frame|object|embed)$/.test(element.localName);
  const isDrawn = (element) =>
    /^(img|svg|canvas|video|audio|iframe|object|embed|input|select|textarea|button|meter|progress|hr|math)$/.test(
      element.localName,
    );
  const shadowOf = (element) => as(Element, element).shadowRoot;
  // Elements of a frame are instances of other interfaces.
  const styleOf = (element) => {
    try {
      return as(HTMLElement, element).style;
    } catch {
      return element.style;
    }
  };

  // Calls `visit` with each element of the document, also in open shadow trees and in frames of its origin.
  const each = (visit, root = document) => {
    for (const element of root.querySelectorAll("*")) {
      visit(element);
      if (shadowOf(element)) each(visit, shadowOf(element));
      if (isFrame(element) && element.contentDocument) each(visit, as(Document, element.contentDocument));
    }
  };
  // Where the children of an element are drawn: those of its shadow tree, and in a slot those that are assigned to it.
  const childrenOf = (element) => {
    if (shadowOf(element)) return shadowOf(element).childNodes;
    const assigned = element.localName === "slot" ? as(HTMLSlotElement, element).assignedNodes() : [];
    return assigned.length ? assigned : as(Node, element).childNodes;
  };
  const widthOf = (element) => {
    const { scrollingElement } =
      isFrame(element) && element.contentDocument ? as(Document, element.contentDocument) : {};
    const { scrollWidth, clientWidth } = as(Element, scrollingElement ?? element);
    return { scrollWidth, clientWidth, isFrame: !!scrollingElement };
  };

  own.sides = {
    // Shows what elements hide that scroll sideways, such as a box around a table, and frames: a sheet does not scroll.
    // What one shows may be scrolled by another one around it.
    show() {
      const shown = new Set();
      for (let before = -1; before < shown.size; ) {
        before = shown.size;
        const found = [];
        each((element) => {
          const { scrollWidth, clientWidth, isFrame } = widthOf(element);
          if (
            scrollWidth > clientWidth &&
            !shown.has(element) &&
            (isFrame || /auto|scroll/.test(getComputedStyle(element).overflowX))
          )
            found.push([
              element,
              isFrame
                ? { "min-width": `${scrollWidth}px`, "max-width": "none" }
                : { overflow: "visible", "max-height": "none", "min-height": "max-content" },
            ]);
        });
        for (const [element, styles] of found) {
          shown.add(element);
          for (const name in styles) styleOf(element).setProperty(name, styles[name], "important");
        }
      }
    },
    // How far content is beyond the left side, to which nothing scrolls, and fixed content beyond the right one. What is
    // placed at the left of the page on purpose, so that nothing of it is seen, does not count.
    outside() {
      let left = 0;
      let right = 0;
      const range = new Range();
      const isNegative = (value) => parseFloat(value) < 0;
      const { documentElement, body } = window.document;
      const elements = [[documentElement, false]];
      while (elements.length) {
        let [element, isClipped] = elements.pop();
        const style = getComputedStyle(element);
        const { position } = style;
        const box = getBoundingClientRect.call(element);
        if (style.display === "none" || style.opacity === "0") continue;
        if (position === "fixed" || position === "absolute") {
          const place = `${as(Element, element).computedStyleMap().get("left")}`;
          const container = element instanceof HTMLElement ? as(HTMLElement, element).offsetParent : null;
          const base = container ? Math.min(0, getBoundingClientRect.call(container).left) : 0;
          if (box.left < base && (box.right <= 0 || place !== "auto")) continue;
          if (position === "fixed") {
            isClipped = false;
            if (place !== "auto" && style.transform === "none") right = Math.max(right, box.right);
          }
        }
        const isMoved =
          (position === "relative" && isNegative(style.left)) ||
          isNegative(style.marginLeft) ||
          isNegative(style.translate) ||
          (style.transform !== "none" && new DOMMatrix(style.transform).m41 < 0);
        if (isMoved && box.right <= 0) continue;
        const isVisible = style.visibility === "visible";
        const hasBox =
          isDrawn(element) ||
          style.backgroundColor !== "rgba(0, 0, 0, 0)" ||
          style.backgroundImage !== "none" ||
          ["top", "right", "bottom", "left"].some((side) => style.getPropertyValue(`border-${side}-width`) !== "0px");
        if (isVisible && !isClipped && hasBox && box.width > 0) left = Math.max(left, -box.left);
        if (element !== documentElement && element !== body)
          isClipped ||=
            style.overflowX !== "visible" ||
            style.clipPath !== "none" ||
            style.contentVisibility === "auto" ||
            /paint|strict|content/.test(style.contain);
        for (const child of childrenOf(element)) {
          if (child instanceof Element) elements.push([child, isClipped]);
          if (!(child instanceof Text) || !isVisible || isClipped || !/\S/.test(child.data)) continue;
          range.selectNodeContents(child);
          const text = range.getBoundingClientRect();
          if (text.right > 0 || !isNegative(style.textIndent)) left = Math.max(left, -text.left);
        }
      }
      return { left: Math.ceil(left - 0.5), fixed: Math.ceil(right - 0.5) - innerWidth };
    },
    // Lets the page begin further to the right.
    move(by) {
      const { documentElement: root } = window.document;
      root.style.setProperty("margin-left", `${parseFloat(getComputedStyle(root).marginLeft) + by}px`, "important");
    },
  };
}
