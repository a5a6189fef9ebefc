//! Media types of requests (RFC 9110, section 8.3). Names of types and parameters, and that of an encoding, have no case.

/// Whether `content-type` has one value, which names this type, and no encoding but UTF-8. Other parameters are ignored.
#[must_use]
pub fn is_of_type(values: &[Vec<u8>], expected: &str) -> bool {
    let [value] = values else { return false };
    let mut parts = parts(value).into_iter();
    let essence = parts.next().unwrap_or_default();
    essence.trim_ascii().eq_ignore_ascii_case(expected.as_bytes()) && parts.all(|part| !is_of_charset(&part))
}

/// Whether a parameter names an encoding other than UTF-8.
fn is_of_charset(parameter: &[u8]) -> bool {
    let mut parts = parameter.splitn(2, |byte| *byte == b'=').map(<[u8]>::trim_ascii);
    let is_charset = parts.next().is_some_and(|name| name.eq_ignore_ascii_case(b"charset"));
    let value = parts.next().unwrap_or_default();
    // The name without a hyphen is not registered, but common.
    is_charset && ![&b"utf-8"[..], b"utf8"].iter().any(|utf8| value.eq_ignore_ascii_case(utf8))
}

/// The parts between semicolons, without the quotation marks and escapes of quoted strings.
fn parts(value: &[u8]) -> Vec<Vec<u8>> {
    let (mut parts, mut part) = (Vec::new(), Vec::new());
    let (mut is_quoted, mut bytes) = (false, value.iter());
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => is_quoted = !is_quoted,
            b';' if !is_quoted => parts.push(std::mem::take(&mut part)),
            b'\\' if is_quoted => part.extend(bytes.next()),
            byte => part.push(*byte),
        }
    }
    parts.push(part);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_and_encodings_have_no_case() {
        let is_json = |value: &str| is_of_type(&[value.as_bytes().to_vec()], "application/json");
        for value in [
            "application/json",
            " Application/JSON ;",
            "application/json; charset=utf-8",
            "application/json;CHARSET=\"UTF-8\"",
            "application/json; charset=utf8",
            "application/json; charset=utf-8; Charset=Utf-8",
            "application/json; profile=\"a;charset=utf-16\"",
            "application/json; profile=\"a\\\";charset=utf-16\"; x",
            "application/json; charset=\"ut\\f-8\"",
            "application/json; xcharset=utf-16",
        ] {
            assert!(is_json(value), "{value}");
        }
        for value in [
            "",
            ";application/json",
            "application/jsonp",
            "application/json, application/json",
            "application/json; charset=utf-16",
            "application/json; charset=\"UTF-16LE\"",
            "application/json;charset=iso-8859-1",
            "application/json; ChArSeT=us-ascii",
            "application/json; charset = utf-16",
            "application/json; charset=utf-8; charset=utf-16",
            "application/json; charset=utf-16; charset=utf-8",
            "application/json; charset=",
            "application/json; charset",
            "application/json; charset='utf-8'",
            "application/json; x=\"a\"; charset=utf-7",
        ] {
            assert!(!is_json(value), "{value}");
        }
        let json = b"application/json".to_vec();
        assert!(
            !is_of_type(&[], "application/json") && !is_of_type(&[json.clone(), json], "application/json")
        );
    }
}
