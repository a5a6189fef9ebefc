// Finishes the animations of a document and of its open shadow trees. Returns 2 if there were some; else 1 if a view transition
// is prepared, whose animations begin later; else 0. An animation without an end cannot be finished, which is an error. A view
// timeline has no time before its first frame. What the style for print begins is finished when printing begins.
function finishAnimations() {
  let found = 0;
  const finish = (animation) => {
    const { timeline, startTime, playState } = animation;
    if (playState === "paused") return;
    if (timeline instanceof ViewTimeline) {
      found = 2;
      if (startTime === null) return;
      animation.pause();
      animation.currentTime = CSS.percent(50 - startTime.value);
    } else if (playState === "running" && timeline instanceof DocumentTimeline) {
      animation.finish();
      found = 2;
    }
  };
  const visit = (root, { getAnimations }, { querySelectorAll }) => {
    for (const animation of getAnimations.call(root)) {
      try {
        finish(animation);
      } catch {}
    }
    for (const element of querySelectorAll.call(root, "*")) {
      const tree = Reflect.get(Element.prototype, "shadowRoot", element);
      if (tree) visit(tree, ShadowRoot.prototype, DocumentFragment.prototype);
    }
  };
  const all = () => visit(window.document, Document.prototype, Document.prototype);
  own.finishesPrint ??= matchMedia("print").addEventListener("change", all) ?? true;
  all();
  const read = (type, name, object) => Reflect.get(type.prototype, name, object);
  const isOfTransition = ({ effect }) =>
    (read(KeyframeEffect, "pseudoElement", effect) ?? "").startsWith("::view-transition");
  const prepares = () =>
    read(Document, "activeViewTransition", window.document) &&
    !Document.prototype.getAnimations.call(window.document).some(isOfTransition);
  return found || (prepares() ? 1 : 0);
}
