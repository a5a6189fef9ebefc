//! Lengths of the API: a number of CSS pixels, or text with a unit such as `"12mm"`.
//!
//! Invariant: a length is finite and not negative.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A length in CSS pixels, of which an inch has 96 (CSS Values and Units 4, section 6.2).
#[derive(Debug, Clone, Copy, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Length(f64);

/// A number that is not a length: negative, infinite or not a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a length must be a finite number from 0")]
pub struct InvalidLength;

/// CSS pixels of an inch.
const PIXELS_PER_INCH: f64 = 96.0;
/// Millimetres of an inch.
const MM_PER_INCH: f64 = 25.4;
/// The units of a length in text, and their number in an inch.
const UNITS: [(&str, f64); 5] =
    [("px", PIXELS_PER_INCH), ("in", 1.0), ("cm", MM_PER_INCH / 10.0), ("mm", MM_PER_INCH), ("pt", 72.0)];

impl Length {
    /// A fixed number of inches.
    pub(crate) const fn inches_of(inches: f64) -> Self {
        Self(inches * PIXELS_PER_INCH)
    }

    /// A fixed number of millimetres.
    pub(crate) const fn mm_of(mm: f64) -> Self {
        Self::inches_of(mm / MM_PER_INCH)
    }

    /// Reads a decimal number with a unit: `px`, `in`, `cm`, `mm` or `pt`, without a space between them.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (number, per_inch) =
            UNITS.iter().find_map(|(unit, per_inch)| Some((text.strip_suffix(unit)?, per_inch)))?;
        let is_decimal = number.starts_with(|first: char| first.is_ascii_digit() || first == '.')
            && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let number: f64 = is_decimal.then(|| number.parse().ok()).flatten()?;
        Self::try_from(number / per_inch * PIXELS_PER_INCH).ok()
    }

    /// The length in CSS pixels.
    #[must_use]
    pub fn pixels(self) -> f64 {
        self.0
    }

    /// The length in inches.
    #[must_use]
    pub fn inches(self) -> f64 {
        self.0 / PIXELS_PER_INCH
    }

    /// The length in millimetres.
    #[must_use]
    pub fn mm(self) -> f64 {
        self.inches() * MM_PER_INCH
    }
}

impl TryFrom<f64> for Length {
    type Error = InvalidLength;

    fn try_from(pixels: f64) -> Result<Self, InvalidLength> {
        if pixels.is_finite() && pixels >= 0.0 { Ok(Self(pixels)) } else { Err(InvalidLength) }
    }
}

impl From<Length> for f64 {
    fn from(length: Length) -> Self {
        length.0
    }
}

impl fmt::Display for Length {
    /// Writes the text that the API accepts.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}px", self.0)
    }
}
