//! Numbers of a job that are within a range.

use serde::{Deserialize, Serialize};

use crate::limits;

/// A number outside its range.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("{what} must be from {min} to {max}")]
pub struct OutOfRange {
    what: &'static str,
    min: f64,
    max: f64,
}

macro_rules! bounded {
    ($(#[$doc:meta])* $name:ident, $number:ty, $range:expr $(, $default:expr)?) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
        #[serde(try_from = "f64", into = "f64")]
        pub struct $name(pub(super) $number);

        impl $name {
            /// The number, which is within the range.
            #[must_use]
            pub fn get(self) -> $number {
                self.0
            }
        }

        impl TryFrom<f64> for $name {
            type Error = OutOfRange;

            fn try_from(number: f64) -> Result<Self, OutOfRange> {
                let (min, max) = (f64::from(*$range.start()), f64::from(*$range.end()));
                if !(min..=max).contains(&number) {
                    return Err(OutOfRange { what: stringify!($name), min, max });
                }
                #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::unnecessary_cast,
                        reason = "the range was checked above")]
                Ok(Self(number as $number))
            }
        }

        impl From<$name> for f64 {
            fn from(value: $name) -> f64 {
                value.0.into()
            }
        }

        $(impl Default for $name {
            fn default() -> Self {
                Self($default)
            }
        })?
    };
}

bounded!(
    /// Width or height of a viewport in whole CSS pixels; a fraction is truncated.
    Side, u32, limits::VIEWPORT_SIDE_RANGE
);
bounded!(
    /// Device pixels per CSS pixel.
    DeviceScaleFactor, f64, limits::DEVICE_SCALE_FACTOR_RANGE, 1.0
);
bounded!(
    /// Scale of the content of a PDF.
    PdfScale, f64, limits::PDF_SCALE_RANGE, 1.0
);
bounded!(
    /// A waiting time in milliseconds.
    WaitMs, f64, limits::WAIT_FOR_TIMEOUT_MS_RANGE, 0.0
);
bounded!(
    /// Quality of a lossy image.
    Quality, u8, limits::QUALITY_RANGE, limits::DEFAULT_QUALITY
);
