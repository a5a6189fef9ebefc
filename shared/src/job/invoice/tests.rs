//! Invoices of all profiles, and texts that are none.

#![allow(clippy::unwrap_used, reason = "tests")]

use proptest::prelude::*;

use super::*;

const MINIMUM: &str = include_str!("../../../../tests/fixtures/invoices/minimum.xml");
const BASIC_WL: &str = include_str!("../../../../tests/fixtures/invoices/basic-wl.xml");
const BASIC: &str = include_str!("../../../../tests/fixtures/invoices/basic.xml");

fn refusal(text: &str) -> String {
    InvoiceXml::try_from(text.to_owned()).unwrap_err().to_string()
}

#[test]
fn profiles() {
    let guideline = PROFILES[2].guideline;
    for profile in &PROFILES {
        let text = match profile.conformance_level {
            "MINIMUM" => MINIMUM.to_owned(),
            "BASIC WL" => BASIC_WL.to_owned(),
            _ => BASIC.replace(guideline, profile.guideline),
        };
        assert_eq!(InvoiceXml::try_from(text).unwrap().profile(), profile);
    }
    // Another way to write the same.
    let text = MINIMUM.replace("ram:", "a:").replace("xmlns:ram", "xmlns:a");
    let text =
        text.replace("urn:factur-x.eu:1p0:minimum", "\n<![CDATA[urn:factur-x]]><!-- -->.eu:1p0&#58;minimum ");
    let text = format!("\u{feff}{}", text.replace("encoding=\"UTF-8\"", "encoding='utf-8' standalone='yes'"));
    assert_eq!(InvoiceXml::try_from(text).unwrap().profile().conformance_level, "MINIMUM");
}

#[test]
fn required_elements() {
    for path in REQUIRED {
        let (parents, name) = path.rsplit_once('/').unwrap();
        let parent = parents.rsplit('/').next().unwrap();
        let at = MINIMUM.find(&format!("<{parent}>")).unwrap();
        let at = at + MINIMUM[at..].find(&format!("<{name}")).unwrap();
        // In another place.
        let (before, after) = MINIMUM.split_at(at);
        let end = format!("</{parent}>");
        let moved = format!("{before}<x>{}", after.replacen(&end, &format!("</x>{end}"), 1));
        assert_eq!(refusal(&moved), format!("has no element {path}"));
        // Without a text.
        let (start, content) = (at + MINIMUM[at..].find('>').unwrap() + 1, MINIMUM[at..].find("</"));
        let is_text = MINIMUM[at..].find("</").is_some_and(|end| !MINIMUM[start..at + end].contains('<'));
        assert_eq!(is_text, path != DELIVERY, "{path}");
        for empty in
            ["", " \n", "<![CDATA[ ]]>", "<!-- text -->", "<x>text</x>"].into_iter().filter(|_| is_text)
        {
            let text = format!("{}{empty}{}", &MINIMUM[..start], &MINIMUM[at + content.unwrap()..]);
            assert_eq!(refusal(&text), format!("has no element {path}"), "{empty:?}");
        }
    }
    // In another namespace.
    let other = MINIMUM.replace("UnqualifiedDataType:100", "UnqualifiedDataType:101");
    assert_eq!(refusal(&other), format!("has no element {}", REQUIRED[3]));
}

#[test]
fn refusals() {
    let root = "must have the root element \"CrossIndustryInvoice\" of the namespace \
                urn:un:unece:uncefact:data:standard:CrossIndustryInvoice:100, not ";
    let guideline = "has the unknown guideline ";
    let expansion =
        "<!DOCTYPE a [<!ENTITY b 'bbbb'><!ENTITY c '&b;&b;'><!ENTITY % d SYSTEM 'file:///etc/passwd'>]>";
    let cases = [
        (String::new(), "must be well-formed XML: 1:1 "),
        ("{}".into(), "must be well-formed XML: 1:1 "),
        (MINIMUM.replace("</ram:TypeCode>", "</ram:Type>"), "must be well-formed XML: 8:"),
        (MINIMUM.replace("&amp;", "&"), "must be well-formed XML: 20:"),
        (MINIMUM.replace("&amp;", "&euro;"), "must be well-formed XML: 20:"),
        (MINIMUM.replace("&amp;", "\u{1}"), "must be well-formed XML: 20:"),
        (format!("{MINIMUM}<a/>"), "must be well-formed XML: "),
        (format!(" {MINIMUM}"), "must be well-formed XML: "),
        (MINIMUM.replace(" xmlns:udt", " udt"), "must be well-formed XML: "),
        (
            MINIMUM.replace("<rsm:CrossIndustryInvoice ", &format!("{expansion}<a>&c;</a>")),
            "must have no DTD",
        ),
        ("<!DOCTYPE a><a/>".into(), "must have no DTD"),
        (MINIMUM.replace("UTF-8", "ISO-8859-1"), "must be XML 1.0 in UTF-8; "),
        (MINIMUM.replace("1.0\" e", "1.1\" e"), "must be XML 1.0 in UTF-8; "),
        ("<a/>".into(), &format!("{root}\"a\"")),
        // ZUGFeRD 1.
        (
            "<CrossIndustryDocument xmlns='urn:ferd:CrossIndustryDocument:invoice:1p0'/>".into(),
            &format!("{root}\"CrossIndustryDocument\""),
        ),
        (MINIMUM.replace("CrossIndustryInvoice:100", "CrossIndustryInvoice:200"), root),
        (
            MINIMUM.replace("1p0:minimum", "1p0:maximum"),
            &format!("{guideline}\"urn:factur-x.eu:1p0:maximum\" in "),
        ),
        (MINIMUM.replace("urn:factur-x.eu:1p0:minimum", ""), &format!("has no element {GUIDELINE}")),
        (
            format!("<!--{}-->{MINIMUM}", " ".repeat(limits::MAX_INVOICE_BYTES)),
            "must be at most 2097152 bytes",
        ),
    ];
    for (text, expected) in cases {
        let refusal = refusal(&text);
        assert!(refusal.starts_with(expected), "{refusal}: {text}");
    }
}

/// Texts for which a parser without limits takes minutes, or memory without end.
#[test]
fn hostile() {
    let half = limits::MAX_INVOICE_BYTES / 2;
    let start = MINIMUM.find("<rsm:ExchangedDocumentContext>").unwrap();
    let (root, rest) = MINIMUM.split_at(start);
    let many = |text: &dyn Fn(usize) -> String, bytes| {
        (0..)
            .map(text)
            .scan(0, |sum, it| {
                *sum += it.len();
                (*sum < bytes).then_some(it)
            })
            .collect::<String>()
    };
    let namespaces = many(&|at| format!(" xmlns:n{at}='u{at}'"), half);
    let attributes = many(&|at| format!(" a{at}=''"), half);
    let inside = |text: String| format!("{root}{text}{rest}");
    for (text, expected) in [
        (inside(many(&|_| "<a>".into(), half)), "must have at most 50000 elements"),
        (inside(many(&|at| format!("<a xmlns:n{at}='u'>"), half)), "must have at most 50000 elements"),
        (inside(format!("<a{namespaces}/>")), "must have at most 50000 elements"),
        (inside(format!("<a{attributes} a0=''/>")), "must have at most 50000 elements"),
        (inside(format!("</{}>", "a".repeat(half / 10))), "must be well-formed XML: "),
        (
            format!("<!DOCTYPE a [{}]>{MINIMUM}", many(&|at| format!("<!ENTITY e{at} '&e;'>"), half)),
            "must have no DTD",
        ),
    ] {
        let refusal = refusal(&text);
        assert!(refusal.starts_with(expected) && refusal.len() < 300, "{refusal}");
    }
    let namespaces = many(&|at| format!(" xmlns:n{at}='{}'", "u".repeat(900)), 12_000);
    let nested =
        format!("{}{}{}", format!("<a{namespaces}>").repeat(14), "<b/>".repeat(half / 4), "</a>".repeat(14));
    for text in [nested, "<a/>".repeat(half / 4)] {
        assert!(refusal(&inside(text)).starts_with("must have at most 50000 elements"));
    }
    // Nine namespaces around each of many elements.
    let around: Vec<_> = (0..9).map(|at| format!("<a xmlns:n{at}='{}'>", "u".repeat(900))).collect();
    for text in [
        "&#65;".repeat(half / 3),
        "<![CDATA[a]]>b".repeat(half / 8),
        format!("<a b='{}'/>", "b".repeat(half)),
        format!("<{}/>", "a".repeat(half)),
        format!("{}{}{}", around.concat(), "<b/>".repeat(49_000), "</a>".repeat(9)),
    ] {
        assert!(InvoiceXml::try_from(inside(text)).is_ok());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_panics(text in ".*") {
        let _ = InvoiceXml::try_from(text);
    }

    #[test]
    fn no_change_panics(
        at in any::<prop::sample::Index>(),
        length in 0_usize..30,
        inserted in prop_oneof!["[<>&;'\"/!?=:a-]{0,5}", "\\PC{0,5}", any::<String>()],
    ) {
        let boundaries: Vec<_> = MINIMUM.char_indices().map(|(at, _)| at).collect();
        let from = at.index(boundaries.len());
        let to = boundaries[(from + length).min(boundaries.len() - 1)];
        let text = format!("{}{inserted}{}", &MINIMUM[..boundaries[from]], &MINIMUM[to.max(boundaries[from])..]);
        if let Ok(invoice) = InvoiceXml::try_from(text.clone()) {
            prop_assert_eq!(String::from(invoice), text);
        }
    }
}
