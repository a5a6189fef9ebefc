//! Names of time zones.

use serde::{Deserialize, Serialize};

/// The names of the IANA time zone database (release 2025b), sorted, one on each line. The browser knows all of them.
const NAMES: &str = include_str!("time_zone_names.txt");

/// The name of a time zone of the IANA database, such as `Europe/Berlin`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TimeZone(String);

/// A name that is not in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be the name of an IANA time zone, such as \"Europe/Berlin\"")]
pub struct UnknownTimeZone;

impl TimeZone {
    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// All names, sorted.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMES.lines()
    }
}

impl TryFrom<String> for TimeZone {
    type Error = UnknownTimeZone;

    fn try_from(name: String) -> Result<Self, UnknownTimeZone> {
        if Self::names().any(|known| known == name) { Ok(Self(name)) } else { Err(UnknownTimeZone) }
    }
}

impl From<TimeZone> for String {
    fn from(zone: TimeZone) -> Self {
        zone.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_the_database_are_time_zones() {
        for name in ["UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "Etc/GMT+12"] {
            assert_eq!(TimeZone::try_from(name.to_owned()).unwrap().as_str(), name);
        }
        for name in ["", "utc", "Berlin", "Europe/Berlin ", "+01:00", "Europe", "localtime", "posix/UTC"] {
            assert_eq!(TimeZone::try_from(name.to_owned()), Err(UnknownTimeZone), "{name}");
        }
        assert!(TimeZone::names().is_sorted());
    }
}
