// Defines `own.resized`: the animations of a document and of its open shadow trees, which end and begin again while the page
// has another size for a moment: media queries and units of the viewport have other values then.
function defineResized() {
  const read = (type, name, object) => Reflect.get(type.prototype, name, object);
  const all = (
    root = window.document,
    { getAnimations } = Document.prototype,
    { querySelectorAll } = Document.prototype,
  ) => {
    const found = [...getAnimations.call(root)];
    for (const element of querySelectorAll.call(root, "*")) {
      const tree = read(Element, "shadowRoot", element);
      if (tree) found.push(...all(tree, ShadowRoot.prototype, DocumentFragment.prototype));
    }
    return found;
  };
  const name = (animation) =>
    `${animation.effect.pseudoElement} ${animation.animationName ?? animation.transitionProperty}`;
  const kept = new Map();
  const known = new Set();

  own.resized ??= {
    keep() {
      for (const animation of all()) {
        const { effect, currentTime, playState, transitionProperty } = animation;
        known.add(animation);
        if (!effect?.target) continue;
        const state = { currentTime, isPaused: playState === "paused" };
        if (transitionProperty) Object.assign(state, { timing: effect.getTiming(), keyframes: effect.getKeyframes() });
        const { target } = effect;
        (kept.get(target) ?? kept.set(target, new Map()).get(target)).set(name(animation), state);
      }
    },
    // An animation that has begun again is where it was before, and a new one at its end.
    restore() {
      for (const animation of all())
        try {
          if (known.has(animation)) continue;
          const { effect, timeline } = animation;
          const before = kept.get(effect.target)?.get(name(animation));
          if (before?.keyframes) {
            effect.setKeyframes(before.keyframes);
            effect.updateTiming(before.timing);
          }
          if (before?.isPaused) animation.pause();
          if (before && (before.isPaused || timeline instanceof DocumentTimeline))
            animation.currentTime = before.currentTime;
          else if (timeline instanceof DocumentTimeline) animation.finish();
        } catch {}
    },
  };
}
