// Defines `own.shown`: what was drawn when the page was scrolled through, and is not drawn any more. Scripts that show a section
// when it comes into view may hide it when it has left it, in any way: so what is compared is how much of an element is drawn.
// Nothing is measured as long as scripts change no attributes and nothing is animated.
function defineShown() {
  const getter = (type, name) => Object.getOwnPropertyDescriptor(type.prototype, name).get;
  const { getAttribute, setAttribute, removeAttribute, getBoundingClientRect, querySelectorAll, animate } =
    Element.prototype;
  const { getRootNode, contains } = Node.prototype;
  const parentElement = getter(Node, "parentElement");
  const isConnected = getter(Node, "isConnected");
  const shadowRoot = getter(Element, "shadowRoot");
  const parentOf = (element) => parentElement.call(element) ?? getRootNode.call(element).host;
  const inTree = (root, query) => {
    const elements = [...query.call(root, "*")];
    return elements.concat(
      ...elements
        .map((element) => shadowRoot.call(element))
        .filter(Boolean)
        .map((tree) => inTree(tree, DocumentFragment.prototype.querySelectorAll)),
    );
  };

  // Elements whose attributes have changed, with the values before the first change; and those whose style changes now.
  const changed = new Map();
  const styled = new Set();
  const note = (records) => {
    for (const { target, attributeName, oldValue } of records) {
      if (attributeName === "style") styled.add(target);
      const first = changed.get(target) ?? changed.set(target, new Map()).get(target);
      if (!first.has(attributeName)) first.set(attributeName, oldValue);
    }
  };
  const watch = new MutationObserver(note);
  const observed = { subtree: true, attributes: true, attributeOldValue: true };
  const all = inTree(window.document, Document.prototype.querySelectorAll);
  for (const root of [window.document, ...all.map((element) => shadowRoot.call(element)).filter(Boolean)])
    watch.observe(root, observed);

  const attributesOf = (element) =>
    [...changed.get(element).keys()].map((name) => [name, getAttribute.call(element, name)]);
  const put = (element, attributes) => {
    for (const [name, value] of attributes) {
      if (getAttribute.call(element, name) === value) continue;
      if (value === null) removeAttribute.call(element, name);
      else setAttribute.call(element, name, value);
    }
  };
  const scripted = (animation) => Object.getPrototypeOf(animation) === Animation.prototype;

  // The part of a box that `clip-path` leaves.
  const unclipped = (shape, width, height) => {
    if (shape === "none") return 1;
    const [, name, text] = /^(\w+)\((.*)\)/.exec(shape) ?? [];
    const share = (value, whole) => (value.endsWith("%") ? parseFloat(value) / 100 : parseFloat(value) / whole || 0);
    const values = text?.match(/-?[\d.]+(?:%|px)/g) ?? [];
    if (name === "inset") {
      const [top = "0", right = top, bottom = top, left = right] = text.split(" round")[0].split(" ");
      return (
        Math.max(0, 1 - share(top, height) - share(bottom, height)) *
        Math.max(0, 1 - share(left, width) - share(right, width))
      );
    }
    if (name === "circle" || name === "ellipse")
      return /^[-\d.]/.test(text) ? Math.min(1, 4 * share(values[0], width) ** 2) : 1;
    if (name !== "polygon") return 1;
    const points = text
      .replace(/^\w+,/, "")
      .split(",")
      .map((point) => point.trim().split(" "));
    const [x, y] = [
      points.map((point) => share(point[0], width)),
      points.map((point) => share(point[1] ?? "0", height)),
    ];
    return (
      Math.abs(
        x.reduce((sum, at, n) => {
          const to = (n + 1) % x.length;
          return sum + at * y[to] - x[to] * y[n];
        }, 0),
      ) / 2
    );
  };

  const filtered = (filter) =>
    [...filter.matchAll(/(blur|opacity|brightness)\(([\d.]+)/g)].reduce(
      (share, [, name, value]) => share * (name === "blur" ? 1 / (1 + +value) : Math.min(1, value)),
      1,
    );
  // What is compared for being the same: it cannot be said which of two is drawn more.
  const lookOf = (element, { mask }) =>
    [mask].concat(
      !changed.has(element)
        ? []
        : ["::before", "::after"].map((part) => {
            const { content, opacity, visibility, transform, clipPath, width, height } = getComputedStyle(
              element,
              part,
            );
            return content === "none" ? content : [opacity, visibility, transform, clipPath, width, height].join();
          }),
    );

  // How elements are drawn now, with their ancestors.
  const everything = { left: -Infinity, right: Infinity, top: -Infinity, bottom: Infinity };
  const measuring = () => {
    const known = new Map();
    const measure = (element) => {
      if (!element) return { opacity: 1, clip: { ...everything, left: 0, right: innerWidth }, changed: [] };
      if (known.has(element)) return known.get(element);
      const parent = measure(parentOf(element));
      const style = getComputedStyle(element);
      const box = getBoundingClientRect.call(element);
      const { opacity, visibility, position, overflow, clipPath, filter, transform, backfaceVisibility, color } = style;
      const { clip } = parent;
      const width = Math.min(box.right, clip.right) - Math.max(box.left, clip.left);
      const height = Math.min(box.bottom, clip.bottom) - Math.max(box.top, clip.top);
      const isRoot = element === document.documentElement || element === document.body;
      const drawn = {
        box,
        own: {
          opacity,
          visibility,
          transform,
          translate: style.translate,
          rotate: style.rotate,
          scale: style.scale,
          clipPath,
          filter,
        },
        isFixed: parent.isFixed || position === "fixed",
        isSticky: parent.isSticky || position === "sticky",
        opacity: parent.opacity * opacity * filtered(filter),
        look: lookOf(element, style),
        clip:
          overflow === "visible" || isRoot
            ? clip
            : {
                left: Math.max(clip.left, box.left),
                right: Math.min(clip.right, box.right),
                top: Math.max(clip.top, box.top),
                bottom: Math.min(clip.bottom, box.bottom),
              },
        changed: changed.has(element) && !isRoot ? [...parent.changed, element] : parent.changed,
      };
      const isShown =
        visibility === "visible" &&
        width > 0 &&
        height > 0 &&
        !(backfaceVisibility === "hidden" && transform.startsWith("matrix3d") && new DOMMatrix(transform).m33 < 0) &&
        !/^(transparent|rgba\(.*, 0\)|.*\/ 0\))$/.test(color);
      drawn.amount = isShown ? drawn.opacity * width * height * unclipped(clipPath, box.width, box.height) : 0;
      known.set(element, drawn);
      return drawn;
    };
    return measure;
  };

  const isLess = (drawn, than) => drawn.amount < 0.9 * than.amount;
  const isOther = (drawn, than) =>
    isLess(drawn, than) || drawn.look.some((look, at) => look !== (than.look[at] ?? look));
  const overlaps = (box, other) =>
    Math.min(box.right, other.right) - Math.max(box.left, other.left) > 0.5 * box.width &&
    Math.min(box.bottom, other.bottom) - Math.max(box.top, other.top) > 0.5 * box.height;

  // Elements that have come into view, as they were drawn most and least.
  const seen = new Map();
  const see = (element, measure) => {
    const box = getBoundingClientRect.call(element);
    const before = seen.get(element);
    if (
      box.top >= innerHeight ||
      (before && box.bottom < -innerHeight && before.most.opacity >= 1 && before.most.amount > 0)
    )
      return;
    const drawn = measure(element);
    if (drawn.isFixed) return;
    drawn.attributes = drawn.changed.map((element) => [element, attributesOf(element)]);
    drawn.top = box.top + scrollY;
    if (!before) seen.set(element, { most: drawn, least: drawn });
    else if (isLess(drawn, before.most)) before.least = drawn;
    else if (box.bottom > 0 || !isOther(drawn, before.most)) before.most = drawn;
  };

  const amounts = new Map();
  const animationsOf = () =>
    Document.prototype.getAnimations.call(window.document).filter(({ effect }) => effect?.target);
  own.shown = {
    // Scripts may change styles in each frame. Those of the next frames are noted.
    watch() {
      note(watch.takeRecords());
      styled.clear();
    },
    // Measures what has changed above the bottom of the viewport. Returns whether scripts draw more and more of an element
    // in view.
    measure() {
      note(watch.takeRecords());
      const roots = new Set([...changed.keys(), ...animationsOf().map(({ effect }) => effect.target)]);
      const measure = measuring();
      const elements = new Set();
      for (const root of roots) {
        if (!isConnected.call(root) || elements.has(root)) continue;
        for (const element of [root, ...querySelectorAll.call(root, "*")]) elements.add(element);
        const tree = shadowRoot.call(root);
        if (tree)
          for (const element of inTree(tree, DocumentFragment.prototype.querySelectorAll)) elements.add(element);
      }
      for (const element of elements) see(element, measure);
      let grows = false;
      for (const element of styled) {
        const { box, amount, isFixed } = measure(element);
        if (isFixed || box.top >= innerHeight || box.bottom <= 0) continue;
        grows ||= !(amount <= 1.01 * amounts.get(element));
        amounts.set(element, amount);
      }
      return grows;
    },
    // Shows again what is drawn less than it was in view, and was so before it came into view. Not what another element has
    // replaced, which was drawn less before. Returns how many elements are.
    keep() {
      note(watch.takeRecords());
      watch.disconnect();
      let measure = measuring();
      const isLost = (element, { most }) => {
        const now = measure(element);
        return !now.isFixed && !(now.isSticky && now.box.top < innerHeight) && isOther(now, most);
      };
      let lost = [...seen].filter(([element, drawn]) => isConnected.call(element) && isLost(element, drawn));
      if (!lost.length) return 0;
      // No transition begins. One of these that runs goes on.
      const still = new CSSStyleSheet();
      still.replaceSync(
        "*, *::before, *::after { transition-duration: 0s !important; transition-delay: 0s !important }",
      );
      const roots = new Set([window.document, ...lost.map(([element]) => getRootNode.call(element))]);
      for (const root of roots) root.adoptedStyleSheets = [...root.adoptedStyleSheets, still];

      // As before the page was scrolled.
      const now = [...changed.keys()].map((element) => [element, attributesOf(element)]);
      const effects = animationsOf()
        .filter(scripted)
        .map((animation) => [animation, animation.effect]);
      const states = new Map([...seen.keys()].map((element) => [element, measure(element)]));
      for (const [element, first] of changed) put(element, first);
      for (const [animation] of effects) animation.effect = null;
      measure = measuring();
      lost = lost.filter(([element, { most }]) => isOther(measure(element), most));
      for (const [element, attributes] of now) put(element, attributes);
      for (const [animation, effect] of effects) animation.effect = effect;

      const replacing = [...seen].filter(([element, { least }]) => isLess(least, states.get(element)));
      const at = ({ left, right, width, height }, top) => ({ left, right, width, height, top, bottom: top + height });
      lost = lost.filter(
        ([element, { most }]) =>
          !replacing.some(
            ([other]) =>
              !contains.call(element, other) &&
              !contains.call(other, element) &&
              overlaps(at(most.box, most.top), at(states.get(other).box, states.get(other).box.top + scrollY)),
          ),
      );
      for (const [element, drawn] of lost) {
        measure = measuring();
        if (isLost(element, drawn)) for (const [parent, attributes] of drawn.most.attributes) put(parent, attributes);
      }
      // Scripts may still be hiding it, and attributes of the root and animations of scripts are left as they are.
      for (const [element, { most }] of lost) {
        const before = states.get(element).own;
        const frame = Object.fromEntries(
          Object.entries(most.own).filter(([name, value]) => changed.has(element) || value !== before[name]),
        );
        if (Object.keys(frame).length) animate.call(element, [frame, frame], { duration: 1, fill: "both" }).finish();
      }
      getComputedStyle(document.documentElement).opacity;
      for (const root of roots)
        root.adoptedStyleSheets = [...root.adoptedStyleSheets].filter((sheet) => sheet !== still);
      return lost.length;
    },
  };
}
