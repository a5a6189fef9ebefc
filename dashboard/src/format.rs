//! Numbers as pages show them, and lines of exports.

/// A number with its thousands separated by commas.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "templates pass references")]
pub(crate) fn number(number: &u64) -> String {
    let digits = number.to_string();
    let mut separated = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.char_indices() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            separated.push(',');
        }
        separated.push(digit);
    }
    separated
}

/// A number of bytes with its decimal unit.
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{}.{} KB", bytes / 1_000, bytes % 1_000 / 100),
        _ => format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000),
    }
}

/// A line of comma-separated values (RFC 4180). No cell begins with a character that makes a spreadsheet read it as a formula.
pub(crate) fn csv_line(cells: &[&str]) -> String {
    let cells: Vec<String> = cells.iter().map(|text| cell(text)).collect();
    cells.join(",") + "\r\n"
}

fn cell(text: &str) -> String {
    let text =
        if text.starts_with(['=', '+', '-', '@', '\t', '\r']) { format!("'{text}") } else { text.to_owned() };
    if text.contains([',', '"', '\r', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

/// Seconds in a day.
pub(crate) const DAY_SECONDS: i64 = 86_400;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_separated() {
        for (value, text) in
            [(0, "0"), (999, "999"), (1_000, "1,000"), (45_678, "45,678"), (1_234_567, "1,234,567")]
        {
            assert_eq!(number(&value), text);
        }
    }

    #[test]
    fn sizes_are_rounded_down() {
        for (bytes, text) in
            [(0, "0 B"), (999, "999 B"), (1_250, "1.2 KB"), (74_000, "74.0 KB"), (5_242_880, "5.2 MB")]
        {
            assert_eq!(size(bytes), text);
        }
    }

    #[test]
    fn cells_are_quoted_and_formulas_are_escaped() {
        assert_eq!(csv_line(&["a", "b,c", "d\"e", ""]), "a,\"b,c\",\"d\"\"e\",\r\n");
        assert_eq!(csv_line(&["=1+1", "@x", "-2"]), "'=1+1,'@x,'-2\r\n");
    }
}
