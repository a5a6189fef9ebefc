// Defines `own.frame`, which records the next frame of the main thread and the end of its tasks: intersection observers are
// notified in tasks of low priority, and lazy images start to load in further ones.
function watchFrame() {
  const watch = { drawn: false };
  own.frame = watch;
  watch.done = new Promise((done) => {
    const isShown = ({ top, bottom, left, right, width, height }) =>
      width > 0 && height > 0 && top < innerHeight && left < innerWidth && bottom > 0 && right > 0;
    const isDeferred = (image) =>
      image.loading === "lazy" && !image.complete && !image.currentSrc && isShown(image.getBoundingClientRect());
    let left = 100;
    const check = () =>
      left-- > 0 && [...document.images].some(isDeferred)
        ? setTimeout(check, 2)
        : scheduler.postTask(done, { priority: "background" });
    requestAnimationFrame(() => {
      watch.drawn = true;
    });
    const root = document.documentElement;
    const observer = new IntersectionObserver(() => {
      observer.disconnect();
      setTimeout(check);
    });
    if (root) observer.observe(root);
    else setTimeout(check);
  });
}
