//! The last fields of the contract, which concern documents.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::{
    format::OutputFormat,
    job::{
        Attachment, DocumentOptions, Expression, HeaderHtml, Metadata, PdfOptions, PdfStandard, Permission,
        Protection, Relationship,
    },
    limits,
};

use super::{
    field::Field,
    field_name::{FieldName, FieldPath},
    invalid::InvalidRequest,
    object::Object,
};

const METADATA_MEMBERS: &[&str; 7] =
    &["title", "author", "subject", "keywords", "creator", "language", "date"];
const ATTACHMENT_MEMBERS: &[&str; 5] = &["name", "content", "mimeType", "description", "relationship"];
const PROTECTION_MEMBERS: &[&str; 3] = &["userPassword", "ownerPassword", "allow"];

/// The values of the fields from `metadata` on.
pub(super) struct DocumentFields {
    pub(super) wait_for_function: Option<Expression>,
    fit_to_width: bool,
    first_header: Option<HeaderHtml>,
    first_footer: Option<HeaderHtml>,
    document: DocumentOptions,
    /// The first given field that only a PDF may have.
    of_pdf: Option<FieldName>,
}

impl DocumentFields {
    pub(super) fn read(object: &Object<'_>) -> Result<Self, InvalidRequest> {
        let field = |name| object.field(name);
        let metadata = metadata(field(FieldName::Metadata))?;
        let first_header = field(FieldName::HeaderFirstHtml).text_of()?;
        let first_footer = field(FieldName::FooterFirstHtml).text_of()?;
        let fit_to_width = field(FieldName::FitToWidth).boolean()?.unwrap_or_default();
        let wait_for_function = field(FieldName::WaitForFunction).text_of()?;
        let document = DocumentOptions {
            metadata,
            standard: standard(field(FieldName::PdfStandard))?,
            attachments: attachments(field(FieldName::Attachments))?,
            invoice: field(FieldName::InvoiceXml).text_of()?,
            protection: protection(field(FieldName::Protection))?,
        };
        let is_of_pdf = |name: &FieldName| match name {
            FieldName::FitToWidth => fit_to_width,
            FieldName::WaitForFunction => false,
            name => *name >= FieldName::Metadata,
        };
        let of_pdf = object.names().find(is_of_pdf);
        Ok(Self { wait_for_function, fit_to_width, first_header, first_footer, document, of_pdf })
    }

    /// Checks the rules that concern several fields or values.
    pub(super) fn check(&self, has_scale: bool, runs_scripts: bool) -> Result<(), InvalidRequest> {
        if self.fit_to_width && has_scale {
            return Err(InvalidRequest::Conflict(FieldName::FitToWidth.into(), FieldName::Scale.into()));
        }
        if self.wait_for_function.is_some() && !runs_scripts {
            return Err(InvalidRequest::not_with(FieldName::WaitForFunction, FieldName::JavaScript, "false"));
        }
        self.document.check().map_err(InvalidRequest::document)
    }

    /// Checks the fields that a file of this format must not have.
    pub(super) fn check_format(&self, format: OutputFormat) -> Result<(), InvalidRequest> {
        match self.of_pdf {
            Some(field) if format != OutputFormat::Pdf => Err(InvalidRequest::with_format(field, format)),
            _ => Ok(()),
        }
    }

    /// The options of a PDF with these.
    pub(super) fn add_to(self, pdf: PdfOptions) -> PdfOptions {
        PdfOptions {
            fit_to_width: self.fit_to_width,
            first_header: self.first_header,
            first_footer: self.first_footer,
            tagged: pdf.tagged || self.document.standard.ua1,
            document: self.document,
            ..pdf
        }
    }
}

fn rule(field: FieldPath, rule: &str) -> InvalidRequest {
    InvalidRequest::Rule { field, rule: rule.to_owned() }
}

fn metadata(field: Field<'_>) -> Result<Metadata, InvalidRequest> {
    if field.value.is_none() {
        return Ok(Metadata::default());
    }
    let [title, author, subject, keywords, creator, language, date] =
        field.members(METADATA_MEMBERS)?.ok_or_else(|| {
            rule(
                field.name,
                "must be an object of strings: \"title\", \"author\", \"subject\", \"keywords\", \"creator\", \
                 \"language\", \"date\"",
            )
        })?;
    Ok(Metadata {
        title: title.text_of()?,
        author: author.text_of()?,
        subject: subject.text_of()?,
        keywords: keywords.text_of()?,
        creator: creator.text_of()?,
        language: language.text_of()?,
        date: date.text_of()?,
    })
}

fn standard(field: Field<'_>) -> Result<PdfStandard, InvalidRequest> {
    let Some(value) = field.value else { return Ok(PdfStandard::default()) };
    let names = match field.items(2) {
        Some(values) if values.len() == 2 => texts(field, &values),
        Some(_) => None,
        None => texts(field, &[value]),
    };
    names.and_then(|names| PdfStandard::of(&names)).ok_or_else(|| {
        rule(
            field.name,
            "must be \"pdf/a-2b\", \"pdf/a-3b\" or \"pdf/ua-1\", or an array of one of the first two and the last",
        )
    })
}

fn attachments(field: Field<'_>) -> Result<Vec<Attachment>, InvalidRequest> {
    if field.value.is_none() {
        return Ok(Vec::new());
    }
    let items = field
        .items(limits::MAX_ATTACHMENTS)
        .ok_or_else(|| rule(field.name, "must be an array of objects"))?;
    let fields = items.into_iter().enumerate();
    fields
        .map(|(index, value)| {
            let name = FieldPath { index: Some(index), ..field.name };
            attachment(Field { name, value: Some(value) })
        })
        .collect()
}

fn attachment(field: Field<'_>) -> Result<Attachment, InvalidRequest> {
    let [name, content, mime_type, description, relationship] =
        field.members(ATTACHMENT_MEMBERS)?.ok_or_else(|| {
            rule(
                field.name,
                "must be an object of strings: \"name\", \"content\", \"mimeType\", \"description\", \
                 \"relationship\"",
            )
        })?;
    Ok(Attachment {
        name: name.text_of()?.ok_or(InvalidRequest::Required(name.name))?,
        content: content.text_of()?.ok_or(InvalidRequest::Required(content.name))?,
        mime_type: mime_type.text_of()?,
        description: description.text_of()?,
        relationship: relationship.choice(Relationship::NAMES, |name| name.parse().ok())?.unwrap_or_default(),
    })
}

fn protection(field: Field<'_>) -> Result<Option<Protection>, InvalidRequest> {
    if field.value.is_none() {
        return Ok(None);
    }
    let [user_password, owner_password, allow] = field.members(PROTECTION_MEMBERS)?.ok_or_else(|| {
        rule(field.name, "must be an object of \"userPassword\", \"ownerPassword\" and \"allow\"")
    })?;
    Ok(Some(Protection {
        user_password: user_password.text_of()?.unwrap_or_default(),
        owner_password: owner_password.text_of()?.unwrap_or_default(),
        allow: permissions(allow)?,
    }))
}

fn permissions(field: Field<'_>) -> Result<Vec<Permission>, InvalidRequest> {
    if field.value.is_none() {
        return Ok(vec![Permission::Print]);
    }
    let values = field.items(Permission::NAMES.len());
    let names = values.as_ref().and_then(|values| texts(field, values));
    let permissions = names.and_then(|names| names.iter().map(|name| name.parse().ok()).collect());
    permissions.ok_or_else(|| {
        rule(
            field.name,
            "must be an array of \"print\", \"copy\", \"modify\", \"annotate\", \"fill\", \"assemble\"",
        )
    })
}

/// The texts of values; `None` if one is no text.
fn texts<'a>(field: Field<'a>, values: &[&'a RawValue]) -> Option<Vec<Cow<'a, str>>> {
    values.iter().map(|value| field.text(value).ok()).collect()
}
