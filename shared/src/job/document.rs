//! What a PDF has beyond the pages that the browser prints: metadata, a standard, files and protection.

use std::fmt;

use serde::{Deserialize, Serialize};
use strum::{EnumString, VariantNames};

use super::{LimitedText, ShortText};
use crate::{limits, locale::Locale};

/// A text of the metadata, a password or a file, without its content in `Debug`.
pub type MetadataText = ShortText<{ limits::MAX_METADATA_CHARS }>;
/// A Factur-X or ZUGFeRD invoice as XML (CII).
pub type InvoiceXml = LimitedText<{ limits::MAX_INVOICE_BYTES }>;

/// What a PDF has beyond the pages that the browser prints.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DocumentOptions {
    /// The metadata.
    pub metadata: Metadata,
    /// The standards that the file conforms to.
    pub standard: PdfStandard,
    /// The files in it.
    pub attachments: Vec<Attachment>,
    /// The invoice in it, which makes it a PDF/A-3b.
    pub invoice: Option<InvoiceXml>,
    /// Its passwords.
    pub protection: Option<Protection>,
}

/// The metadata of a PDF.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Metadata {
    /// The title; without it that of the page.
    pub title: Option<MetadataText>,
    /// The author.
    pub author: Option<MetadataText>,
    /// What it is about.
    pub subject: Option<MetadataText>,
    /// Keywords, separated as the caller does.
    pub keywords: Option<MetadataText>,
    /// The program that made the content.
    pub creator: Option<MetadataText>,
    /// The language; without it that of the page.
    pub language: Option<Locale>,
    /// The dates of creation and change; without it the present.
    pub date: Option<Date>,
}

/// The standards that a PDF conforms to. The default is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PdfStandard {
    /// PDF/A.
    pub archive: Option<PdfA>,
    /// PDF/UA-1.
    pub ua1: bool,
}

/// A level of PDF/A.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names are those of the standard")]
pub enum PdfA {
    A2b,
    A3b,
}

/// A file in a PDF.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attachment {
    /// The name, without a path.
    pub name: String,
    /// The content in base64.
    pub content: Base64,
    /// The media type.
    #[serde(default)]
    pub mime_type: Option<String>,
    /// What it is.
    #[serde(default)]
    pub description: Option<String>,
    /// Its relationship to the document.
    #[serde(default)]
    pub relationship: Relationship,
}

/// Base64 of the standard alphabet, with padding.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Base64(String);

/// The relationship of a file to the document (`AFRelationship`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, EnumString, VariantNames)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
#[expect(missing_docs, reason = "the names are those of PDF")]
pub enum Relationship {
    Source,
    Data,
    Alternative,
    Supplement,
    #[default]
    Unspecified,
}

/// The passwords of a PDF, and what its readers may do without the owner's. At least one password is not empty.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Protection {
    /// Opens the file; empty if everybody may open it.
    pub user_password: String,
    /// Opens the file with all rights; empty if nobody has it.
    pub owner_password: String,
    /// What readers may do.
    pub allow: Vec<Permission>,
}

impl fmt::Debug for Protection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Protection").field("allow", &self.allow).finish_non_exhaustive()
    }
}

/// What a reader of a protected PDF may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, EnumString, VariantNames)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
#[expect(missing_docs, reason = "the names describe the variants")]
pub enum Permission {
    Print,
    Copy,
    Modify,
    Annotate,
    Fill,
    Assemble,
}

/// An RFC 3339 date with its offset, to the second.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Date(String);

impl Base64 {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Base64 {
    /// Shows the size only, because content of the caller must not appear in logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Base64({} characters)", self.0.len())
    }
}

impl Date {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
