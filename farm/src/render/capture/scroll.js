// Defines `own.scroll` in the isolated world of a page that is scrolled through, and completes when that can be used.
// Nothing here is a callback of an event, a frame or a timer, which would count as a script of the page: continuations of
// promises do not.
new Promise(ready => {
    const { getAttribute, setAttribute, removeAttribute, getBoundingClientRect, querySelectorAll } = Element.prototype;
    const from = { left: scrollX, top: scrollY };
    // Its time changes at the beginning of the next frame of the main thread.
    const timeline = new ScrollTimeline();
    const changes = new Map();
    let seen, run, ran;

    // Chromium writes a style or a list of classes that a script changes in its own way.
    const parsed = document.createElement('i').style;
    const normal = (name, value) => {
        if (name !== 'style' || value === null) return value?.trim().replace(/\s+/g, ' ');
        parsed.cssText = value;
        return parsed.cssText;
    };

    // What scripts change while the page is scrolled: the value of each attribute before the first change, and the
    // latest other one.
    const watch = new MutationObserver(records => {
        for (const { target, attributeName, oldValue } of records) {
            const changed = changes.get(target) ?? changes.set(target, new Map()).get(target);
            const value = normal(attributeName, oldValue);
            const change = changed.get(attributeName) ?? { first: value };
            if (value !== change.first) change.shown = oldValue;
            changed.set(attributeName, change);
        }
    });
    watch.observe(window.document, { subtree: true, attributes: true, attributeOldValue: true });

    const isBelow = element => {
        for (let part = element; part; part = as(Element, part).parentElement)
            if (getComputedStyle(part).position === 'fixed') return false;
        return getBoundingClientRect.call(element).top >= innerHeight;
    };

    const isHidden = element => [element, ...querySelectorAll.call(element, '*')].some(part => {
        const { opacity, visibility } = getComputedStyle(part);
        return opacity === '0' || visibility === 'hidden';
    });

    const walk = own.scroll = {
        isIdle: false,
        // Scrolls, and returns whether there was anything to scroll.
        to(top) {
            const start = scrollY;
            seen = timeline.currentTime?.value;
            scrollTo({ left: from.left, top: top ?? from.top, behavior: 'instant' });
            return scrollY !== start;
        },
        // Whether the main thread has had a frame since then.
        hadFrame: () => timeline.currentTime?.value !== seen,
        // Completes after the tasks of the frame: intersection observers are notified in tasks of low priority. The
        // continuation of `yield` has the priority of the task below. `isIdle` is true after it.
        tasks() {
            walk.isIdle = false;
            // On an overloaded machine the task below may not have begun. It begins with `ran`.
            return new Promise(done => { ran = done; run?.() });
        },
        // Scripts that show a section when it comes into view may hide it when it has left it. What is hidden below the
        // viewport, as before the first change, is shown again. Animations must be finished.
        keepShown() {
            watch.disconnect();
            let kept = 0;
            for (const [element, changed] of changes) for (const [name, change] of changed) {
                const value = normal(name, getAttribute.call(element, name));
                if (!('shown' in change) || value !== change.first || !isBelow(element) || !isHidden(element)) continue;
                if (change.shown === null) removeAttribute.call(element, name);
                else setAttribute.call(element, name, change.shown);
                kept++;
            }
            return kept;
        },
    };
    scheduler.postTask(async () => {
        for (;;) {
            const next = new Promise(start => { run = start });
            walk.isIdle = true;
            (ran ?? ready)(0);
            await next;
            await scheduler.yield();
        }
    }, { priority: 'background' });
})
