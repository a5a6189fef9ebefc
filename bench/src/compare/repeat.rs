//! Fills a page's repeated part with as much as is asked for.
//!
//! Invariant: the same page and count give the same text on every machine.

use anyhow::{Context as _, Result};

const BEGIN: &str = "<!-- repeat -->";
const END: &str = "<!-- /repeat -->";
const WORDS: [&str; 16] = [
    "brass", "paper", "lever", "ink", "frame", "roller", "type", "plate", "binding", "margin", "proof",
    "sheet", "galley", "linen", "press", "folio",
];

/// The page with its repeated part this many times.
pub(super) fn times(page: &str, count: u32) -> Result<String> {
    let (before, part, after) = split(page)?;
    let parts: String = (1..=count).map(|number| fill(part, number)).collect();
    Ok([before, &parts, after].concat())
}

/// The page with its repeated part as often as fits into this many bytes.
pub(super) fn up_to(page: &str, bytes: usize) -> Result<String> {
    let (before, part, after) = split(page)?;
    let mut html = before.to_owned();
    for number in 1.. {
        let next = fill(part, number);
        if html.len() + next.len() + after.len() > bytes {
            break;
        }
        html.push_str(&next);
    }
    html.push_str(after);
    Ok(html)
}

fn split(page: &str) -> Result<(&str, &str, &str)> {
    let (before, rest) = page.split_once(BEGIN).context("a page without a repeated part")?;
    let (part, after) = rest.split_once(END).context("a repeated part without an end")?;
    Ok((before, part, after))
}

/// `{n}` is the part's number; `{a}` … `{e}` and `{h}` are numbers, `{word}` and `{words}` words
/// that follow from it.
fn fill(part: &str, number: u32) -> String {
    let mut state = number;
    // The constants of a well-known generator (Numerical Recipes); quality does not matter here.
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

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "a<!-- repeat -->[{n} {words}]<!-- /repeat -->z";

    #[test]
    fn a_part_is_repeated_and_numbered() {
        let page = times(PAGE, 3).unwrap();
        assert!(page.starts_with("a[1 ") && page.ends_with("]z") && page.contains("][3 "), "{page}");
        assert_eq!(page, times(PAGE, 3).unwrap());
        times("no part", 1).unwrap_err();
    }

    #[test]
    fn a_size_is_filled_and_not_passed() {
        let page = up_to(PAGE, 1_000).unwrap();
        assert!((900..=1_000).contains(&page.len()), "{}", page.len());
    }
}
