//! The `authorization` header. Shape and checksum of a key are checked without I/O, so that a malformed
//! key costs no database call.

use platen_shared::key::ApiKey;

/// Reads the key from the values of the `authorization` header. `None` unless there is exactly one value,
/// its scheme is `Bearer` in any case of letters (RFC 9110 11.1), and shape and checksum of the key are
/// valid.
#[must_use]
pub fn api_key(values: &[Vec<u8>]) -> Option<ApiKey> {
    let [value] = values else { return None };
    let (scheme, key) = std::str::from_utf8(value).ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| ApiKey::parse(key.trim_matches(' '))).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_well_formed_bearer_key_is_read() {
        let key = ApiKey::from_random([7; 32]);
        let secret = key.expose();
        let read = |values: &[&str]| {
            let values: Vec<Vec<u8>> = values.iter().map(|value| value.as_bytes().to_vec()).collect();
            api_key(&values).is_some()
        };
        for good in [format!("Bearer {secret}"), format!("bearer {secret}"), format!("BEARER  {secret} ")] {
            assert!(read(&[&good]), "{good}");
        }
        let twice = format!("Bearer {secret}");
        assert!(!read(&[]));
        assert!(!read(&[&twice, &twice]));
        for bad in ["", "Bearer", "Bearer ", secret, "Basic abc", &format!("Bearer{secret}"), "Bearer é"] {
            assert!(!read(&[bad]), "{bad}");
        }
        assert!(api_key(&[b"Bearer \xff".to_vec()]).is_none());
    }
}
