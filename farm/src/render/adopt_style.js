// Adopts the style sheet of a job unless it is the last one, and returns whether it was not. In an isolated world the page's
// content security policy does not hold for it, and it works when no script of the page runs.
function adoptStyle(css) {
  if (window !== top) return false;
  if (!own.style) {
    own.style = new CSSStyleSheet();
    own.style.replaceSync(css);
  }
  const sheets = [...document.adoptedStyleSheets];
  if (sheets.at(-1) === own.style) return false;
  document.adoptedStyleSheets = [...sheets.filter((sheet) => sheet !== own.style), own.style];
  return true;
}
