//! The job an edge hands to a farm: every default filled in, no value out of bounds.
//!
//! Invariant: a [`RenderJob`] that exists is valid; deserialising one checks it again, so a farm
//! does not have to trust its caller. Left to others: names and messages of the public fields
//! (edge), the address behind a URL's host name (farm).

use serde::{Deserialize, Serialize};
use url::Url;

use crate::{
    format::{ImageFormat, OutputFormat, PaperSize, WaitUntil},
    id::AccountId,
    limits,
    url_rule::{self, InvalidUrl},
};

/// Why a value cannot be part of a job.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum InvalidJob {
    /// A number outside its range.
    #[error("{what} must be from {min} to {max}")]
    OutOfRange {
        /// The value's name.
        what: &'static str,
        /// Smallest allowed value.
        min: f64,
        /// Largest allowed value.
        max: f64,
    },
    /// No markup at all.
    #[error("html must not be empty")]
    EmptyHtml,
    /// Markup over the limit.
    #[error("html must be at most {} bytes", limits::MAX_HTML_BYTES)]
    HtmlTooLarge,
    /// A URL that breaks the rule.
    #[error("invalid url")]
    Url(#[source] InvalidUrl),
    /// An image over the pixel limit.
    #[error("an image of {pixels} pixels is over the limit of {}", limits::MAX_IMAGE_PIXELS)]
    TooManyPixels {
        /// Device pixels asked for.
        pixels: u64,
    },
}

macro_rules! bounded {
    ($(#[$doc:meta])* $name:ident, $number:ty, $what:literal, $range:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
        #[serde(try_from = "f64", into = "f64")]
        pub struct $name($number);

        impl $name {
            /// The number.
            #[must_use]
            pub fn get(self) -> $number {
                self.0
            }
        }

        impl TryFrom<f64> for $name {
            type Error = InvalidJob;

            fn try_from(number: f64) -> Result<Self, InvalidJob> {
                let (min, max) = (f64::from(*$range.start()), f64::from(*$range.end()));
                if !(min..=max).contains(&number) {
                    return Err(InvalidJob::OutOfRange { what: $what, min, max });
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
    };
}

bounded!(
    /// One side of a viewport in whole CSS pixels; a fraction is cut off.
    Side, u32, "a viewport side", limits::VIEWPORT_SIDE_RANGE
);
bounded!(
    /// Device pixels per CSS pixel.
    DeviceScaleFactor, f64, "the device scale factor", limits::DEVICE_SCALE_FACTOR_RANGE
);
bounded!(
    /// Scale of a PDF's content.
    PdfScale, f64, "the scale", limits::PDF_SCALE_RANGE
);
bounded!(
    /// A wait in milliseconds.
    WaitMs, f64, "the wait", limits::WAIT_FOR_TIMEOUT_MS_RANGE
);

impl Default for DeviceScaleFactor {
    fn default() -> Self {
        Self(1.0)
    }
}
impl Default for PdfScale {
    fn default() -> Self {
        Self(1.0)
    }
}
impl Default for WaitMs {
    fn default() -> Self {
        Self(0.0)
    }
}

/// The window a page sees.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Viewport {
    /// CSS pixels.
    pub width: Side,
    /// CSS pixels.
    pub height: Side,
    /// Device pixels per CSS pixel.
    pub device_scale_factor: DeviceScaleFactor,
}

impl Viewport {
    /// Device pixels of one picture of the viewport, each side rounded to the nearest pixel and at least one.
    #[must_use]
    pub fn device_pixels(&self) -> u64 {
        device_pixels(self.width.get(), self.height.get(), self.device_scale_factor)
    }
}

impl Default for Viewport {
    fn default() -> Self {
        Self {
            width: Side(limits::DEFAULT_WIDTH),
            height: Side(limits::DEFAULT_HEIGHT),
            device_scale_factor: DeviceScaleFactor::default(),
        }
    }
}

/// Device pixels of a picture of `width` × `height` CSS pixels, each side rounded and at least one.
#[must_use]
pub fn device_pixels(width: u32, height: u32, factor: DeviceScaleFactor) -> u64 {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 2^32 × 4")]
    let side = |css: u32| ((f64::from(css) * factor.get()).round() as u64).max(1);
    side(width).saturating_mul(side(height))
}

/// Markup that is not empty and within [`limits::MAX_HTML_BYTES`].
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Html(String);

impl Html {
    /// The markup.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Html {
    /// Shows the size only: markup is never logged.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Html({} bytes)", self.0.len())
    }
}

impl TryFrom<String> for Html {
    type Error = InvalidJob;

    fn try_from(html: String) -> Result<Self, InvalidJob> {
        match html.len() {
            0 => Err(InvalidJob::EmptyHtml),
            1..=limits::MAX_HTML_BYTES => Ok(Self(html)),
            _ => Err(InvalidJob::HtmlTooLarge),
        }
    }
}

impl From<Html> for String {
    fn from(html: Html) -> Self {
        html.0
    }
}

/// A URL that keeps the rule of [`url_rule`]: its host may still resolve to anything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PublicUrl(Url);

impl PublicUrl {
    /// The parsed URL.
    #[must_use]
    pub fn as_url(&self) -> &Url {
        &self.0
    }
}

impl TryFrom<String> for PublicUrl {
    type Error = InvalidJob;

    fn try_from(text: String) -> Result<Self, InvalidJob> {
        url_rule::parse(&text).map(Self).map_err(InvalidJob::Url)
    }
}

impl From<PublicUrl> for String {
    fn from(url: PublicUrl) -> Self {
        url.0.into()
    }
}

/// What is rendered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// Markup supplied by the caller, or a filled template.
    Html(Html),
    /// A page the farm fetches.
    Url(PublicUrl),
}

/// What comes back, with the options of that kind only.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Output {
    /// A picture.
    Image {
        /// The encoding.
        format: ImageFormat,
        /// The whole page instead of the viewport.
        full_page: bool,
    },
    /// A paged document.
    Pdf {
        /// The paper.
        paper: PaperSize,
        /// Whether backgrounds are printed.
        print_background: bool,
        /// Scale of the content.
        scale: PdfScale,
    },
}

impl Output {
    /// The format of the file.
    #[must_use]
    pub fn format(&self) -> OutputFormat {
        match self {
            Self::Image { format, .. } => OutputFormat::Image(*format),
            Self::Pdf { .. } => OutputFormat::Pdf,
        }
    }
}

/// One render, complete: what `POST /v1/jobs` of a farm takes as its JSON body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Unchecked", deny_unknown_fields)]
pub struct RenderJob {
    /// Whose job it is: the farm is fair between accounts and never shares a page between two.
    pub account: AccountId,
    /// What is rendered.
    pub source: Source,
    /// The window.
    pub viewport: Viewport,
    /// When the page counts as loaded.
    pub wait_until: WaitUntil,
    /// How long to wait after that, in milliseconds of the page's time.
    pub wait_for_timeout: WaitMs,
    /// What comes back.
    pub output: Output,
}

impl RenderJob {
    /// Checks what no single field shows: that a picture of the viewport has at most
    /// [`limits::MAX_IMAGE_PIXELS`]. A full page's height is known to the farm only.
    ///
    /// # Errors
    /// [`InvalidJob::TooManyPixels`].
    pub fn check(self) -> Result<Self, InvalidJob> {
        let pixels = self.viewport.device_pixels();
        match self.output {
            Output::Image { .. } if pixels > limits::MAX_IMAGE_PIXELS => {
                Err(InvalidJob::TooManyPixels { pixels })
            }
            _ => Ok(self),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Unchecked {
    account: AccountId,
    source: Source,
    viewport: Viewport,
    wait_until: WaitUntil,
    wait_for_timeout: WaitMs,
    output: Output,
}

impl TryFrom<Unchecked> for RenderJob {
    type Error = InvalidJob;

    fn try_from(raw: Unchecked) -> Result<Self, InvalidJob> {
        let Unchecked { account, source, viewport, wait_until, wait_for_timeout, output } = raw;
        Self { account, source, viewport, wait_until, wait_for_timeout, output }.check()
    }
}
