//! Days (UTC) in form fields.

use time::{Date, Month, OffsetDateTime, Time};

/// Seconds in a day.
pub(crate) const SECONDS: i64 = 86_400;

/// The first second of a day, `YYYY-MM-DD`, in seconds since 1970.
pub(crate) fn parse(text: &str) -> Option<i64> {
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
    fn days_begin_at_midnight() {
        assert_eq!(parse("2024-02-29"), Some(1_709_164_800));
        assert_eq!(parse("9999-12-31"), Some(253_402_214_400));
        for bad in
            ["", "2024-02-30", "2024-13-01", "29.02.2024", "2024-2", "2024-03-01-1", "99999-01-01", "x-y-z"]
        {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
