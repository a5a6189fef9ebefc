// Defines `own.scroll` in the isolated world of a page that is scrolled through, and completes when that can be used.
// Nothing here is a callback of an event, a frame or a timer, which would count as a script of the page: continuations of
// promises do not.
function defineScroll() {
  return new Promise((ready) => {
    const from = { left: scrollX, top: scrollY };
    // Its time changes at the beginning of the next frame of the main thread.
    const timeline = new ScrollTimeline();
    let seen;
    let run;
    let ran;

    const walk = {
      isIdle: false,
      // Scrolls, and returns whether there was anything to scroll.
      to(top) {
        const start = scrollY;
        seen = timeline.currentTime?.value;
        scrollTo({ left: from.left, top: top ?? from.top, behavior: "instant" });
        return scrollY !== start;
      },
      // Whether the main thread has had a frame since then.
      hadFrame: () => timeline.currentTime?.value !== seen,
      // Completes after the tasks of the frame: intersection observers are notified in tasks of low priority. The
      // continuation of `yield` has the priority of the task below. `isIdle` is true after it.
      tasks() {
        walk.isIdle = false;
        // On an overloaded machine the task below may not have begun. It begins with `ran`.
        return new Promise((done) => {
          ran = done;
          run?.();
        });
      },
    };
    own.scroll = walk;
    scheduler.postTask(
      async () => {
        for (;;) {
          const next = new Promise((start) => {
            run = start;
          });
          walk.isIdle = true;
          (ran ?? ready)(0);
          await next;
          await scheduler.yield();
        }
      },
      { priority: "background" },
    );
  });
}
