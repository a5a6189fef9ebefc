//! Comma-separated values of exports (RFC 4180).

/// A line. No cell begins with a character that makes a spreadsheet read it as a formula.
pub(crate) fn line(cells: &[&str]) -> String {
    let cells: Vec<String> = cells.iter().map(|text| cell(text)).collect();
    cells.join(",") + "\r\n"
}

fn cell(text: &str) -> String {
    let text =
        if text.starts_with(['=', '+', '-', '@', '\t', '\r']) { format!("'{text}") } else { text.to_owned() };
    if text.contains([',', '"', '\r', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_and_formulas_are_escaped() {
        assert_eq!(line(&["a", "b,c", "d\"e", ""]), "a,\"b,c\",\"d\"\"e\",\r\n");
        assert_eq!(line(&["=1+1", "@x", "-2"]), "'=1+1,'@x,'-2\r\n");
    }
}
