//! Bytes as lower-case hexadecimal digits.

use std::fmt::Write as _;

/// The digits.
#[must_use]
pub fn encode(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The bytes; `None` unless these are the digits of just so many.
#[must_use]
pub fn decode<const N: usize>(text: &str) -> Option<[u8; N]> {
    if text.len() != 2 * N || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = [0; N];
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * index..2 * index + 2], 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_read_back() {
        assert_eq!(encode(&[0, 255, 16]), "00ff10");
        assert_eq!(decode("00ff10"), Some([0, 255, 16]));
        for bad in ["00ff1", "00ff1g", "00ff1000", "+0ff10", "éff1"] {
            assert_eq!(decode::<3>(bad), None, "{bad}");
        }
    }
}
