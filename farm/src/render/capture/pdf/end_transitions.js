// Ends transitions in a document and its open shadow trees.
function endTransitions() {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync("*, ::before, ::after { transition: none !important }");
  const visit = (root) => {
    root.adoptedStyleSheets = [...root.adoptedStyleSheets, sheet];
    for (const element of root.querySelectorAll("*")) {
      const { shadowRoot } = as(Element, element);
      if (shadowRoot) visit(shadowRoot);
    }
  };
  visit(document);
}
