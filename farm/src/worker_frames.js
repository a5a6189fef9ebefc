// Gives a worker animation frames by its timers, in real time like all of a worker. Chromium's own need frames of the page, and
// the page's frame after a worker's last one never ends, because the worker does not answer it. Runs in the world of the
// worker's scripts before these start, so they can change nothing that it calls.
function giveFrames() {
  if (!self.requestAnimationFrame) return;
  self.requestAnimationFrame = function requestAnimationFrame(callback) {
    return setTimeout(() => callback(performance.now()), 1000 / 60);
  };
  self.cancelAnimationFrame = function cancelAnimationFrame(handle) {
    clearTimeout(handle);
  };
}
