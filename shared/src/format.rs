//! Output formats, paper sizes and load milestones, with the names callers write for them.
//!
//! Invariant: `parse` accepts exactly the names of the contract and `NAMES` lists them for error
//! messages and for the `OpenAPI` document.

use serde::{Deserialize, Serialize};

/// An image encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ImageFormat {
    /// Lossless.
    Png,
    /// Lossy.
    Jpeg,
    /// Lossy, smaller than JPEG; no side over 16,383 device pixels.
    Webp,
}

/// What the caller gets back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OutputFormat {
    /// A picture of the viewport or of the full page.
    Image(ImageFormat),
    /// Paged, vector, selectable text.
    Pdf,
}

impl OutputFormat {
    /// What a request without `format` gets.
    pub const DEFAULT: Self = Self::Image(ImageFormat::Png);
    /// The accepted values of `format`.
    pub const NAMES: &'static [&'static str] = &["png", "jpeg", "jpg", "webp", "pdf"];

    /// Reads a value of `format`; names are lower-case.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "png" => Self::Image(ImageFormat::Png),
            "jpeg" | "jpg" => Self::Image(ImageFormat::Jpeg),
            "webp" => Self::Image(ImageFormat::Webp),
            "pdf" => Self::Pdf,
            _ => return None,
        })
    }

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

    /// The file name extension, without the dot.
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

/// A paper size of a PDF, portrait except `Ledger`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
    /// Every size with the name callers write, in the order of the documentation.
    pub const ALL: &'static [(&'static str, Self)] = &[
        ("Letter", Self::Letter),
        ("Legal", Self::Legal),
        ("Tabloid", Self::Tabloid),
        ("Ledger", Self::Ledger),
        ("A0", Self::A0),
        ("A1", Self::A1),
        ("A2", Self::A2),
        ("A3", Self::A3),
        ("A4", Self::A4),
        ("A5", Self::A5),
        ("A6", Self::A6),
    ];

    /// Reads a value of `pdfFormat` in any case of letters.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|&(_, size)| size)
    }

    /// Width and height in inches. ISO 216 sizes are exact millimetres, divided by 25.4; the
    /// North American ones are exact inches (ANSI/ASME Y14.1 for Tabloid and Ledger).
    #[must_use]
    pub fn inches(self) -> (f64, f64) {
        let mm = |width: f64, height: f64| (width / 25.4, height / 25.4);
        match self {
            Self::Letter => (8.5, 11.0),
            Self::Legal => (8.5, 14.0),
            Self::Tabloid => (11.0, 17.0),
            Self::Ledger => (17.0, 11.0),
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

/// When a page counts as loaded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WaitUntil {
    /// The document is parsed; subresources may be missing.
    DomContentLoaded,
    /// The `load` event has fired.
    #[default]
    Load,
    /// `load`, then no request under way for 500 ms.
    NetworkIdle,
}

impl WaitUntil {
    /// The accepted values of `waitUntil`.
    pub const NAMES: &'static [&'static str] = &["domcontentloaded", "load", "networkidle"];

    /// Reads a value of `waitUntil`; names are lower-case.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "domcontentloaded" => Self::DomContentLoaded,
            "load" => Self::Load,
            "networkidle" => Self::NetworkIdle,
            _ => return None,
        })
    }
}
