//! The formats for which a field has an effect.

use crate::format::{ImageFormat, OutputFormat};

/// Formats of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names describe the variants")]
pub enum Formats {
    All,
    Images,
    JpegAndWebp,
    Png,
    PngAndWebp,
    Pdf,
}

impl Formats {
    /// Whether a file of this format is one of them.
    #[must_use]
    pub fn include(self, format: OutputFormat) -> bool {
        match (self, format) {
            (Self::All, _) => true,
            (Self::Pdf, format) => format == OutputFormat::Pdf,
            (_, OutputFormat::Pdf) => false,
            (Self::Images, _) => true,
            (Self::JpegAndWebp, OutputFormat::Image(format)) => format != ImageFormat::Png,
            (Self::Png, OutputFormat::Image(format)) => format == ImageFormat::Png,
            (Self::PngAndWebp, OutputFormat::Image(format)) => format != ImageFormat::Jpeg,
        }
    }
}
