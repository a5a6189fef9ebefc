// Returns functions that find elements by a CSS selector: those of the document before those of its open shadow trees.
function findElements() {
  function* trees(tree) {
    yield tree;
    const all = tree.querySelectorAll("*");
    for (let at = 0; at < all.length; at++) {
      const inner = all[at].shadowRoot;
      if (inner instanceof ShadowRoot) yield* trees(inner);
    }
  }
  function* select(selector) {
    for (const tree of trees(document)) yield* tree.querySelectorAll(selector);
  }
  // The element around another one, across shadow trees.
  const around = (element) => {
    const { assignedSlot, parentElement, parentNode } = as(Element, element);
    return assignedSlot ?? parentElement ?? (parentNode instanceof ShadowRoot ? parentNode.host : null);
  };

  const isShown = (element) => as(Element, element).checkVisibility({ visibilityProperty: true });
  const draws = (element) => {
    const { getBoundingClientRect, children } = as(Element, element);
    const { width, height } = getBoundingClientRect();
    const { display, overflow } = getComputedStyle(element);
    if (width > 0 && height > 0) return isShown(element);
    return display && display !== "none" && overflow === "visible" && [...children].some(draws);
  };
  const isVisible = (element) => {
    const { getClientRects, matches } = as(Element, element);
    const outer = around(element);
    if (!outer || element === document.body) return isShown(element);
    const { display } = getComputedStyle(element);
    const isUndrawn = display === "none" && matches("head, head *, script, style, template, link, meta, base, title");
    if (!getClientRects().length && (isUndrawn || (display && display !== "none"))) return isVisible(outer);
    return draws(element);
  };
  const isScrolled = (element) => {
    if (element === document.scrollingElement || element === document.body) return false;
    const { scrollHeight, clientHeight, scrollWidth, clientWidth } = as(Element, element);
    return scrollHeight > clientHeight || scrollWidth > clientWidth;
  };

  return {
    // Whether an element that matches is visible: it has an area, or what overflows it has, and no style hides it. The root and
    // the body need no area. An element without a box that no style has taken from it is as visible as the element around it.
    hasVisible(selector) {
      for (const element of select(selector)) if (isVisible(element)) return true;
      return false;
    },
    // The border box of the first element that matches, in CSS pixels from the top left corner of the page; null if none does.
    // If scrolling in elements around it hides the element, they are scrolled; the page is not.
    borderBox(selector) {
      const [element] = select(selector);
      if (!element) return null;
      const { scrollIntoView, getBoundingClientRect } = as(Element, element);
      for (let parent = around(element); parent; parent = around(parent)) {
        if (!isScrolled(parent)) continue;
        const left = scrollX;
        const top = scrollY;
        scrollIntoView({ block: "nearest", inline: "nearest", behavior: "instant" });
        scrollTo({ left, top, behavior: "instant" });
        break;
      }
      const { left, top, width, height } = getBoundingClientRect();
      return { left: left + scrollX, top: top + scrollY, width, height };
    },
  };
}
