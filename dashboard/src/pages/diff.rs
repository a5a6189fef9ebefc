//! The differences of two texts, by lines.

use std::time::Duration;

use similar::{ChangeTag, TextDiff};

/// Lines around a change that are shown.
const CONTEXT_LINES: usize = 3;
/// Lines of a diff that are shown. More are not read by anybody, and a page with them is slow.
const MAX_LINES: usize = 2_000;
/// Characters of a line that are shown.
const MAX_LINE_CHARS: usize = 400;
/// The time after which the algorithm takes a coarser result.
const TIME_LIMIT: Duration = Duration::from_millis(500);

/// A line of a diff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Line {
    Removed(String),
    Added(String),
    /// A line of both texts, beside a change.
    Same(String),
    /// Some lines are not shown.
    Gap,
}

/// The lines from an old text to a new one; none if they are equal.
pub(crate) fn lines(old: &str, new: &str) -> Vec<Line> {
    let diff = TextDiff::configure().timeout(TIME_LIMIT).diff_lines(old, new);
    let mut lines = Vec::new();
    for group in diff.grouped_ops(CONTEXT_LINES) {
        if !lines.is_empty() {
            lines.push(Line::Gap);
        }
        for change in group.iter().flat_map(|operation| diff.iter_changes(operation)) {
            if lines.len() >= MAX_LINES {
                lines.push(Line::Gap);
                return lines;
            }
            let text = shown(change.value());
            lines.push(match change.tag() {
                ChangeTag::Delete => Line::Removed(text),
                ChangeTag::Insert => Line::Added(text),
                ChangeTag::Equal => Line::Same(text),
            });
        }
    }
    lines
}

/// A line without its end, shortened.
fn shown(line: &str) -> String {
    let line = line.trim_end_matches(['\r', '\n']);
    match line.char_indices().nth(MAX_LINE_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line for each number from 0.
    fn numbers(end: u32) -> String {
        let lines: Vec<String> = (0..=end).map(|number| number.to_string()).collect();
        lines.join("\n")
    }

    #[test]
    fn changed_lines_are_shown_with_those_around_them() {
        let old = numbers(29) + "\n";
        let new = old.replace("\n10\n", "\nten\n").replace("\n25\n", "\n");
        let same = |number: u32| Line::Same(number.to_string());
        let removed = |text: &str| Line::Removed(text.to_owned());
        let expected = [
            vec![same(7), same(8), same(9), removed("10"), Line::Added("ten".to_owned())],
            vec![same(11), same(12), same(13), Line::Gap, same(22), same(23), same(24), removed("25")],
            vec![same(26), same(27), same(28)],
        ];
        assert_eq!(lines(&old, &new), expected.concat());
        assert_eq!(lines(&old, &old), []);
    }

    #[test]
    fn long_texts_and_lines_are_shortened() {
        let old = "x".repeat(5_000_000);
        assert_eq!(lines(&old, "y").len(), 2);
        assert_eq!(lines(&old, "y")[0], Line::Removed(format!("{}…", "x".repeat(MAX_LINE_CHARS))));
        assert_eq!(lines("", &numbers(100_000)).len(), MAX_LINES + 1);
    }
}
