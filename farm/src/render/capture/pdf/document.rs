//! What a PDF file of Chromium says about itself.

use platen_shared::{job::Sheet, length::Length};

/// CSS pixels of a point, the unit of PDF.
const PIXELS_PER_POINT: f64 = 96.0 / 72.0;

/// The sheet of the first page of a file of Chromium.
pub(super) fn first_sheet(file: &[u8]) -> Option<Sheet> {
    const MEDIA_BOX: &[u8] = b"/MediaBox [0 0 ";
    let sides = &file[find(file, MEDIA_BOX)? + MEDIA_BOX.len()..];
    let sides = std::str::from_utf8(&sides[..find(sides, b"]")?]).ok()?;
    let (width, height) = sides.split_once(' ')?;
    let side = |points: &str| Length::try_from(points.parse::<f64>().ok()? * PIXELS_PER_POINT).ok();
    Some(Sheet { width: side(width)?, height: side(height)? })
}

/// The number of pages of a file of Chromium: the largest `Count` of the nodes of its page tree (PDF 32000-1, section
/// 7.7.3.2), which are not compressed.
pub(super) fn page_count(file: &[u8]) -> u64 {
    const NODE: &[u8] = b"/Type /Pages";
    const COUNT: &[u8] = b"/Count ";
    let count_of = |node: &[u8]| {
        let end = find(node, b">>").unwrap_or(node.len());
        let digits = &node[find(&node[..end], COUNT)? + COUNT.len()..end];
        let length = digits.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(digits.len());
        std::str::from_utf8(&digits[..length]).ok()?.parse().ok()
    };
    let (mut most, mut rest) = (0, file);
    while let Some(at) = find(rest, NODE) {
        rest = &rest[at + NODE.len()..];
        most = most.max(count_of(rest).unwrap_or(0));
    }
    most
}

fn find(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).position(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &[u8] = b"%PDF-1.4 5 0 obj\n<</Type /Page\n/MediaBox [0 0 595.91998 841.91998]\n/Parent 8 0 R>>\nendobj\n\
        7 0 obj\n<</Type /Pages\n/Count 8\n/Kids [5 0 R]>>\nendobj\n8 0 obj\n<</Type /Pages\n/Count 12\n/Kids [7 0 R]>>";

    #[test]
    fn pages_are_counted_and_measured() {
        assert_eq!(page_count(FILE), 12);
        let sheet = first_sheet(FILE).unwrap();
        assert!(
            (sheet.width.mm() - 210.0).abs() < 0.3 && (sheet.height.mm() - 297.0).abs() < 0.3,
            "{sheet:?}"
        );
        assert_eq!((page_count(b"%PDF"), first_sheet(b"/MediaBox [0 0 1]")), (0, None));
    }
}
