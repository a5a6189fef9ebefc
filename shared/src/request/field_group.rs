//! Groups of related fields, for forms and lists of options.

use strum::{Display, VariantArray};

use super::{FieldName, Formats};

/// Related fields. `Display` is the title, and the order is that in which they are shown.
#[derive(Debug, Clone, Copy, Display, PartialEq, Eq, VariantArray)]
#[strum(serialize_all = "title_case")]
#[expect(missing_docs, reason = "the titles describe the variants")]
pub enum FieldGroup {
    Source,
    File,
    Viewport,
    #[strum(to_string = "Loading and waiting")]
    Loading,
    #[strum(to_string = "What the page sees")]
    Environment,
    #[strum(to_string = "Errors and hosts")]
    Network,
    Image,
    #[strum(to_string = "PDF")]
    Pdf,
}

impl FieldGroup {
    /// All groups.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::VARIANTS.iter().copied()
    }
}

impl FieldName {
    /// The group that the field belongs to.
    #[must_use]
    pub const fn group(self) -> FieldGroup {
        match self {
            Self::Html
            | Self::Url
            | Self::TemplateId
            | Self::Variables
            | Self::Data
            | Self::Assets
            | Self::BaseUrl => FieldGroup::Source,
            Self::Format | Self::FileName => FieldGroup::File,
            Self::Width | Self::Height | Self::DeviceScaleFactor | Self::Mobile => FieldGroup::Viewport,
            Self::WaitUntil
            | Self::WaitForTimeout
            | Self::WaitForSelector
            | Self::WaitForFunction
            | Self::Scroll
            | Self::Animations => FieldGroup::Loading,
            Self::FailOnHttpStatus | Self::FailOn | Self::BlockHosts => FieldGroup::Network,
            _ => match self.spec().formats {
                Formats::All => FieldGroup::Environment,
                Formats::Pdf => FieldGroup::Pdf,
                Formats::Images | Formats::JpegAndWebp | Formats::Png | Formats::PngAndWebp => {
                    FieldGroup::Image
                }
            },
        }
    }
}
