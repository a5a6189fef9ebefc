//! The fields of the request bodies.

use std::fmt;

use strum::{Display, IntoStaticStr, VariantArray};

use crate::{
    endpoint::Endpoint,
    format::{ImageFormat, OutputFormat},
};

/// A field of a request body. `Display` is its name in JSON. The order is that of the contract, in which
/// fields are checked.
#[derive(Debug, Clone, Copy, Display, PartialEq, Eq, PartialOrd, Ord, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "camelCase")]
#[expect(missing_docs, reason = "the variants are the names in JSON")]
pub enum FieldName {
    Html,
    Url,
    TemplateId,
    Variables,
    Data,
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
    Landscape,
    Margin,
    PdfWidth,
    PdfHeight,
    PreferCssPageSize,
    SinglePage,
    HeaderHtml,
    FooterHtml,
    PageRanges,
    Tagged,
    Outline,
    Quality,
    OmitBackground,
    Selector,
    Clip,
    MediaType,
    ColorScheme,
    ReducedMotion,
    WaitForSelector,
    Timezone,
    Locale,
    Css,
    JavaScript,
    Animations,
    Scroll,
    UserAgent,
    Mobile,
    OptimizeForSpeed,
    FailOnHttpStatus,
    Metadata,
    HeaderFirstHtml,
    FooterFirstHtml,
    FitToWidth,
    WaitForFunction,
    PdfStandard,
    Attachments,
    InvoiceXml,
    Protection,
    Assets,
    BaseUrl,
    FailOn,
    BlockHosts,
}

/// The fields that exclude each other. The first of a pair is named as the cause.
pub(super) const EXCLUSIVE: [(FieldName, FieldName); 7] = [
    (FieldName::PdfWidth, FieldName::PdfFormat),
    (FieldName::PdfHeight, FieldName::PdfFormat),
    (FieldName::SinglePage, FieldName::PageRanges),
    (FieldName::Selector, FieldName::FullPage),
    (FieldName::Clip, FieldName::FullPage),
    (FieldName::Clip, FieldName::Selector),
    (FieldName::FitToWidth, FieldName::Scale),
];

impl FieldName {
    /// All fields, in the order of the contract.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::VARIANTS.iter().copied()
    }

    /// The fields that an endpoint accepts.
    pub fn of_endpoint(endpoint: Endpoint) -> impl Iterator<Item = Self> {
        Self::all().filter(move |field| match field {
            Self::Html | Self::Url => endpoint == Endpoint::Render,
            Self::TemplateId | Self::Variables | Self::Data => endpoint == Endpoint::Template,
            _ => true,
        })
    }

    /// The fields of a request that say how its file is made.
    pub fn options() -> impl Iterator<Item = Self> {
        let excluded = [Self::Html, Self::Url, Self::TemplateId, Self::Variables, Self::Data, Self::FileName];
        Self::all().filter(move |field| !excluded.contains(field))
    }

    /// The fields that a template keeps as its options. The others have content of one file, or secrets.
    pub fn of_template() -> impl Iterator<Item = Self> {
        let excluded = [Self::Attachments, Self::InvoiceXml, Self::Protection, Self::Assets];
        Self::options().filter(move |field| !excluded.contains(field))
    }

    /// Whether this field of a request takes the place of the other one of a template.
    #[must_use]
    pub fn replaces(self, other: Self) -> bool {
        let are_exclusive = |pair: &(Self, Self)| *pair == (self, other) || *pair == (other, self);
        self == other
            || (self, other) == (Self::Protection, Self::PdfStandard)
            || EXCLUSIVE.iter().any(are_exclusive)
    }

    /// Whether a file of this format must not have the field.
    pub(super) fn is_refused_with(self, format: OutputFormat) -> bool {
        match self {
            Self::OmitBackground => format == OutputFormat::Image(ImageFormat::Jpeg),
            Self::Quality | Self::OptimizeForSpeed => !self.spec().formats.include(format),
            _ => self >= Self::Metadata && !self.spec().formats.include(format),
        }
    }

    /// The name in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// A field, or a member of a field that is an object, or of an object in a field that is an array. `Display` is as in
/// JavaScript: `margin.top`, `attachments[0].name`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldPath {
    pub(super) field: FieldName,
    pub(super) index: Option<usize>,
    pub(super) member: Option<&'static str>,
}

impl From<FieldName> for FieldPath {
    fn from(field: FieldName) -> Self {
        Self { field, index: None, member: None }
    }
}

impl FieldPath {
    /// The last of its names.
    pub(super) fn last(self) -> &'static str {
        self.member.unwrap_or_else(|| self.field.as_str())
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.field.as_str())?;
        self.index.map_or(Ok(()), |index| write!(f, "[{index}]"))?;
        self.member.map_or(Ok(()), |member| write!(f, ".{member}"))
    }
}
