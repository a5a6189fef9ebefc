//! API keys.

use std::collections::BTreeMap;

use askama::Template;
use platen_statements::{
    Timestamp,
    keys::{Key, KeyState},
};

use super::Layout;
use crate::{chart::Chart, form::Field, format::DAY_SECONDS};

/// Lifetime of the key that “Render” uses.
pub(crate) const RENDER_KEY_SECONDS: i64 = 60;

/// A key just created, shown once with an example.
#[derive(Debug, Clone)]
pub(crate) struct NewKey {
    pub(crate) name: String,
    pub(crate) key: String,
    /// Scheme and host of the server, for the curl command.
    pub(crate) base_url: String,
}

#[derive(Debug, Template)]
#[template(path = "keys.html")]
pub(crate) struct KeysPage {
    pub(crate) layout: Layout,
    /// All keys of the account, newest first.
    pub(crate) keys: Vec<Key>,
    pub(crate) new: Option<NewKey>,
    pub(crate) name: Field,
    /// The last day of the key to create.
    pub(crate) expires: Field,
    /// The time of the request.
    pub(crate) now: i64,
    /// Attempts of the last 30 days by id of the key.
    pub(crate) attempts: BTreeMap<String, u64>,
}

impl KeysPage {
    fn attempts_of(&self, key: &Key) -> &u64 {
        self.attempts.get(key.id.as_str()).unwrap_or(&0)
    }
}

#[derive(Debug, Template)]
#[template(path = "key.html")]
pub(crate) struct KeyPage {
    pub(crate) layout: Layout,
    pub(crate) key: Key,
    pub(crate) state: KeyState,
    pub(crate) chart: Chart,
    pub(crate) name: Field,
    pub(crate) expires: Field,
}

/// The one of [`GRACE`] that the form proposes.
pub(crate) const DEFAULT_GRACE_SECONDS: i64 = 86_400;
/// The times for which a key that is rolled stays valid.
pub(crate) const GRACE: [(&str, i64, &str); 4] = [
    ("0", 0, "Immediately"),
    ("1h", 3_600, "In 1 hour"),
    ("24h", DEFAULT_GRACE_SECONDS, "In 24 hours"),
    ("7d", 604_800, "In 7 days"),
];

/// The seconds of a value in [`GRACE`].
pub(crate) fn grace_seconds(value: &str) -> Option<i64> {
    GRACE.iter().find(|(known, ..)| *known == value).map(|(_, seconds, _)| *seconds)
}

/// Parses the last day (UTC) of a key, `YYYY-MM-DD`, into the time from which the key is refused; empty for a key
/// that does not expire. The error is a text for the form.
pub(crate) fn parse_expiry(text: &str, now: i64) -> Result<Option<i64>, &'static str> {
    const INVALID: &str = "Enter a date as YYYY-MM-DD, or leave the field empty for no expiry";
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let end = Timestamp::of_day(text).ok_or(INVALID)?.0 + DAY_SECONDS;
    if end <= now { Err("Enter a day that is not over yet (UTC)") } else { Ok(Some(end)) }
}

/// The last day (UTC) of a key, as [`parse_expiry`] reads it.
pub(crate) fn last_day(expires_at: Option<Timestamp>) -> String {
    expires_at.map(|expires_at| Timestamp(expires_at.0 - 1).date().to_string()).unwrap_or_default()
}

/// When a key expires, as pages show it: its last day, or the minute of a key that was replaced.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "templates pass references")]
pub(crate) fn expiry(expires_at: &Timestamp) -> String {
    if expires_at.0 % DAY_SECONDS == 0 {
        format!("after {}", last_day(Some(*expires_at)))
    } else {
        expires_at.date_and_minute()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_expires_at_the_end_of_its_last_day() {
        let now = 1_709_251_199; // 2024-02-29 23:59:59
        assert_eq!(parse_expiry(" 2024-02-29 ", now), Ok(Some(now + 1)));
        assert_eq!(last_day(Some(Timestamp(now + 1))), "2024-02-29");
        assert_eq!(parse_expiry("", now), Ok(None));
        assert_eq!(last_day(None), "");
        assert_eq!(expiry(&Timestamp(now + 1)), "after 2024-02-29");
        assert_eq!(expiry(&Timestamp(now)), "2024-02-29 23:59");
        let last = parse_expiry("9999-12-31", now).unwrap().unwrap();
        assert_eq!(expiry(&Timestamp(last)), "after 9999-12-31");
        for bad in [
            "2024-02-28",
            "2024-02-30",
            "2024-13-01",
            "29.02.2024",
            "2024-2",
            "2024-03-01-1",
            "x",
            "99999-01-01",
        ] {
            parse_expiry(bad, now).unwrap_err();
        }
        assert_eq!(grace_seconds("24h"), Some(86_400));
        assert_eq!(grace_seconds("25h"), None);
    }
}
