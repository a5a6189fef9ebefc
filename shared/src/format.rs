//! Output formats, paper sizes and load milestones, and their names in the API.
//!
//! Invariant: [`FromStr`] accepts exactly the names of the contract. [`VariantNames`] lists them for error messages
//! and for the `OpenAPI` document.

use std::str::FromStr;

use serde::{Deserialize, Serialize};
use strum::{EnumString, ParseError, VariantNames};

use crate::length::Length;

/// An image encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ImageFormat {
    /// Lossless.
    Png,
    /// Lossy, without transparency.
    Jpeg,
    /// Lossy, smaller than JPEG; each side is at most 16,383 device pixels.
    Webp,
}

/// The format of a rendered file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OutputFormat {
    /// An image of the viewport or of the full page.
    Image(ImageFormat),
    /// A PDF, with text as text.
    Pdf,
}

impl OutputFormat {
    /// The default of `format`.
    pub const DEFAULT: Self = Self::Image(ImageFormat::Png);
    /// The accepted values of `format`.
    pub const NAMES: &'static [&'static str] = Self::VARIANTS;

    /// The media type of the file.
    #[must_use]
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Image(ImageFormat::Png) => "image/png",
            Self::Image(ImageFormat::Jpeg) => "image/jpeg",
            Self::Image(ImageFormat::Webp) => "image/webp",
            Self::Pdf => "application/pdf",
        }
    }

    /// The extension of the file name, without the dot.
    #[must_use]
    pub fn extension(self) -> &'static str {
        match self {
            Self::Image(ImageFormat::Png) => "png",
            Self::Image(ImageFormat::Jpeg) => "jpg",
            Self::Image(ImageFormat::Webp) => "webp",
            Self::Pdf => "pdf",
        }
    }
}

impl VariantNames for OutputFormat {
    const VARIANTS: &'static [&'static str] = &["png", "jpeg", "jpg", "webp", "pdf"];
}

impl FromStr for OutputFormat {
    type Err = ParseError;

    fn from_str(name: &str) -> Result<Self, ParseError> {
        Ok(match name {
            "png" => Self::Image(ImageFormat::Png),
            "jpeg" | "jpg" => Self::Image(ImageFormat::Jpeg),
            "webp" => Self::Image(ImageFormat::Webp),
            "pdf" => Self::Pdf,
            _ => return Err(ParseError::VariantNotFound),
        })
    }
}

/// A paper size of a PDF, portrait except `Ledger`.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, EnumString, VariantNames,
)]
#[strum(ascii_case_insensitive)]
#[expect(missing_docs, reason = "the names are the sizes")]
pub enum PaperSize {
    Letter,
    Legal,
    Tabloid,
    Ledger,
    A0,
    A1,
    A2,
    A3,
    #[default]
    A4,
    A5,
    A6,
}

impl PaperSize {
    /// The accepted values of `pdfFormat`, in the order of the documentation.
    pub const NAMES: &'static [&'static str] = Self::VARIANTS;

    /// Width and height. ISO 216 defines whole millimetres; the North American sizes are defined in inches
    /// (ANSI/ASME Y14.1 for Tabloid and Ledger).
    #[must_use]
    pub fn size(self) -> (Length, Length) {
        let inches = |width, height| (Length::inches_of(width), Length::inches_of(height));
        let mm = |width, height| (Length::mm_of(width), Length::mm_of(height));
        match self {
            Self::Letter => inches(8.5, 11.0),
            Self::Legal => inches(8.5, 14.0),
            Self::Tabloid => inches(11.0, 17.0),
            Self::Ledger => inches(17.0, 11.0),
            Self::A0 => mm(841.0, 1189.0),
            Self::A1 => mm(594.0, 841.0),
            Self::A2 => mm(420.0, 594.0),
            Self::A3 => mm(297.0, 420.0),
            Self::A4 => mm(210.0, 297.0),
            Self::A5 => mm(148.0, 210.0),
            Self::A6 => mm(105.0, 148.0),
        }
    }
}

/// The milestone at which a page counts as loaded.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, EnumString, VariantNames,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum WaitUntil {
    /// The document is parsed; subresources may be missing.
    DomContentLoaded,
    /// The `load` event has fired.
    #[default]
    Load,
    /// The `load` event has fired, and then no request was in progress for 500 ms.
    NetworkIdle,
}

impl WaitUntil {
    /// The accepted values of `waitUntil`.
    pub const NAMES: &'static [&'static str] = Self::VARIANTS;
}
