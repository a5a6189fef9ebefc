//! The job that an edge sends to a farm, with all defaults filled in.
//!
//! Invariant: every [`RenderJob`] is valid. Deserialisation checks the values again, so a farm does not
//! have to trust its caller.

use serde::{Deserialize, Serialize};
use url::Url;

use crate::{
    format::{ImageFormat, OutputFormat, PaperSize, WaitUntil},
    id::AccountId,
    limits,
    url_rule::{self, InvalidUrl},
};

/// The rule that a value of a job breaks.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum InvalidJob {
    /// A number outside its range.
    #[error("{what} must be from {min} to {max}")]
    OutOfRange {
        /// Name of the value.
        what: &'static str,
        /// Smallest allowed value.
        min: f64,
        /// Largest allowed value.
        max: f64,
    },
    /// The markup is empty.
    #[error("html must not be empty")]
    EmptyHtml,
    /// The markup is larger than [`limits::MAX_HTML_BYTES`].
    #[error("html must be at most {} bytes", limits::MAX_HTML_BYTES)]
    HtmlTooLarge,
    /// The image has more than [`limits::MAX_IMAGE_PIXELS`].
    #[error("an image of {pixels} pixels is over the limit of {}", limits::MAX_IMAGE_PIXELS)]
    TooManyPixels {
        /// Requested number of device pixels.
        pixels: u64,
    },
}

macro_rules! bounded {
    ($(#[$doc:meta])* $name:ident, $number:ty, $what:literal, $range:expr $(, $default:literal)?) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
        #[serde(try_from = "f64", into = "f64")]
        pub struct $name($number);

        impl $name {
            /// The number, which is within the range.
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

        $(impl Default for $name {
            fn default() -> Self {
                Self($default)
            }
        })?
    };
}

bounded!(
    /// Width or height of a viewport in whole CSS pixels; a fraction is truncated.
    Side, u32, "a viewport side", limits::VIEWPORT_SIDE_RANGE
);
bounded!(
    /// Device pixels per CSS pixel.
    DeviceScaleFactor, f64, "the device scale factor", limits::DEVICE_SCALE_FACTOR_RANGE, 1.0
);
bounded!(
    /// Scale of the content of a PDF.
    PdfScale, f64, "the scale", limits::PDF_SCALE_RANGE, 1.0
);
bounded!(
    /// A waiting time in milliseconds.
    WaitMs, f64, "the wait", limits::WAIT_FOR_TIMEOUT_MS_RANGE, 0.0
);

/// The viewport of a page.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Viewport {
    /// Width in CSS pixels.
    pub width: Side,
    /// Height in CSS pixels.
    pub height: Side,
    /// Device pixels per CSS pixel.
    pub device_scale_factor: DeviceScaleFactor,
}

impl Viewport {
    /// Number of device pixels of the viewport; see [`device_pixels`].
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

/// Number of device pixels of `width` × `height` CSS pixels. Each side is rounded to the nearest pixel and
/// is at least one.
#[must_use]
pub fn device_pixels(width: u32, height: u32, factor: DeviceScaleFactor) -> u64 {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 2^32 × 4")]
    let side = |css: u32| ((f64::from(css) * factor.get()).round() as u64).max(1);
    side(width).saturating_mul(side(height))
}

/// Markup of 1 to [`limits::MAX_HTML_BYTES`] bytes of UTF-8.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Html(String);

impl Html {
    /// The markup as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Html {
    /// Shows the size only, because markup must not appear in logs.
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

/// A URL that passes [`url_rule`]. Its host may still resolve to any address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PublicUrl(Url);

impl PublicUrl {
    /// The parsed URL, with its host in ASCII.
    #[must_use]
    pub fn as_url(&self) -> &Url {
        &self.0
    }
}

impl TryFrom<String> for PublicUrl {
    type Error = InvalidUrl;

    fn try_from(text: String) -> Result<Self, InvalidUrl> {
        url_rule::parse(&text).map(Self)
    }
}

impl From<PublicUrl> for String {
    fn from(url: PublicUrl) -> Self {
        url.0.into()
    }
}

/// The document to render.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// Markup of the caller, or a filled template.
    Html(Html),
    /// The URL of a page that the browser loads.
    Url(PublicUrl),
}

/// The kind of file, with its options.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Output {
    /// An image.
    Image {
        /// Encoding of the image.
        format: ImageFormat,
        /// Whether the image shows the whole page instead of the viewport.
        full_page: bool,
    },
    /// A PDF.
    Pdf {
        /// Paper size.
        paper: PaperSize,
        /// Whether backgrounds are printed.
        print_background: bool,
        /// Scale of the content, where 1 is its CSS size.
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

/// The JSON body of `POST /v1/slots` of a farm: whose job waits for a slot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlotRequest {
    /// As in [`RenderJob::account`].
    pub account: AccountId,
}

/// One render: the JSON body of `POST /v1/jobs` of a farm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "UncheckedRenderJob", deny_unknown_fields)]
pub struct RenderJob {
    /// The owner of the job. The farm shares its slots fairly between accounts, and no two of them use the
    /// same page.
    pub account: AccountId,
    /// The document to render.
    pub source: Source,
    /// Size of the page's window.
    pub viewport: Viewport,
    /// The milestone at which the page counts as loaded.
    pub wait_until: WaitUntil,
    /// Time to wait after the milestone, in milliseconds of the page's clock.
    pub wait_for_timeout: WaitMs,
    /// Kind of file, and its options.
    pub output: Output,
}

impl RenderJob {
    /// Checks the rule that concerns several fields: an image of the viewport has at most
    /// [`limits::MAX_IMAGE_PIXELS`]. The farm checks that of a full page, whose height only the page decides.
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
struct UncheckedRenderJob {
    account: AccountId,
    source: Source,
    viewport: Viewport,
    wait_until: WaitUntil,
    wait_for_timeout: WaitMs,
    output: Output,
}

impl TryFrom<UncheckedRenderJob> for RenderJob {
    type Error = InvalidJob;

    fn try_from(raw: UncheckedRenderJob) -> Result<Self, InvalidJob> {
        let UncheckedRenderJob { account, source, viewport, wait_until, wait_for_timeout, output } = raw;
        Self { account, source, viewport, wait_until, wait_for_timeout, output }.check()
    }
}
