// Returns the texts of the page's headings, also of those in open shadow trees.
function readHeadings() {
  const texts = [];
  const collect = (root) => {
    for (const element of root.querySelectorAll("*")) {
      const { matches, shadowRoot } = as(Element, element);
      if (element instanceof HTMLElement && matches("h1, h2, h3, h4, h5, h6, [role=heading]"))
        texts.push(as(HTMLElement, element).innerText);
      if (shadowRoot) collect(shadowRoot);
    }
  };
  collect(document);
  return texts;
}
