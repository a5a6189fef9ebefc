//! The fields of the request bodies.

use strum::{Display, EnumCount, IntoStaticStr, VariantArray};

use crate::endpoint::Endpoint;

/// A field of a request body. `Display` is its name in JSON. The order is that of the contract, in which
/// fields are checked.
#[derive(Debug, Clone, Copy, Display, PartialEq, Eq, EnumCount, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "camelCase")]
#[expect(missing_docs, reason = "the variants are the names in JSON")]
pub enum FieldName {
    Html,
    Url,
    TemplateId,
    Variables,
    Format,
    PdfFormat,
    PrintBackground,
    Scale,
    FileName,
    Width,
    Height,
    DeviceScaleFactor,
    FullPage,
    WaitUntil,
    WaitForTimeout,
}

impl FieldName {
    /// The fields that an endpoint accepts.
    pub(super) fn of_endpoint(endpoint: Endpoint) -> impl Iterator<Item = Self> {
        Self::VARIANTS.iter().copied().filter(move |field| match field {
            Self::Html | Self::Url => endpoint == Endpoint::Render,
            Self::TemplateId | Self::Variables => endpoint == Endpoint::Template,
            _ => true,
        })
    }

    /// The name in JSON.
    pub(super) fn as_str(self) -> &'static str {
        self.into()
    }
}
