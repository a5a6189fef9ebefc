// Scrolls through the page in steps of a viewport with a pause at each, and back. After that, the attribute
// data-read of the root element lists the milliseconds that have passed since.
{
  document.currentScript.remove();
  const pause = milliseconds => new Promise(then => setTimeout(then, milliseconds));
  const drawn = () => new Promise(then => requestAnimationFrame(then));
  const read = async () => {
    await pause(1000);
    const start = { left: scrollX, top: scrollY, behavior: 'instant' };
    // What scrolling adds at the end is not read, so that pages without an end have one.
    const height = Math.min(document.scrollingElement?.scrollHeight ?? 0, 30 * innerHeight);
    for (let top = innerHeight; top < height; top += innerHeight) {
      scrollTo({ ...start, top });
      // The page hears of a scroll with its next frame.
      await drawn();
      await pause(400);
    }
    scrollTo(start);
    await drawn();
    await pause(1000);
    let passed = 0;
    for (const milliseconds of [0, 3000, 9000]) {
      await pause(milliseconds - passed);
      passed = milliseconds;
      const { dataset } = document.documentElement;
      dataset.read = `${dataset.read ?? ''} ${milliseconds}`;
    }
  };
  if (window === top) addEventListener('load', read);
}
