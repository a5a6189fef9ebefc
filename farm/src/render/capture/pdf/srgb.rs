//! The ICC profile of sRGB (IEC 61966-2-1), as ICC.1:2004-10 defines profiles: version 4 with a parametric curve.
//!
//! The numbers are those of the colour space: its primaries and its white, adapted to D50 by the Bradford matrix, and its
//! transfer function.

/// White of the profile connection space (D50), in 65,536ths.
const WHITE: [i32; 3] = [0xf6d6, 0x1_0000, 0xd32d];
const RED: [i32; 3] = [0x6fa2, 0x38f5, 0x0390];
const GREEN: [i32; 3] = [0x6299, 0xb785, 0x18da];
const BLUE: [i32; 3] = [0x24a0, 0x0f84, 0xb6cf];
/// From D65 to D50.
const ADAPTATION: [i32; 9] = [68_674, 1_502, -3_291, 1_939, 64_912, -1_119, -606, 988, 49_262];
/// Exponent, scale and offset of the curve, slope of its line and end of that.
const CURVE: [i32; 5] = [157_286, 62_119, 3_417, 5_072, 2_651];

const HEADER_BYTES: usize = 128;

/// The bytes of the profile.
pub(super) fn profile() -> Vec<u8> {
    let curve = element(*b"para", &[&[0, 3, 0, 0], &numbers(&CURVE)[..]].concat());
    let tags = [
        (b"desc", text("sRGB")),
        (b"cprt", text("Public domain")),
        (b"wtpt", element(*b"XYZ ", &numbers(&WHITE))),
        (b"chad", element(*b"sf32", &numbers(&ADAPTATION))),
        (b"rXYZ", element(*b"XYZ ", &numbers(&RED))),
        (b"gXYZ", element(*b"XYZ ", &numbers(&GREEN))),
        (b"bXYZ", element(*b"XYZ ", &numbers(&BLUE))),
        (b"rTRC", curve.clone()),
        (b"gTRC", curve.clone()),
        (b"bTRC", curve),
    ];
    let mut table = number(tags.len()).to_vec();
    let mut elements = Vec::new();
    let first = HEADER_BYTES + table.len() + 12 * tags.len();
    for (name, element) in &tags {
        table.extend_from_slice(*name);
        table.extend(number(first + elements.len()));
        table.extend(number(element.len()));
        elements.extend(element);
        elements.resize(elements.len().next_multiple_of(4), 0);
    }
    let mut profile = Vec::new();
    profile.extend(number(first + elements.len()));
    profile.extend([0; 4]);
    // Version 4.2, display, 1 January 2026.
    profile.extend(b"\x04\x20\0\0mntrRGB XYZ \x07\xea\0\x01\0\x01\0\0\0\0\0\0acsp");
    profile.resize(68, 0);
    profile.extend(numbers(&WHITE));
    profile.resize(HEADER_BYTES, 0);
    [profile, table, elements].concat()
}

fn element(kind: [u8; 4], content: &[u8]) -> Vec<u8> {
    [&kind[..], &[0; 4], content].concat()
}

/// A text in one language (`multiLocalizedUnicodeType`).
fn text(text: &str) -> Vec<u8> {
    let utf16: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
    let record = [number(1), number(12), *b"enUS", number(utf16.len()), number(28)].concat();
    element(*b"mluc", &[record, utf16].concat())
}

fn numbers(numbers: &[i32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_be_bytes()).collect()
}

fn number(number: usize) -> [u8; 4] {
    u32::try_from(number).unwrap_or_default().to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_profile_has_its_length_and_the_white_of_its_primaries() {
        let profile = profile();
        assert_eq!(profile[..4], number(profile.len()));
        assert_eq!(profile[36..40], *b"acsp");
        for ((red, green), (blue, white)) in RED.iter().zip(GREEN).zip(BLUE.iter().zip(WHITE)) {
            // The sums of the published primaries, which are rounded to four digits, differ by up to 12.
            assert!((red + green + blue - white).abs() <= 12);
        }
    }
}
