//! The XMP packet of a file (ISO 16684-1), as RDF in XML.

use lopdf::{Dictionary, decode_text_string};
use platen_shared::job::PdfA;

/// Properties of a namespace that PDF/A does not know, so that the packet describes them (ISO 19005-3, 6.6.2.3).
#[derive(Debug)]
pub(super) struct Schema {
    /// The name for people.
    pub(super) name: &'static str,
    /// The namespace.
    pub(super) namespace: &'static str,
    /// The prefix that its users expect.
    pub(super) prefix: &'static str,
    /// The properties.
    pub(super) properties: Vec<Property>,
}

/// A property of a schema.
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

/// The packet of a file with this information dictionary.
pub(super) fn packet(
    info: &Dictionary,
    language: Option<&str>,
    archive: Option<PdfA>,
    schemas: &[Schema],
) -> String {
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
    let time = |key: &[u8]| text(key).as_deref().and_then(date);
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
    let mut namespaces = String::new();
    for Schema { namespace, prefix, properties: own, .. } in schemas {
        namespaces += &[" xmlns:", prefix, "=\"", namespace, "\""].concat();
        for Property { name, value, .. } in own {
            properties += &simple(&format!("{prefix}:{name}"), Some(value.clone()));
        }
    }
    if !schemas.is_empty() {
        let descriptions: String = schemas.iter().map(Schema::description).collect();
        let list =
            ["<pdfaExtension:schemas><rdf:Bag>\n", &descriptions, "</rdf:Bag></pdfaExtension:schemas>\n"];
        properties += &list.concat();
    }
    format!(
        "<?xpacket begin=\"\u{feff}\" id=\"W5M0MpCehiHzreSzNTczkc9d\"?>\n\
         <x:xmpmeta xmlns:x=\"adobe:ns:meta/\">\n\
         <rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\">\n\
         <rdf:Description rdf:about=\"\" xmlns:dc=\"http://purl.org/dc/elements/1.1/\" \
         xmlns:pdf=\"http://ns.adobe.com/pdf/1.3/\" xmlns:xmp=\"http://ns.adobe.com/xap/1.0/\" \
         xmlns:pdfaid=\"http://www.aiim.org/pdfa/ns/id/\" \
         xmlns:pdfaExtension=\"http://www.aiim.org/pdfa/ns/extension/\" \
         xmlns:pdfaSchema=\"http://www.aiim.org/pdfa/ns/schema#\" \
         xmlns:pdfaProperty=\"http://www.aiim.org/pdfa/ns/property#\"{namespaces}>\n\
         {properties}</rdf:Description>\n</rdf:RDF>\n</x:xmpmeta>\n<?xpacket end=\"r\"?>"
    )
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
pub(super) fn date(date: &str) -> Option<String> {
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
    use lopdf::{dictionary, text_string};

    use super::*;

    #[test]
    fn a_packet_has_the_values_escaped() {
        let info = dictionary! {
            "Title" => text_string("A < \u{1}B & \"C\" ä 😀"),
            "Author" => text_string("]]>"),
            "CreationDate" => text_string("D:20260724093000+02'00'"),
        };
        let packet = packet(&info, Some("de-CH"), Some(PdfA::A3b), &[]);
        for expected in [
            "<dc:title><rdf:Alt>\n<rdf:li xml:lang=\"x-default\">A &lt;  B &amp; \"C\" ä 😀</rdf:li>\n</rdf:Alt></dc:title>",
            "<dc:creator><rdf:Seq>\n<rdf:li>]]&gt;</rdf:li>\n",
            "<rdf:li>de-CH</rdf:li>",
            "<xmp:CreateDate>2026-07-24T09:30:00+02:00</xmp:CreateDate>",
            "<pdfaid:part>3</pdfaid:part>\n<pdfaid:conformance>B</pdfaid:conformance>",
        ] {
            assert!(packet.contains(expected), "{packet}");
        }
        assert!(!packet.contains("pdf:Keywords>"));
    }
}
