// Returns whether the page's own rules for sheets set a `size`, and their widest `left` and `right` margins in CSS pixels, null
// for those that they do not set. Percentages are of `width`. Style sheets of other origins cannot be read.
function readPageRules(width) {
  const widest = { left: null, right: null, size: false };
  const pixels = (text) => {
    const length = CSSNumericValue.parse(text);
    return length.unit === "percent" ? (length.value / 100) * width : length.to("px").value;
  };
  const read = (rules) => {
    for (const rule of rules) {
      if (rule instanceof CSSPageRule) {
        widest.size ||= rule.style.getPropertyValue("size") !== "";
        for (const side of ["left", "right"]) {
          const margin = rule.style.getPropertyValue(`margin-${side}`);
          try {
            widest[side] = Math.max(widest[side] ?? 0, pixels(margin));
          } catch {}
        }
      }
      if (rule.cssRules) read(rule.cssRules);
      if (rule.styleSheet) read(rule.styleSheet.cssRules);
    }
  };
  for (const sheet of [...document.styleSheets, ...document.adoptedStyleSheets]) {
    try {
      read(sheet.cssRules);
    } catch {}
  }
  return widest;
}
