//! Numbers as pages show them, and days (UTC) as forms have them.

use time::{Date, Month, OffsetDateTime, Time};

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

/// Seconds in a day.
pub(crate) const DAY_SECONDS: i64 = 86_400;

/// The first second of a day, `YYYY-MM-DD`, in seconds since 1970.
pub(crate) fn parse_day(text: &str) -> Option<i64> {
    let mut parts = text.split('-').map(str::parse::<u16>);
    let (Some(Ok(year)), Some(Ok(month)), Some(Ok(day)), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return None;
    };
    let month = Month::try_from(u8::try_from(month).ok()?).ok()?;
    let date = Date::from_calendar_date(year.into(), month, u8::try_from(day).ok()?).ok()?;
    Some(OffsetDateTime::new_utc(date, Time::MIDNIGHT).unix_timestamp())
}

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
    fn days_begin_at_midnight() {
        assert_eq!(parse_day("2024-02-29"), Some(1_709_164_800));
        assert_eq!(parse_day("9999-12-31"), Some(253_402_214_400));
        for bad in
            ["", "2024-02-30", "2024-13-01", "29.02.2024", "2024-2", "2024-03-01-1", "99999-01-01", "x-y-z"]
        {
            assert_eq!(parse_day(bad), None, "{bad}");
        }
    }
}
