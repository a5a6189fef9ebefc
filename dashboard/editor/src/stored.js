// What a browser keeps of an origin. Storage that is not available, as in some private windows, keeps nothing.
export function stored(act) {
  try {
    return act(localStorage);
  } catch {
    return null;
  }
}
