// Keeps the look of a page with scripts: as soon as they are disabled, Chromium may show `<noscript>`, and media queries of
// `scripting` change. Style sheets of other origins cannot be read.
function keepScripted() {
  const never = "(width < 0px)";
  const always = "(width >= 0px)";
  const keep = (media) => {
    const text = media?.mediaText ?? "";
    if (!text.includes("(scripting")) return;
    media.mediaText = text.replaceAll("(scripting: none)", never).replace(/\(scripting(: enabled)?\)/g, always);
  };
  const visit = ({ media, cssRules, styleSheet }) => {
    keep(media);
    for (const inner of [...(cssRules ?? []), styleSheet])
      try {
        if (inner) visit(inner);
      } catch {}
  };
  for (const sheet of [...document.styleSheets, ...document.adoptedStyleSheets])
    try {
      visit(sheet);
    } catch {}
  for (const element of document.querySelectorAll("noscript"))
    as(HTMLElement, element).style.setProperty("display", "none", "important");
}
