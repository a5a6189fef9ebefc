// Converts texts of headers and footers to templates, and returns these. Each text comes with the `id` of Chromium's element
// around it. Chromium writes its own `date` in English. Runs in the empty document before the job's page, without the prelude: no
// script has run there. A text is read as a document, whose members it can name. `address` is what is shown as the page's,
// if that is not to be shown.
function convertHeaders(locale, texts, address) {
  const names = {
    html: "platen-html",
    body: "platen-body",
    ":root": ":where(platen-html):nth-child(n)",
    "#header": "#header:scope",
    "#footer": "#footer:scope",
  };
  const token = /\[(?:"(?:\\.|[^"\\])*"|[^\]"])*\]|[.#:]*(?:\\.|[-\w]|[^\0-\x7f])+/g;
  const rename = (rules) => {
    for (const rule of rules) {
      if (rule instanceof CSSStyleRule)
        rule.selectorText = rule.selectorText.replace(token, (it) => names[it.toLowerCase()] ?? it);
      if (rule.cssRules) rename(rule.cssRules);
    }
  };
  const isScoped = (rule) => rule instanceof CSSStyleRule || rule instanceof CSSGroupingRule;
  const date = new Intl.DateTimeFormat(locale, { dateStyle: "short", timeStyle: "short" }).format();
  const filled = { date, ...(address && { url: address }) };
  for (const name in filled) names[`.${name}`] = `.platen-${name}`;
  return texts.map(([id, text]) => {
    // Its elements stay in a document that loads nothing and runs no script.
    const parsed = new DOMParser().parseFromString(text, "text/html");
    const root = Document.prototype.querySelector.call(parsed, "html");
    const renamed = (element, name, content) => {
      const other = Document.prototype.createElement.call(parsed, name);
      for (const attribute of element.attributes) other.setAttributeNode(attribute.cloneNode());
      other.append(...content);
      return other;
    };
    for (const style of root.querySelectorAll("style")) {
      if (!style.sheet) continue;
      const rules = [...style.sheet.cssRules];
      rename(rules);
      const css = (scoped) =>
        rules
          .filter((it) => isScoped(it) === scoped)
          .map((it) => it.cssText)
          .join(" ");
      style.textContent = `${css(false)} @scope (#${id}) { ${css(true)} }`;
    }
    for (const [name, content] of Object.entries(filled)) {
      for (const element of root.querySelectorAll(`.${name}`)) {
        const classes = Element.prototype.getAttribute.call(element, "class");
        const other = classes.replace(new RegExp(`(^|\\s)${name}(?!\\S)`, "g"), `$1platen-${name}`);
        Element.prototype.setAttribute.call(element, "class", other);
        Element.prototype.replaceChildren.call(element, content);
      }
    }
    const content = [...root.children].flatMap((part) =>
      part.localName === "head" ? [...part.childNodes] : [renamed(part, "platen-body", part.childNodes)],
    );
    return renamed(root, "platen-html", content).outerHTML;
  });
}
