//! The files in a PDF: those of the job, and the XML of its invoice.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use lopdf::{Document, Object, ObjectId, Stream, dictionary, text_string};
use platen_shared::job::{DocumentOptions, InvoiceXml, MetadataText, Relationship};

use super::metadata::{self, Property, Schema};
use crate::error::JobError;

/// A media type is required in PDF/A.
const DEFAULT_MIME_TYPE: &str = "application/octet-stream";

struct File<'a> {
    name: &'a str,
    content: Vec<u8>,
    mime_type: &'a str,
    description: Option<&'a str>,
    relationship: Relationship,
}

pub(super) fn add(document: &mut Document, options: &DocumentOptions) -> Result<(), JobError> {
    let files = files(options)?;
    if files.is_empty() {
        return Ok(());
    }
    let date = metadata::info(document)?.get(b"ModDate")?.clone();
    let mut names: Vec<(Vec<u8>, Object, ObjectId)> = Vec::new();
    for File { name, content, mime_type, description, relationship } in files {
        let size = i64::try_from(content.len()).unwrap_or(i64::MAX);
        let parameters = dictionary! { "Size" => size, "ModDate" => date.clone() };
        let dictionary =
            dictionary! { "Type" => "EmbeddedFile", "Subtype" => mime_type, "Params" => parameters };
        let mut stream = Stream::new(dictionary, content);
        stream.compress()?;
        let stream = document.add_object(stream);
        let name = text_string(name);
        let mut specification = dictionary! {
            "Type" => "Filespec",
            "F" => name.clone(),
            "UF" => name.clone(),
            "AFRelationship" => pdf_name(relationship),
            "EF" => dictionary! { "F" => stream, "UF" => stream },
        };
        if let Some(description) = description {
            specification.set("Desc", text_string(description));
        }
        names.push((name.as_str()?.to_vec(), name, document.add_object(specification)));
    }
    let associated: Vec<_> = names.iter().map(|(.., id)| Object::Reference(*id)).collect();
    names.sort_by(|(one, ..), (other, ..)| one.cmp(other));
    let names: Vec<_> = names.into_iter().flat_map(|(_, name, id)| [name, Object::Reference(id)]).collect();
    let catalog = document.catalog()?;
    let mut trees =
        catalog.get_deref(b"Names", document).and_then(Object::as_dict).cloned().unwrap_or_default();
    trees.set("EmbeddedFiles", dictionary! { "Names" => names });
    let catalog = document.catalog_mut()?;
    catalog.set("Names", trees);
    catalog.set("AF", associated);
    Ok(())
}

fn files(options: &DocumentOptions) -> Result<Vec<File<'_>>, JobError> {
    let mut files = Vec::new();
    if let Some(invoice) = &options.invoice {
        let profile = invoice.profile();
        files.push(File {
            name: profile.file_name,
            content: invoice.as_str().into(),
            mime_type: "text/xml",
            description: Some("Factur-X/ZUGFeRD invoice"),
            relationship: if profile.is_alternative { Relationship::Alternative } else { Relationship::Data },
        });
    }
    for attachment in &options.attachments {
        files.push(File {
            name: attachment.name.as_str(),
            content: BASE64_STANDARD.decode(attachment.content.as_str()).map_err(|_| JobError::NoFile)?,
            mime_type: attachment.mime_type.as_ref().map_or(DEFAULT_MIME_TYPE, |it| it.as_str()),
            description: attachment.description.as_ref().map(MetadataText::as_str),
            relationship: attachment.relationship,
        });
    }
    Ok(files)
}

fn pdf_name(relationship: Relationship) -> &'static str {
    match relationship {
        Relationship::Source => "Source",
        Relationship::Data => "Data",
        Relationship::Alternative => "Alternative",
        Relationship::Supplement => "Supplement",
        Relationship::Unspecified => "Unspecified",
    }
}

/// What the metadata of a PDF say of its invoice (Factur-X and `ZUGFeRD`).
pub(super) fn invoice_schema(invoice: &InvoiceXml) -> Schema {
    let profile = invoice.profile();
    let property = |name, description, value: &str| Property {
        name,
        value_type: "Text",
        category: "external",
        description,
        value: value.to_owned(),
    };
    Schema {
        name: "Factur-X PDFA Extension Schema",
        namespace: "urn:factur-x:pdfa:CrossIndustryDocument:invoice:1p0#",
        prefix: "fx",
        properties: vec![
            property("DocumentFileName", "The name of the embedded XML document", profile.file_name),
            property("DocumentType", "The type of the embedded document", "INVOICE"),
            property("Version", "The version of the standard of the embedded document", profile.version),
            property(
                "ConformanceLevel",
                "The conformance level of the embedded document",
                profile.conformance_level,
            ),
        ],
    }
}
