// Requests an animation frame in every frame, because Chromium runs idle callbacks only after frames in which a script ran.
// Defines `own.callbacks`, their number; `own.rest`, which ends them; and `own.requests`, which returns what scripts of the page
// have requested since the previous call, in the documents that can be reached from here: 1 for animation frames and
// scrolling, plus 2 for what needs drawn frames. The ids of a document's callbacks are consecutive in all worlds.
function keepAliveFrames() {
  let made = 0;
  let latest;
  let moved = false;
  const ids = new WeakMap();
  const next = () => {
    made++;
    latest = requestAnimationFrame(next);
    own.callbacks++;
  };
  const read = (view) => {
    const before = ids.get(view);
    const ours = view === window ? made : 0;
    const frame = view.requestAnimationFrame(() => 0);
    const idle = view.requestIdleCallback(() => 0);
    view.cancelAnimationFrame(frame);
    view.cancelIdleCallback(idle);
    ids.set(view, { frame, idle });
    const active = as(Document, view.document).activeViewTransition ? 3 : 0;
    return active | (before ? (frame !== before.frame + ours + 1) + 2 * (idle !== before.idle + 1) : 0);
  };
  const visit = (view) => {
    let found = 0;
    try {
      found = read(view);
    } catch {
      return 0;
    }
    for (let at = 0; at < view.length; at++) found |= visit(view[at]);
    return found;
  };
  own.callbacks = -1;
  next();
  own.rest = () => cancelAnimationFrame(latest);
  const note = () => {
    moved = true;
  };
  addEventListener("scroll", note, { capture: true, passive: true });
  own.requests = () => {
    const found = visit(window) | moved;
    made = 0;
    moved = false;
    return found;
  };
  own.requests();
}
