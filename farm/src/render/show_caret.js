// Stops the blinking of the text caret and shows it, as right after focus, also in open shadow trees and in frames of the
// document's origin.
function showCaret() {
  let element = document.activeElement;
  while (element) {
    const { shadowRoot, isContentEditable, matches, style } = as(HTMLElement, element);
    if (shadowRoot) {
      element = shadowRoot.activeElement;
      continue;
    }
    const inner = element.contentDocument;
    if (inner?.nodeType === 9) {
      element = as(Document, inner).activeElement;
      continue;
    }
    if (isContentEditable || matches("input, textarea")) style.setProperty("caret-animation", "manual", "important");
    return;
  }
}
