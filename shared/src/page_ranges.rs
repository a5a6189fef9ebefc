//! The pages of a PDF that are kept: `"1-3, 5"`.
//!
//! Invariant: ranges are ascending and do not overlap, and there are 1 to [`limits::MAX_PAGE_RANGES`] of them.

use std::{fmt, ops::RangeInclusive, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::limits;

/// Ranges of page numbers, which begin at 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PageRanges(Vec<RangeInclusive<u32>>);

/// The rule that page ranges break. `Display` follows the name of the field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPageRanges {
    /// The text is not a list of ranges.
    #[error("must be page numbers and ranges such as \"1-3, 5\"")]
    Syntax,
    /// A range begins before the end of the one before it, or after its own end.
    #[error("must be ascending")]
    Order,
    /// There are more than [`limits::MAX_PAGE_RANGES`].
    #[error("must have at most {} ranges", limits::MAX_PAGE_RANGES)]
    TooMany,
}

impl PageRanges {
    /// The first page number.
    #[must_use]
    pub fn first(&self) -> u32 {
        self.0.first().map_or(0, |range| *range.start())
    }

    /// The last page number.
    #[must_use]
    pub fn last(&self) -> u32 {
        self.0.last().map_or(0, |range| *range.end())
    }

    /// The number of pages.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.iter().map(|range| u64::from(range.end() - range.start()) + 1).sum()
    }
}

impl FromStr for PageRanges {
    type Err = InvalidPageRanges;

    fn from_str(text: &str) -> Result<Self, InvalidPageRanges> {
        let mut ranges: Vec<RangeInclusive<u32>> = Vec::new();
        for range in text.split(',') {
            if ranges.len() == limits::MAX_PAGE_RANGES {
                return Err(InvalidPageRanges::TooMany);
            }
            let (start, end) = range.split_once('-').unwrap_or((range, range));
            let range = page(start)?..=page(end)?;
            if range.is_empty() || ranges.last().is_some_and(|before| before.end() >= range.start()) {
                return Err(InvalidPageRanges::Order);
            }
            ranges.push(range);
        }
        Ok(Self(ranges))
    }
}

/// A page number from 1, with spaces around it.
fn page(text: &str) -> Result<u32, InvalidPageRanges> {
    let digits = text.trim_matches(' ');
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number = is_number.then(|| digits.parse().ok()).flatten();
    number.filter(|&number| number > 0).ok_or(InvalidPageRanges::Syntax)
}

impl TryFrom<String> for PageRanges {
    type Error = InvalidPageRanges;

    fn try_from(text: String) -> Result<Self, InvalidPageRanges> {
        text.parse()
    }
}

impl From<PageRanges> for String {
    fn from(ranges: PageRanges) -> Self {
        ranges.to_string()
    }
}

impl fmt::Display for PageRanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, range) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            write!(f, "{}", range.start())?;
            if range.end() > range.start() {
                write!(f, "-{}", range.end())?;
            }
        }
        Ok(())
    }
}
