//! The proof that no script of a loaded page runs again: for pages whose scripts have built the document and ended.
//!
//! A page whose scripts have run is static if these conditions hold besides those of `static_page`:
//! 1. It has never set a timer nor requested an animation frame or an idle callback: the handles of these functions are
//!    counted from 1 in each document, for all worlds, and the farm gets the first ones.
//! 2. The text of every script is known: all are in the markup, none was requested. No element has a handler in its markup.
//! 3. Every word of that text that is a global name of Chromium is one of [`GLOBALS`], and every event listened to is one of
//!    [`EVENTS`]. So what other versions of Chromium add is excluded as well.
//! 4. No word is one of [`WORDS`], and none of [`MEMBERS`] is the member of an object.
//! 5. The document has no element that changes by itself, in the markup or by a script, and no focus ([`CHECK`]).
//!
//! Words in strings and data count, except in a text for names ([`is_prose`]). A name that a script puts together from parts
//! is not seen. What such a script does is noticed all the same if it is a call of condition 1, an element, or creates an
//! animation, a frame, a request or a worker.

use std::{borrow::Cow, collections::BTreeSet};

use serde_json::{Value, json};
use tokio::time::timeout;

use super::{main_thread::TASKS_TIMEOUT, rendering::Rendering, static_page};
use crate::error::JobError;

/// Global names that start nothing, or only what is known otherwise: timers and frames by their handles, images by their
/// requests. The last line has common names of fields and variables.
const GLOBALS: &str = "Array BigInt Boolean Date Error Float32Array Float64Array Infinity Int32Array Intl JSON Map Math NaN \
    Number Object Proxy RangeError Reflect RegExp Set String Symbol TypeError Uint8Array Uint8ClampedArray Uint32Array WeakMap \
    WeakSet decodeURI decodeURIComponent encodeURI encodeURIComponent globalThis isFinite isNaN parseFloat parseInt undefined \
    console document self window performance getComputedStyle structuredClone \
    DOMMatrix DOMParser DocumentFragment Element HTMLElement Image ImageData Node Path2D URLSearchParams XMLSerializer \
    devicePixelRatio innerHeight innerWidth outerHeight outerWidth pageXOffset pageYOffset scrollX scrollY \
    setTimeout setInterval clearTimeout clearInterval requestAnimationFrame cancelAnimationFrame requestIdleCallback \
    cancelIdleCallback \
    Event Option Range Text closed event find frames length name open origin parent status top";
/// Events that have been, or follow a user's action.
const EVENTS: &str = "DOMContentLoaded load readystatechange change click dblclick input keydown keypress keyup mousedown \
    mouseenter mouseleave mousemove mouseout mouseover mouseup submit";
/// Words that no script may have: of asynchronous code, scripts, media, callbacks, scrolling that may be smooth, and of
/// what [`CHECK`] does not see.
const WORDS: &str = "async await import fromAsync script audio AUDIO video VIDEO \
    captureStream getAnimations requestFullscreen requestPointerLock requestVideoFrameCallback startViewTransition toBlob \
    transferControlToOffscreen webkitRequestFullScreen webkitRequestFullscreen \
    scrollIntoView scrollIntoViewIfNeeded scrollLeft scrollTop requestSubmit \
    attachShadow designMode httpEquiv parseHTMLUnsafe setHTMLUnsafe";
/// Words that may be others, but not the member of an object in a script: of promises, functions from text, animations,
/// actions of a user.
const MEMBERS: &str =
    "catch constructor finally subscribe then animate decode fonts timeline click hash submit";
/// Other words with the first letters of a handler.
const NO_HANDLERS: &str = "once one ones only onto";
/// Words of the language that may stand beside a name.
const KEYWORDS: &str = "accessor as async await break case catch class const continue debugger default delete do else enum \
    export extends finally for from function get if import in instanceof let new of return set static switch throw try typeof \
    using var void while with yield";
/// Scripts are read up to this length in all. Longer ones are libraries, which always have words that are excluded.
const MAX_SCRIPT_BYTES: usize = 64 << 10;

/// Whether the window has none of the `names`, the document is as in condition 5, and the next handles are the `expected`
/// ones, before and after the tasks of the page. Style and layout are brought up to date between them, because that creates
/// animations; earlier it could change what a later script does.
const CHECK: &str = "(own.hasEnded = async (names, ...expected) => {\
    const { activeElement, body, documentElement } = document, none = () => {};\
    const isNext = calls => { const handles =\
        [setTimeout(none), requestAnimationFrame(none), requestIdleCallback(none)], [timer, frame, idle] = handles;\
        clearTimeout(timer); cancelAnimationFrame(frame); cancelIdleCallback(idle);\
        return handles.every((handle, at) => handle === expected[at] + calls) };\
    if (!documentElement || ![null, body, documentElement].includes(activeElement) ||\
        names.some(name => Object.hasOwn(window, name)) || document.querySelector('CHANGING, meta[http-equiv], [autofocus]') || !isNext(0)) return false;\
    as(Element, documentElement).getBoundingClientRect();\
    await new Promise(done => scheduler.postTask(done, { priority: 'background' }));\
    return isNext(1) })";
/// The handles that [`CHECK`] gets first in a document without other calls.
const FIRST_HANDLES: [u32; 3] = [1, 1, 1];
/// Those after its two calls and a frame, which takes a timer and an animation frame (`main_thread`).
const HANDLES_AFTER_FRAME: [u32; 3] = [4, 4, 3];

/// Whether no script of the page can run again, and the document does not change by itself. To be called before the first
/// frame of the document.
pub(super) async fn have_ended(rendering: &mut Rendering<'_>) -> Result<bool, JobError> {
    let markup = static_page::markup(rendering).await?;
    let Some(names) = markup.as_deref().and_then(unknown_names) else { return Ok(false) };
    let check = CHECK.replace("CHANGING", &static_page::CHANGING_ELEMENTS.replace(' ', ", "));
    let check = format!("{check}({}, ...{FIRST_HANDLES:?})", json!(names));
    holds(rendering, &check).await
}

/// Whether [`have_ended`] still holds after one frame.
pub(super) async fn still_have_ended(rendering: &mut Rendering<'_>) -> Result<bool, JobError> {
    holds(rendering, &format!("own.hasEnded?.([], ...{HANDLES_AFTER_FRAME:?})")).await
}

async fn holds(rendering: &mut Rendering<'_>, check: &str) -> Result<bool, JobError> {
    // A page that is not idle may never run the task.
    let answer = timeout(TASKS_TIMEOUT, rendering.evaluate_isolated(check)).await;
    Ok(answer.ok().transpose()?.flatten() == Some(Value::Bool(true)))
}

/// The words of the scripts in some markup that must not be global names of Chromium; `None` if something else in the markup
/// may change the page.
fn unknown_names(markup: &str) -> Option<BTreeSet<Cow<'_, str>>> {
    if static_page::has_changing_part(markup) {
        return None;
    }
    // It has the positions of the markup.
    let lower = markup.to_ascii_lowercase();
    let mut names = BTreeSet::new();
    let (mut at, mut length, mut is_foreign) = (0, 0, false);
    loop {
        let start = lower[at..].find("<script").map_or(markup.len(), |start| at + start);
        if static_page::has_handler(&markup[at..start]) {
            return None;
        }
        if start == markup.len() {
            return Some(names);
        }
        is_foreign = ends_foreign(&lower[at..start], is_foreign);
        at = lower[start..].find("</script").map_or(markup.len(), |end| start + end);
        length += at - start;
        let goes_on = lower.as_bytes().get(at + "</script".len()).copied().is_some_and(is_part_of_name);
        if is_foreign || goes_on || length > MAX_SCRIPT_BYTES {
            return None;
        }
        add_names(&markup[start + "<script".len()..at], &mut names)?;
    }
}

/// Whether markup in lower case ends within an element of SVG or `MathML`, in which the text of a script has entities and
/// elements. `is_foreign` says whether it begins in one.
fn ends_foreign(markup: &str, is_foreign: bool) -> bool {
    let start = markup.rfind("<svg").max(markup.rfind("<math"));
    let end = markup.rfind("</svg").max(markup.rfind("</math"));
    if start == end { is_foreign } else { start > end }
}

/// Whether the name of a tag goes on with a byte.
fn is_part_of_name(byte: u8) -> bool {
    !byte.is_ascii_whitespace() && !matches!(byte, b'/' | b'>')
}

/// Adds the words of a script that must not be global names; `None` if another shows that the script may run again.
fn add_names<'s>(script: &'s str, names: &mut BTreeSet<Cow<'s, str>>) -> Option<()> {
    // After the start of a comment, a script may not end at the next end tag.
    if script.contains("<!--") || has_escape(script) {
        return None;
    }
    for word in words(script) {
        if may_run_again(word) {
            return None;
        }
        // Attributes may have capital letters.
        let name: Cow<'_, str> = match handled_event(word.text) {
            Some(event) if lists(EVENTS, &event) => continue,
            Some(event) => format!("on{event}").into(),
            None if is_prose(word) => continue,
            None => word.text.into(),
        };
        if !lists(GLOBALS, &name) {
            names.insert(name);
        }
    }
    Some(())
}

/// A word of a script, and the text before and after it.
#[derive(Clone, Copy)]
struct Word<'s> {
    before: &'s str,
    text: &'s str,
    after: &'s str,
}

/// The words of ASCII characters.
fn words(script: &str) -> impl Iterator<Item = Word<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at + script[at..].find(is_part_of_word)?;
        at = script[start..].find(|letter| !is_part_of_word(letter)).map_or(script.len(), |end| start + end);
        Some(Word { before: &script[..start], text: &script[start..at], after: &script[at..] })
    })
}

fn is_part_of_word(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_' || letter == '$'
}

/// Whether a word is part of a text, such as "Ink" in "Ink knife": no code has two words with only spaces between them, unless
/// one of them is a keyword.
fn is_prose(Word { before, after, .. }: Word<'_>) -> bool {
    const SPACES: [char; 2] = [' ', '\t'];
    let is_other = |neighbour: &str| !neighbour.is_empty() && !lists(KEYWORDS, neighbour);
    let last = before.trim_end_matches(SPACES).rsplit(|letter| !is_part_of_word(letter)).next();
    let next = after.trim_start_matches(SPACES).split(|letter| !is_part_of_word(letter)).next();
    before.ends_with(SPACES) && last.is_some_and(is_other)
        || after.starts_with(SPACES) && next.is_some_and(is_other)
}

/// The event in lower case of which a word may be the handler.
fn handled_event(word: &str) -> Option<String> {
    let (on, event) = word.split_at_checked(2)?;
    let is_handler = on.eq_ignore_ascii_case("on") && event.bytes().all(|byte| byte.is_ascii_alphabetic());
    (is_handler && !event.is_empty()).then(|| event.to_ascii_lowercase())
}

/// Whether a word shows that its script may run again.
fn may_run_again(word: Word<'_>) -> bool {
    let Word { before, text, after } = word;
    let is_skipped = |letter: char| !letter.is_ascii() || letter.is_whitespace() || is_quote(letter);
    match text {
        "addEventListener" => !listens_to_known_event(after),
        // The first part of the name of a handler.
        "on" => before.ends_with(is_quote),
        "when" | "with" => {
            after.trim_start_matches(|letter| is_skipped(letter) || letter == ']').starts_with('(')
        }
        _ if text.eq_ignore_ascii_case("javascript") => after.trim_start().starts_with(':'),
        _ if lists(MEMBERS, text) => before.trim_end_matches(is_skipped).ends_with(['.', '[']),
        _ => {
            let is_lower = text.bytes().all(|byte| byte.is_ascii_lowercase());
            let event = handled_event(text).filter(|_| is_lower && !lists(NO_HANDLERS, text));
            lists(WORDS, text) || event.is_some_and(|event| !lists(EVENTS, &event))
        }
    }
}

fn is_quote(letter: char) -> bool {
    matches!(letter, '\'' | '"' | '`')
}

/// Whether the text begins with arguments of which the first is one of [`EVENTS`] in quotes.
fn listens_to_known_event(text: &str) -> bool {
    let argument = text.trim_start().strip_prefix('(').map(str::trim_start);
    let mut parts = argument.unwrap_or_default().splitn(3, is_quote);
    parts.next() == Some("")
        && parts.next().is_some_and(|event| lists(EVENTS, event))
        && parts.next().is_some_and(|rest| rest.trim_start().starts_with(','))
}

/// Whether a letter is written as its code, which would hide a word.
fn has_escape(script: &str) -> bool {
    script.match_indices('\\').any(|(at, _)| {
        let code = &script.as_bytes()[at + 1..];
        matches!(
            code,
            [b'x', b'4'..=b'7', ..]
                | [b'u', b'{', ..]
                | [b'u', b'0', b'0', b'4'..=b'7', ..]
                | [b'1'..=b'7', ..]
        )
    })
}

fn lists(list: &str, word: &str) -> bool {
    list.split(' ').any(|listed| listed == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_that_may_run_again_is_known_by_its_words() {
        let table = [
            (
                "document.body.append(1); for (const name of [1, 2]) console.log(name)",
                Some("1 2 append body for log"),
            ),
            (
                "try { f() } catch (e) { } finally { } // if so, then it is done",
                Some("catch e f finally so try"),
            ),
            ("class A { constructor() { this.rows = [].find(x => x) } }", Some("A constructor rows this x")),
            (
                "addEventListener('load', f); x.addEventListener( `click` , f)",
                Some("addEventListener click f load x"),
            ),
            ("onload = () => { button.onclick = f }", Some("button f")),
            ("fetch(1)", Some("1 fetch")),
            (r"'\u20ac\n'", Some("n u20ac")),
            ("p.then(f)", None),
            ("p?. then (f)", None),
            ("p['then'](f)", None),
            ("p\n.\u{a0}finally(f)", None),
            ("[].constructor.constructor('x')()", None),
            ("async () => 1", None),
            ("a.click()", None),
            ("addEventListener('scroll', f)", None),
            ("addEventListener('load' + x, f)", None),
            ("addEventListener(name, f)", None),
            ("const listen = addEventListener", None),
            ("onscroll = f", None),
            ("p.innerHTML = '<img onerror=f()>'", None),
            ("document.write('<script>')", None),
            ("document.createElement(`video`)", None),
            ("open('javascript:f()')", None),
            (r"window['\u0066etch']", None),
            (r"window['\x66etch']", None),
            (r"window['\146etch']", None),
            (r"\u{66}etch()", None),
            ("p.innerHTML = '<img onError=f()>'", Some("f innerHTML onerror p")),
            ("const onRow = 'is on'", Some("onrow")),
            ("p['on' + name] = f", None),
            ("p['when']('x')", None),
            ("with (document) f()", None),
            ("open('JavaScript:f()')", None),
            ("<!-- 1", None),
        ];
        for (script, expected) in table {
            let markup = format!("<p>then onclick, async.then<ScRipt>{script}</SCRIPT><p>async");
            let names = unknown_names(&markup).map(|names| names.into_iter().collect::<Vec<_>>().join(" "));
            assert_eq!(names.as_deref(), expected, "{script}");
        }
        for markup in [
            "<p onclick='f()'><script>1</script>",
            "<script>1</script><svg><animate></svg>",
            "<svg><script>&#102;etch()</script></svg>",
            "<math><svg><script>1</script><script>&#102;etch()</script>",
            "<script>/*</scripts>*/fetch()</script>",
        ] {
            assert_eq!(unknown_names(markup), None, "{markup}");
        }
        let data = "1,".repeat(MAX_SCRIPT_BYTES / 2);
        assert_eq!(unknown_names(&format!("<script>{data}")), None);
    }
}
