//! The metadata of a file: its information dictionary, the XMP packet with the same values, its language and its identifier.

use lopdf::{
    Dictionary, Document, Object, Stream, StringFormat, decode_text_string, dictionary, text_string,
};
use platen_shared::{
    job::{DocumentOptions, Metadata, PdfA},
    locale::Locale,
};
use sha2::{Digest as _, Sha256};

/// Sets what the job asks for in the information dictionary, which has the browser's values.
pub(super) fn set_info(document: &mut Document, metadata: &Metadata) -> lopdf::Result<()> {
    let info = document.trailer.get(b"Info")?.as_reference()?;
    let info = document.get_dictionary_mut(info)?;
    for (key, text) in [
        ("Title", &metadata.title),
        ("Author", &metadata.author),
        ("Subject", &metadata.subject),
        ("Keywords", &metadata.keywords),
        ("Creator", &metadata.creator),
    ] {
        if let Some(text) = text {
            info.set(key, text_string(text.as_str()));
        }
    }
    if let Some(date) = metadata.date.as_ref().and_then(|date| pdf_date(date.as_str())) {
        for key in ["CreationDate", "ModDate"] {
            info.set(key, Object::string_literal(date.as_str()));
        }
    }
    Ok(())
}

/// Sets the language of the document. Where the page names none, the browser has written its own.
pub(super) fn set_language(document: &mut Document, language: Option<&Locale>) -> lopdf::Result<()> {
    let catalog = document.catalog_mut()?;
    match language {
        Some(language) => catalog.set("Lang", Object::string_literal(language.as_str())),
        None => _ = catalog.remove(b"Lang"),
    }
    let tree = document.catalog()?.get_deref(b"StructTreeRoot", document).and_then(Object::as_dict);
    if let Ok(root) = tree.and_then(|tree| tree.get(b"K")).and_then(Object::as_reference) {
        document.get_dictionary_mut(root)?.remove(b"Lang");
    }
    Ok(())
}

/// Adds the XMP packet with the values of the information dictionary.
pub(super) fn add_xmp(
    document: &mut Document,
    archive: Option<PdfA>,
    schemas: &[Schema],
) -> lopdf::Result<()> {
    let language = document.catalog()?.get(b"Lang").and_then(decode_text_string).ok();
    let packet = packet(info(document)?, language.as_deref(), archive, schemas);
    let dictionary = dictionary! { "Type" => "Metadata", "Subtype" => "XML" };
    // Readers that know nothing of PDF look for the packet in the bytes of the file.
    let stream = Stream::new(dictionary, packet.into_bytes()).with_compression(false);
    let stream = document.add_object(stream);
    let catalog = document.catalog_mut()?;
    catalog.set("Metadata", stream);
    catalog.set("ViewerPreferences", dictionary! { "DisplayDocTitle" => true });
    Ok(())
}

pub(super) fn info(document: &Document) -> lopdf::Result<&Dictionary> {
    document.get_dictionary(document.trailer.get(b"Info")?.as_reference()?)
}

pub(super) fn has_title(document: &Document) -> bool {
    let title = info(document).and_then(|info| info.get(b"Title")).and_then(decode_text_string);
    title.is_ok_and(|title| !title.trim().is_empty())
}

/// Identifies the file by what it has: its pages, fonts, images, files and XMP packet.
pub(super) fn set_id(document: &mut Document) {
    let mut hash = Sha256::new();
    for object in document.objects.values() {
        if let Object::Stream(stream) = object {
            hash.update(&stream.content);
        }
    }
    let id = Object::String(hash.finalize()[..16].to_vec(), StringFormat::Hexadecimal);
    document.trailer.set("ID", vec![id.clone(), id]);
}

pub(super) fn is_wanted(options: &DocumentOptions) -> bool {
    options.metadata != Metadata::default() || options.archive().is_some() || options.standard.ua1
}

/// A date of PDF for one of RFC 3339 such as `2026-07-24T09:30:00+02:00`.
fn pdf_date(date: &str) -> Option<String> {
    let (time, rest) = date.split_at_checked("2026-07-24T09:30:00".len())?;
    let digits: String = time.chars().filter(char::is_ascii_digit).collect();
    let offset = rest.trim_start_matches(|character: char| character == '.' || character.is_ascii_digit());
    let offset = if offset.eq_ignore_ascii_case("z") { "+00:00" } else { offset };
    Some(format!("D:{digits}{}'", offset.replace(':', "'")))
}

/// Properties of a namespace that PDF/A does not know, so that the packet describes them (ISO 19005-3, 6.6.2.3).
#[derive(Debug)]
pub(super) struct Schema {
    pub(super) name: &'static str,
    pub(super) namespace: &'static str,
    /// The prefix that its users expect.
    pub(super) prefix: &'static str,
    pub(super) properties: Vec<Property>,
}

#[derive(Debug)]
pub(super) struct Property {
    pub(super) name: &'static str,
    /// The type of the value, such as `Text`.
    pub(super) value_type: &'static str,
    /// `external` if a person has chosen the value, else `internal`.
    pub(super) category: &'static str,
    pub(super) description: &'static str,
    pub(super) value: String,
}

/// Prefixes and namespaces of an XMP packet, apart from those of its schemas.
const NAMESPACES: [(&str, &str); 7] = [
    ("dc", "http://purl.org/dc/elements/1.1/"),
    ("pdf", "http://ns.adobe.com/pdf/1.3/"),
    ("xmp", "http://ns.adobe.com/xap/1.0/"),
    ("pdfaid", "http://www.aiim.org/pdfa/ns/id/"),
    ("pdfaExtension", "http://www.aiim.org/pdfa/ns/extension/"),
    ("pdfaSchema", "http://www.aiim.org/pdfa/ns/schema#"),
    ("pdfaProperty", "http://www.aiim.org/pdfa/ns/property#"),
];

/// The XMP packet (ISO 16684-1) of a file with this information dictionary.
fn packet(info: &Dictionary, language: Option<&str>, archive: Option<PdfA>, schemas: &[Schema]) -> String {
    let text = |key: &[u8]| info.get(key).and_then(decode_text_string).ok();
    let simple = |name: &str, value: Option<String>| {
        value.map(|value| format!("<{name}>{}</{name}>\n", escaped(&value))).unwrap_or_default()
    };
    let list = |name: &str, kind: &str, attribute: &str, value: Option<String>| {
        let item = value.map(|value| {
            simple("rdf:li", Some(value)).replacen("<rdf:li", &format!("<rdf:li{attribute}"), 1)
        });
        item.map(|item| format!("<{name}><rdf:{kind}>\n{item}</rdf:{kind}></{name}>\n")).unwrap_or_default()
    };
    let default_language = " xml:lang=\"x-default\"";
    let time = |key: &[u8]| text(key).as_deref().and_then(xmp_date);
    let mut properties = [
        simple("dc:format", Some("application/pdf".to_owned())),
        list("dc:title", "Alt", default_language, text(b"Title")),
        list("dc:creator", "Seq", "", text(b"Author")),
        list("dc:description", "Alt", default_language, text(b"Subject")),
        list("dc:language", "Bag", "", language.map(str::to_owned)),
        simple("pdf:Keywords", text(b"Keywords")),
        simple("pdf:Producer", text(b"Producer")),
        simple("xmp:CreatorTool", text(b"Creator")),
        simple("xmp:CreateDate", time(b"CreationDate")),
        simple("xmp:ModifyDate", time(b"ModDate")),
    ]
    .concat();
    if let Some(level) = archive {
        let part = if level == PdfA::A2b { "2" } else { "3" };
        properties += &simple("pdfaid:part", Some(part.to_owned()));
        properties += &simple("pdfaid:conformance", Some("B".to_owned()));
    }
    for Schema { prefix, properties: own, .. } in schemas {
        for Property { name, value, .. } in own {
            properties += &simple(&format!("{prefix}:{name}"), Some(value.clone()));
        }
    }
    if !schemas.is_empty() {
        let descriptions: String = schemas.iter().map(Schema::description).collect();
        properties += "<pdfaExtension:schemas><rdf:Bag>\n";
        properties += &(descriptions + "</rdf:Bag></pdfaExtension:schemas>\n");
    }
    let namespaces = namespaces(&properties, schemas);
    format!(
        "<?xpacket begin=\"\u{feff}\" id=\"W5M0MpCehiHzreSzNTczkc9d\"?>\n\
         <x:xmpmeta xmlns:x=\"adobe:ns:meta/\">\n\
         <rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\">\n\
         <rdf:Description rdf:about=\"\"{namespaces}>\n\
         {properties}</rdf:Description>\n</rdf:RDF>\n</x:xmpmeta>\n<?xpacket end=\"r\"?>"
    )
}

/// The declarations of the namespaces that properties use. Validators refuse one that is not used.
fn namespaces(properties: &str, schemas: &[Schema]) -> String {
    let own = schemas.iter().map(|schema| (schema.prefix, schema.namespace));
    let used = NAMESPACES.into_iter().chain(own).filter(|(it, _)| properties.contains(&format!("<{it}:")));
    used.flat_map(|(prefix, namespace)| [" xmlns:", prefix, "=\"", namespace, "\""]).collect()
}

impl Schema {
    fn description(&self) -> String {
        let Self { name, namespace, prefix, properties } = self;
        let properties: String = properties.iter().map(Property::description).collect();
        format!(
            "<rdf:li rdf:parseType=\"Resource\">\n<pdfaSchema:schema>{name}</pdfaSchema:schema>\n\
             <pdfaSchema:namespaceURI>{namespace}</pdfaSchema:namespaceURI>\n\
             <pdfaSchema:prefix>{prefix}</pdfaSchema:prefix>\n\
             <pdfaSchema:property><rdf:Seq>\n{properties}</rdf:Seq></pdfaSchema:property>\n</rdf:li>\n"
        )
    }
}

impl Property {
    fn description(&self) -> String {
        let Self { name, value_type, category, description, .. } = self;
        format!(
            "<rdf:li rdf:parseType=\"Resource\">\n<pdfaProperty:name>{name}</pdfaProperty:name>\n\
             <pdfaProperty:valueType>{value_type}</pdfaProperty:valueType>\n\
             <pdfaProperty:category>{category}</pdfaProperty:category>\n\
             <pdfaProperty:description>{description}</pdfaProperty:description>\n</rdf:li>\n"
        )
    }
}

/// The date of XMP for one of PDF such as `D:20260724093000+02'00'`.
fn xmp_date(date: &str) -> Option<String> {
    let digits = date.strip_prefix("D:")?;
    let part = |range| digits.get(range).filter(|part: &&str| part.bytes().all(|byte| byte.is_ascii_digit()));
    let (year, month, day) = (part(0..4)?, part(4..6)?, part(6..8)?);
    let (hour, minute, second) = (part(8..10)?, part(10..12)?, part(12..14)?);
    let offset = digits.get(14..)?.trim_end_matches('\'').replace('\'', ":");
    Some(format!("{year}-{month}-{day}T{hour}:{minute}:{second}{offset}"))
}

/// Text for the content of an element, without the characters that XML does not have.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '\t' | '\n' => escaped.push(character),
            '\0'..=' ' | '\u{fffe}' | '\u{ffff}' => escaped.push(' '),
            _ => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_have_the_form_of_pdf() {
        for (date, expected) in [
            ("2026-07-24T09:30:00+02:00", "D:20260724093000+02'00'"),
            ("2026-07-24T09:30:00-03:30", "D:20260724093000-03'30'"),
            ("2026-07-24T09:30:00Z", "D:20260724093000+00'00'"),
            ("2026-07-24t09:30:00.25z", "D:20260724093000+00'00'"),
        ] {
            let found = pdf_date(date).unwrap();
            assert_eq!(found, expected);
            assert!(xmp_date(&found).is_some_and(|it| it.starts_with("2026-07-24T09:30:00")), "{found}");
        }
        assert_eq!(pdf_date("2026"), None);
    }

    #[test]
    fn text_is_escaped() {
        assert_eq!(escaped("]]> < \u{1}B & \"C\" ä 😀"), "]]&gt; &lt;  B &amp; \"C\" ä 😀");
    }
}
