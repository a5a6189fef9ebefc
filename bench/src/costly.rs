//! Bodies of about 1 MiB that cost the edge the most time, a field each.

use platen_harness::client::{RENDER, TEMPLATE};
use platen_shared::limits::MAX_VARIABLES;
use serde_json::{Value, json};

const MIB: usize = 1024 * 1024;

/// A body and its endpoint.
#[derive(Debug, Clone)]
pub(crate) struct CostlyBody {
    pub(crate) name: &'static str,
    pub(crate) path: &'static str,
    pub(crate) body: String,
}

/// So many texts that they have this size, each made from its number.
fn many(bytes: usize, text: impl Fn(usize) -> String) -> String {
    let mut all = String::with_capacity(bytes);
    for number in 0.. {
        let text = text(number);
        if all.len() + text.len() > bytes {
            break;
        }
        all += &text;
    }
    all
}

/// An invoice with this text inside of elements that are around the rest of it.
fn invoice(around: &str, inside: &str) -> String {
    let root =
        "<r:CrossIndustryInvoice xmlns:r='urn:un:unece:uncefact:data:standard:CrossIndustryInvoice:100'>";
    let ends = "</a>".repeat(around.matches("<a").count());
    format!("{root}{around}{inside}{ends}</r:CrossIndustryInvoice>")
}

/// Nine elements that declare long namespaces, around 49,000 small ones: 200 KB.
fn invoice_of_namespaces() -> String {
    let around: Vec<_> = (0..9).map(|number| format!("<a xmlns:n{number}='{}'>", "u".repeat(900))).collect();
    invoice(&around.concat(), &"<b/>".repeat(49_000))
}

/// Every body. The template is [`template`], and of the account whose key is used.
pub(crate) fn bodies(template: &str) -> Vec<CostlyBody> {
    let attributes = many(8 * " a0=''".len(), |number| format!(" a{number}=''"));
    let file = |content: String| json!([{ "name": "a", "content": content }]);
    let names = many(MIB, |number| format!("\"{number:04}{}\":1,", "\u{323}\u{307}".repeat(256)));
    let mut bodies = vec![CostlyBody { name: "nothing", path: RENDER, body: "{}".to_owned() }];
    for (name, field, value) in [
        ("`html`", "html", json!("x".repeat(MIB))),
        ("`html`, not ASCII", "html", json!("é".repeat(MIB / 2))),
        ("`url`, a long host", "url", json!(format!("http://{}.example/", "ü".repeat(2_030)))),
        ("`url`, too long", "url", json!(format!("http://example.com/{}", "ü".repeat(MIB / 2)))),
        ("`scale`", "scale", Value::String("1".repeat(MIB))),
        ("`margin`", "margin", json!(format!("{}mm", "1".repeat(MIB)))),
        ("`fileName`", "fileName", json!("ü".repeat(MIB / 2))),
        ("`pageRanges`", "pageRanges", json!(many(MIB, |number| format!("{},", number + 1)))),
        ("`headerHtml`", "headerHtml", json!("{{".repeat(32 * 1024))),
        ("`selector`", "selector", json!("a".repeat(MIB))),
        ("`css`", "css", json!("a".repeat(256 * 1024))),
        ("`locale`", "locale", json!("a-".repeat(MIB / 2))),
        ("`timezone`", "timezone", json!("A".repeat(MIB))),
        (
            "`metadata.date`",
            "metadata",
            json!({ "date": format!("2026-11-27T06:34:51.{}Z", "1".repeat(MIB)) }),
        ),
        ("`metadata.title`", "metadata", json!({ "title": "ü".repeat(MIB / 2) })),
        ("`attachments`, one", "attachments", file("AAAA".repeat(MIB / 4))),
        ("`attachments`, 20", "attachments", {
            let content = "AAAA".repeat(MIB / 80 - 20);
            (0..20).map(|number| json!({ "name": format!("{number}"), "content": content })).collect()
        }),
        ("`attachments`, too many", "attachments", json!(vec![0; MIB / 2])),
        ("`protection.allow`", "protection", json!({ "userPassword": "a", "allow": vec![0; MIB / 2] })),
        ("`invoiceXml`, namespaces", "invoiceXml", json!(invoice_of_namespaces())),
        (
            "`invoiceXml`, elements",
            "invoiceXml",
            json!(invoice("", &"<a>aaaaaaaaaaaaa</a>".repeat(MIB / 20 - 50))),
        ),
        (
            "`invoiceXml`, attributes",
            "invoiceXml",
            json!(invoice("", &many(MIB - 300, |_| format!("<a{attributes}/>")))),
        ),
        ("`invoiceXml`, references", "invoiceXml", json!(invoice("", &"&#65;".repeat(MIB / 5 - 60)))),
        ("`invoiceXml`, text", "invoiceXml", json!(invoice("", &"a".repeat(MIB - 300)))),
    ] {
        let mut request = json!({ "format": "pdf", field: value });
        if field != "url" && field != "html" {
            request["html"] = json!("x");
        }
        bodies.push(CostlyBody { name, path: RENDER, body: request.to_string() });
    }
    let escaped = format!("{{\"html\":\"{}\"}}", "\\u0041".repeat(MIB / 6 - 3));
    let base64 = format!(
        "{{\"html\":\"x\",\"format\":\"pdf\",\"attachments\":[{{\"name\":\"a\",\"content\":\"{}\"}}]}}",
        "\\u0041".repeat(MIB / 24 * 4 - 20)
    );
    let members =
        |name: &str| format!("{{\"html\":\"x\",{}\"css\":\"\"}}", many(MIB - 30, |_| name.to_owned()));
    let headers = ["headerHtml", "footerHtml", "headerFirstHtml", "footerFirstHtml"]
        .map(|field| format!("\"{field}\":\"{}\",", "{{a".repeat(21_000)));
    let variables = many(MIB - 100, |number| format!("\"v{number}\":1,"));
    let of_template = |members: &str| format!("{{{members}\"templateId\":\"{template}\"}}");
    for (name, path, body) in [
        ("`html`, escaped", RENDER, escaped),
        ("`attachments`, escaped", RENDER, base64),
        ("a number", RENDER, format!("{{\"html\":\"x\",\"scale\":{}}}", "1".repeat(MIB - 30))),
        ("unknown fields", RENDER, members("\"\":0,")),
        ("a repeated field", RENDER, members("\"css\":\"\",")),
        ("a long name", RENDER, format!("{{\"{}\":0}}", "ü".repeat(MIB / 2 - 10))),
        ("nested arrays", RENDER, format!("{{\"a\":[{}]}}", "[[[[]]]],".repeat(MIB / 9 - 9) + "0")),
        ("syntax error at the end", RENDER, format!("[{}", "[],".repeat(MIB / 3 - 3))),
        ("`templateId`", TEMPLATE, json!({ "templateId": "a".repeat(MIB - 30) }).to_string()),
        ("headers of a template", TEMPLATE, of_template(&(headers.concat() + "\"format\":\"pdf\","))),
        ("`variables`", TEMPLATE, of_template(&format!("\"variables\":{{{variables}\"w\":1}},"))),
        ("`data`", TEMPLATE, of_template(&format!("\"data\":{{{variables}\"w\":1}},"))),
        (
            "`data` with `variables`",
            TEMPLATE,
            of_template(&format!("\"data\":{{{variables}\"w\":1}},\"variables\":{{\"x\":1}},")),
        ),
        ("`variables`, combining", TEMPLATE, of_template(&format!("\"variables\":{{{names}\"w\":1}},"))),
        ("`templateId` of a template of placeholders", TEMPLATE, of_template("")),
    ] {
        bodies.push(CostlyBody { name, path, body });
    }
    bodies
}

/// Markup with as many placeholders as a template may have, each with a long name.
pub(crate) fn template() -> String {
    const LENGTH: usize = "{{ p000".len() + 50 + " }}".len();
    many(MAX_VARIABLES * LENGTH, |number| format!("{{{{ p{number:03}{} }}}}", "a".repeat(50)))
}
