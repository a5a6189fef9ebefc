//! What a PDF has beyond the pages that the browser prints: metadata, a standard, files and protection.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use strum::{EnumString, VariantNames};
use unicode_normalization::UnicodeNormalization as _;

use super::{AttachmentName, Base64, Date, InvalidOptions, InvoiceXml, MetadataText, MimeType, PdfPassword};
use crate::{limits, locale::Locale};

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

impl DocumentOptions {
    /// The level of PDF/A of the file. One with an invoice in it is a PDF/A-3b.
    #[must_use]
    pub fn archive(&self) -> Option<PdfA> {
        if self.invoice.is_some() { Some(PdfA::A3b) } else { self.standard.archive }
    }

    /// Checks the rules that concern several values.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn check(&self) -> Result<(), InvalidOptions> {
        let Self { standard, attachments, invoice, protection, .. } = self;
        let bytes = attachments.iter().map(|it| it.content.decoded_bytes()).sum::<usize>();
        let names: Vec<String> = attachments.iter().map(|it| one_case(it.name.as_str())).collect();
        let is_repeated = |index: &usize| {
            let (before, name) = (&names[..*index], &names[*index]);
            before.contains(name) || invoice.is_some() && InvoiceXml::FILE_NAMES.contains(&name.as_str())
        };
        let is_a2b = standard.archive == Some(PdfA::A2b);
        if attachments.len() > limits::MAX_ATTACHMENTS {
            return Err(InvalidOptions::TooManyAttachments);
        }
        if bytes > limits::MAX_ATTACHMENT_BYTES {
            return Err(InvalidOptions::AttachmentsTooLarge);
        }
        if let Some(index) = (0..attachments.len()).find(is_repeated) {
            return Err(InvalidOptions::RepeatedName { index });
        }
        if is_a2b && !attachments.is_empty() {
            return Err(InvalidOptions::FilesInA2b);
        }
        if is_a2b && invoice.is_some() {
            return Err(InvalidOptions::InvoiceInA2b);
        }
        let Some(Protection { user_password, owner_password, allow }) = protection else { return Ok(()) };
        if [user_password, owner_password].iter().all(|password| password.as_str().is_empty()) {
            Err(InvalidOptions::NoPassword)
        } else if allow.iter().collect::<BTreeSet<_>>().len() < allow.len() {
            Err(InvalidOptions::RepeatedPermission)
        } else if *standard != PdfStandard::default() {
            Err(InvalidOptions::ProtectedStandard)
        } else if invoice.is_some() {
            Err(InvalidOptions::ProtectedInvoice)
        } else {
            Ok(())
        }
    }
}

/// A name without regard to case and normal form. Upper case and then lower case makes `ß` equal to `SS`, and both small
/// sigmas equal.
fn one_case(name: &str) -> String {
    name.chars().flat_map(char::to_uppercase).flat_map(char::to_lowercase).nfkc().collect()
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
    /// The name, which no other file has.
    pub name: AttachmentName,
    /// The content in base64.
    pub content: Base64,
    /// The media type.
    #[serde(default)]
    pub mime_type: Option<MimeType>,
    /// What it is.
    #[serde(default)]
    pub description: Option<MetadataText>,
    /// Its relationship to the document.
    #[serde(default)]
    pub relationship: Relationship,
}

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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Protection {
    /// Opens the file; empty if everybody may open it.
    pub user_password: PdfPassword,
    /// Opens the file with all rights; empty if no such password is wanted.
    pub owner_password: PdfPassword,
    /// What readers may do, each once.
    pub allow: Vec<Permission>,
}

/// What a reader of a protected PDF may do.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, EnumString, VariantNames,
)]
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

impl PdfStandard {
    /// The names of the standards.
    pub const NAMES: &'static [&'static str] = &["pdf/a-2b", "pdf/a-3b", "pdf/ua-1"];

    /// One standard, or PDF/A and PDF/UA in any order; `None` for other names.
    #[must_use]
    pub fn of(names: &[impl AsRef<str>]) -> Option<Self> {
        let one = |name: &str| match name {
            "pdf/a-2b" => Some(Self { archive: Some(PdfA::A2b), ua1: false }),
            "pdf/a-3b" => Some(Self { archive: Some(PdfA::A3b), ua1: false }),
            "pdf/ua-1" => Some(Self { archive: None, ua1: true }),
            _ => None,
        };
        match names {
            [name] => one(name.as_ref()),
            [first, second] => {
                let (first, second) = (one(first.as_ref())?, one(second.as_ref())?);
                let both = Self { archive: first.archive.or(second.archive), ua1: true };
                (first.ua1 != second.ua1).then_some(both)
            }
            _ => None,
        }
    }
}
