// Replaces Math.random by a generator with a fixed seed, so that pages are the same in every run.
(() => {
  let state = 1;
  Math.random = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
})();
