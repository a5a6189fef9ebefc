//! Repeats the part of a page between two comments and fills in its placeholders.
//!
//! Invariant: the same page and count give the same text on every machine.

use anyhow::{Context as _, Result};

const BEGIN: &str = "<!-- repeat -->";
const END: &str = "<!-- /repeat -->";
const WORDS: [&str; 16] = [
    "brass", "paper", "lever", "ink", "frame", "roller", "type", "plate", "binding", "margin", "proof",
    "sheet", "galley", "linen", "press", "folio",
];

/// The page with `count` copies of its repeated part.
pub(super) fn repeat(page: &str, count: u32) -> Result<String> {
    let (before, part, after) = split(page)?;
    let parts: String = (1..=count).map(|number| substitute(part, number)).collect();
    Ok([before, &parts, after].concat())
}

/// The page with as many copies of its repeated part as fit into `max_bytes`.
pub(super) fn fill_to(page: &str, max_bytes: usize) -> Result<String> {
    let (before, part, after) = split(page)?;
    let mut html = before.to_owned();
    for number in 1.. {
        let next = substitute(part, number);
        if html.len() + next.len() + after.len() > max_bytes {
            break;
        }
        html.push_str(&next);
    }
    html.push_str(after);
    Ok(html)
}

fn split(page: &str) -> Result<(&str, &str, &str)> {
    let (before, rest) = page.split_once(BEGIN).context("the page has no repeated part")?;
    let (part, after) = rest.split_once(END).context("the repeated part has no end")?;
    Ok((before, part, after))
}

/// Replaces `{n}` by the number of the copy, `{a}` … `{e}` and `{h}` by pseudo-random numbers and
/// `{word}` and `{words}` by pseudo-random words.
fn substitute(part: &str, number: u32) -> String {
    let mut state = number;
    // The linear congruential generator of Numerical Recipes; its quality does not matter here.
    let mut next = |below: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) % below
    };
    let mut filled = part.replace("{n}", &number.to_string());
    for (name, below) in [("{a}", 200), ("{b}", 90), ("{c}", 800), ("{d}", 90), ("{e}", 90), ("{h}", 360)] {
        filled = filled.replace(name, &(10 + next(below)).to_string());
    }
    let mut word = || WORDS[next(16) as usize];
    while filled.contains("{words}") {
        let words = [word(), " ", word(), " and ", word(), " ", word()].concat();
        filled = filled.replacen("{words}", &words, 1);
    }
    filled.replace("{word}", word())
}
