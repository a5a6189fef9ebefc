//! Pages whose end is some hundred milliseconds of timers away, and that draw their number only there.
//!
//! Invariant: every page is at its end 950 ms after its `load` at the latest.

use std::fmt::Write as _;

use super::identity::{self, BITS, SIDE};

/// In what way a page comes to its end: a script that calls `end()`, with `MS` for its time.
const WAYS: [&str; 8] = [
    // One timer.
    "setTimeout(end, MS)",
    // A chain of timers.
    "let left = 9; const next = () => left-- ? setTimeout(next, MS / 10) : end(); next()",
    // A counter.
    "let count = 0; const counter = setInterval(() => { \
       if (++count === 6) { clearInterval(counter); end() } }, MS / 7)",
    // Animation frames behind a timer.
    "setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(end)), MS)",
    // A transition that a timer starts.
    "slow = true; setTimeout(end, MS / 2)",
    // An animation and its promise.
    "setTimeout(() => document.body.animate([{ opacity: .5 }, { opacity: 1 }], MS / 2).finished.then(end), MS / 3)",
    // Promises between timers.
    "const sleep = time => new Promise(then => setTimeout(then, time)); \
     (async () => { for (let n = 0; n < 5; n++) await sleep(MS / 6); end() })()",
    // Timers that race: the later one must win.
    "setTimeout(() => { document.body.style.background = 'red' }, MS / 2); \
     setTimeout(() => { document.body.style.background = 'white'; end() }, MS)",
];

/// How a page's way is called in reports: its place among the ways.
pub(super) fn way(number: usize) -> usize {
    number % WAYS.len()
}

/// The page of this number, whose timers take `ms`.
pub(super) fn page(number: u16, ms: u32) -> String {
    let colours: Vec<_> = identity::bits(number).map(|set| usize::from(!set).to_string()).collect();
    let mut squares = String::new();
    for place in 0..2 * BITS {
        let (left, top) = (place % BITS * SIDE, place / BITS * SIDE);
        let _ = write!(squares, "<i style=left:{left}px;top:{top}px></i>");
    }
    let [set, unset] = identity::COLOURS;
    let way = WAYS[way(number.into())].replace("MS", &ms.to_string());
    format!(
        "<!doctype html><style>body {{ margin: 50px 0 0 }} i {{ position: absolute; width: {SIDE}px; \
         height: {SIDE}px; background: red; -webkit-print-color-adjust: exact }}</style><body>{squares}<p>waiting</p>\
         <script>let slow = false;\
         const colours = [{}], end = () => {{\
           document.querySelectorAll('i').forEach((square, place) => {{\
             if (slow) square.style.transition = 'background-color {}ms linear';\
             square.style.backgroundColor = ['{set}', '{unset}'][colours[place]] }});\
           document.querySelector('p').textContent = 'number {number} is done' }};\
         onload = () => {{ {way} }}</script>",
        colours.join(","),
        ms / 3,
    )
}

/// What the text of the page of this number says at its end.
pub(super) fn text(number: u16) -> String {
    format!("number {number} is done")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_holds_its_number_and_time() {
        let page = page(9, 400);
        assert!(page.contains("number 9 is done") && page.contains("left-- ? setTimeout(next, 400 / 10)"));
        assert_eq!(page.matches("<i ").count(), 32);
        assert!(page.contains("colours = [0,1,1,0,1,"));
    }
}
