// Returns whether a style sheet has a rule for sheets, which may set their margins, or cannot be read.
function hasPageRule() {
  const has = (rules) =>
    [...rules].some(
      (rule) =>
        rule instanceof CSSPageRule ||
        (rule.cssRules && has(rule.cssRules)) ||
        (rule.styleSheet && has(rule.styleSheet.cssRules)),
    );
  try {
    return [...document.styleSheets, ...document.adoptedStyleSheets].some((sheet) => has(sheet.cssRules));
  } catch {
    return true;
  }
}
