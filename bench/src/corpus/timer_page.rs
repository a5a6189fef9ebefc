//! Pages that run timers for several hundred milliseconds and draw their number at the end.
//!
//! Invariant: every page has drawn its number at most 950 ms after `load`.

use std::fmt::Write as _;

use crate::number_marker::{self, BITS, SQUARE_SIZE};

/// Scripts that call `end()` after about `MS` milliseconds.
const SCRIPTS: [&str; 8] = [
    // One timer.
    "setTimeout(end, MS)",
    // A chain of timers.
    "let left = 9; const next = () => left-- ? setTimeout(next, MS / 10) : end(); next()",
    // A counter.
    "let count = 0; const counter = setInterval(() => { \
       if (++count === 6) { clearInterval(counter); end() } }, MS / 7)",
    // Animation frames after a timer.
    "setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(end)), MS)",
    // A transition that a timer starts.
    "slow = true; setTimeout(end, MS / 2)",
    // An animation and its promise.
    "setTimeout(() => document.body.animate([{ opacity: .5 }, { opacity: 1 }], MS / 2).finished.then(end), MS / 3)",
    // Promises between timers.
    "const sleep = time => new Promise(then => setTimeout(then, time)); \
     (async () => { for (let n = 0; n < 5; n++) await sleep(MS / 6); end() })()",
    // Two timers: the later one determines the result.
    "setTimeout(() => { document.body.style.background = 'red' }, MS / 2); \
     setTimeout(() => { document.body.style.background = 'white'; end() }, MS)",
];

/// The index of the script of a page.
pub(super) fn script(number: usize) -> usize {
    number % SCRIPTS.len()
}

/// The markup of a page whose timers take `ms` milliseconds.
pub(super) fn markup(number: u16, ms: u32) -> String {
    let colours: Vec<_> = number_marker::bits(number).map(|set| usize::from(!set).to_string()).collect();
    let mut squares = String::new();
    for index in 0..2 * BITS {
        let (left, top) = (index % BITS * SQUARE_SIZE, index / BITS * SQUARE_SIZE);
        let _ = write!(squares, "<i style=left:{left}px;top:{top}px></i>");
    }
    let [set, unset] = number_marker::COLOURS;
    let script = SCRIPTS[script(number.into())].replace("MS", &ms.to_string());
    format!(
        "<!doctype html><style>body {{ margin: 50px 0 0 }} i {{ position: absolute; width: {SQUARE_SIZE}px; \
         height: {SQUARE_SIZE}px; background: red; -webkit-print-color-adjust: exact }}</style><body>{squares}<p>waiting</p>\
         <script>let slow = false;\
         const colours = [{}], end = () => {{\
           document.querySelectorAll('i').forEach((square, index) => {{\
             if (slow) square.style.transition = 'background-color {}ms linear';\
             square.style.backgroundColor = ['{set}', '{unset}'][colours[index]] }});\
           document.querySelector('p').textContent = 'number {number} is done' }};\
         onload = () => {{ {script} }}</script>",
        colours.join(","),
        ms / 3,
    )
}

/// The text of a page at its end.
pub(super) fn text(number: u16) -> String {
    format!("number {number} is done")
}
