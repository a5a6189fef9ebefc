//! The body of a request, from the values of the controls.

use platen_shared::{
    endpoint::Endpoint,
    format::OutputFormat,
    id::TemplateId,
    request::{FieldKind, FieldName, InvalidRequest, RenderRequest, TemplateOptions},
};
use serde_json::value::RawValue;

use super::{Source, control_names};
use crate::form::Form;

/// A request as it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) endpoint: Endpoint,
    /// JSON without the characters `'`, `` ` `` and `${`, which are escaped: so it has the same text between the quotes
    /// of all languages.
    pub(crate) body: String,
    /// The body with an ellipsis in place of each password, to be shown and saved.
    pub(crate) shown: String,
    /// The format of the file; `None` if it is that of the template.
    pub(crate) format: Option<OutputFormat>,
    /// The template that is rendered.
    pub(crate) template: Option<String>,
}

/// The controls of passwords, which are neither shown in programs nor kept.
pub(crate) const PASSWORDS: [&str; 2] = ["protection.userPassword", "protection.ownerPassword"];

/// Why the values are not a valid request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    /// Name of the field or member; empty if the problem concerns none.
    pub(crate) field: String,
    pub(crate) message: String,
}

impl Request {
    /// The request of a form, whose template is an id. Controls that are empty are left out.
    pub(crate) fn of(form: &Form) -> Result<Self, Problem> {
        let source = Source::of(form);
        let endpoint = source.endpoint();
        let fields = FieldName::of_endpoint(endpoint)
            .filter(|field| Source::of_field(*field).is_none_or(|of_source| of_source == source));
        let fields: Vec<_> = fields.collect();
        let body = embeddable(&members(fields.iter().copied(), form)?);
        let request = RenderRequest::parse(endpoint, body.as_bytes()).map_err(|error| Problem::of(&error))?;
        let template = (source == Source::Template).then(|| form.text(FieldName::TemplateId.as_str()));
        let mut shown = form.clone();
        for name in PASSWORDS.into_iter().filter(|name| !form.text(name).is_empty()) {
            shown.set(name, "…");
        }
        let shown = embeddable(&members(fields.into_iter(), &shown)?);
        Ok(Self { endpoint, body, shown, format: request.format(), template })
    }

    /// The extension of the file.
    pub(crate) fn extension(&self) -> &'static str {
        self.format.unwrap_or(OutputFormat::DEFAULT).extension()
    }
}

/// The options of a template, from the controls of a form. Controls that are empty are left out.
pub(crate) fn template_options(form: &Form) -> Result<TemplateOptions, Problem> {
    let json = members(FieldName::of_template(), form)?;
    TemplateOptions::parse(json.as_bytes()).map_err(|error| Problem::of(&error))
}

/// A JSON object of the fields whose controls are not empty.
fn members(fields: impl Iterator<Item = FieldName>, form: &Form) -> Result<String, Problem> {
    let mut members = Vec::new();
    for field in fields {
        let is_required = matches!(field, FieldName::Html | FieldName::Url | FieldName::TemplateId);
        if let Some(value) = value(field, form, is_required)? {
            members.push(format!("  \"{field}\": {value}"));
        }
    }
    Ok(format!("{{\n{}\n}}", members.join(",\n")))
}

impl Problem {
    fn of(error: &InvalidRequest) -> Self {
        Self { field: error.field().unwrap_or_default(), message: error.to_string() }
    }
}

/// The value of a field as JSON; `None` if its controls are empty.
fn value(field: FieldName, form: &Form, is_required: bool) -> Result<Option<String>, Problem> {
    let kind = field.spec().kind;
    let of_control = |name: &str| {
        let text = form.text(name);
        let is_given = !text.trim().is_empty() || (is_required && matches!(kind, FieldKind::Text { .. }));
        is_given.then_some(text)
    };
    let object = |names: &[String], json: fn(&str) -> String| {
        let members = names.iter().filter_map(|name| {
            let (_, member) = name.split_once('.')?;
            let text = of_control(name)?;
            let value = if member == "allow" { array(&text) } else { json(&text) };
            Some(format!("\"{member}\": {value}"))
        });
        let members: Vec<String> = members.collect();
        (!members.is_empty()).then(|| format!("{{ {} }}", members.join(", ")))
    };
    let names = control_names(field);
    Ok(match kind {
        FieldKind::Margin => {
            let of_all_sides = of_control(field.as_str());
            let of_sides = object(&names, number_or_string);
            if of_all_sides.is_some() && of_sides.is_some() {
                let message =
                    "Fill in “margin”, or the fields of its sides. The request can have only one of them.";
                return Err(Problem { field: field.to_string(), message: message.to_owned() });
            }
            of_sides.or_else(|| of_all_sides.map(|text| number_or_string(&text)))
        }
        FieldKind::Clip => object(&names, number_or_string),
        FieldKind::Metadata | FieldKind::Protection => object(&names, string),
        FieldKind::Standard => of_control(field.as_str())
            .map(|text| if text.contains(',') { array(&text) } else { string(&text) }),
        FieldKind::Texts { .. } => of_control(field.as_str()).map(|text| array(&text)),
        FieldKind::Variables | FieldKind::Data | FieldKind::Attachments | FieldKind::Assets => {
            match of_control(field.as_str()) {
                None => None,
                // The text is kept, because numbers keep their spelling.
                Some(text) => match serde_json::from_str::<&RawValue>(&text) {
                    Ok(_) => Some(text.trim().replace('\n', "\n  ")),
                    Err(error) => {
                        let message = format!("“{field}” is not valid JSON: {error}");
                        return Err(Problem { field: field.to_string(), message });
                    }
                },
            }
        }
        FieldKind::Number { .. } | FieldKind::Length => {
            of_control(field.as_str()).map(|text| number_or_string(&text))
        }
        FieldKind::Boolean => of_control(field.as_str()).map(|text| match text.as_str() {
            "true" | "false" => text,
            _ => string(&text),
        }),
        FieldKind::Text { .. } if field == FieldName::Url => {
            of_control(field.as_str()).map(|text| string(&with_scheme(text.trim())))
        }
        // An empty text, which is another value than none, is entered as a space.
        FieldKind::Text { .. }
            if matches!(field, FieldName::HeaderFirstHtml | FieldName::FooterFirstHtml) =>
        {
            let text = form.text(field.as_str());
            (!text.is_empty()).then(|| string(if text.trim().is_empty() { "" } else { &text }))
        }
        FieldKind::Text { .. } | FieldKind::Choice(_) => of_control(field.as_str()).map(|text| string(&text)),
    })
}

/// The text by which people find a template in a list.
pub(crate) fn template_text(name: &str, id: &TemplateId) -> String {
    format!("{name} · {id}")
}

/// The id in the text of a template, which may be the id alone.
pub(crate) fn template_id(text: &str) -> &str {
    text.rsplit(" · ").next().unwrap_or_default()
}

/// An address as people write it, such as `example.com/page`, as a URL.
fn with_scheme(address: &str) -> String {
    let host = address.split(['/', '?', '#']).next().unwrap_or_default();
    let is_host = host.contains('.') && !address.contains("://") && !host.contains(['@', ' ']);
    if is_host { format!("https://{address}") } else { address.to_owned() }
}

/// A number if the text is one in JSON, and otherwise a string, which is valid or gets the contract's error.
fn number_or_string(text: &str) -> String {
    let text = text.trim();
    let is_number = serde_json::from_str::<serde_json::Number>(text).is_ok();
    if is_number { text.to_owned() } else { string(text) }
}

/// An array of the strings between commas.
fn array(text: &str) -> String {
    text.split(',').map(str::trim).collect::<serde_json::Value>().to_string()
}

fn string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// JSON with escapes in place of the characters that end a quoted text in some language. In valid JSON they occur in
/// strings only.
fn embeddable(json: &str) -> String {
    json.replace('\'', "\\u0027").replace('`', "\\u0060").replace("${", "\\u0024{")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(form: &str) -> Result<String, (String, String)> {
        let request = Request::of(&Form::parse(form.as_bytes()));
        request.map(|request| request.body).map_err(|problem| (problem.field, problem.message))
    }

    #[test]
    fn values_of_all_kinds_become_json() {
        let form = "source=html&html=%3Cp%3Eit%27s+%60%24%7Bx%7D%60%0D%0A&url=ignored&format=pdf&landscape=true&scale=0.50\
                    &margin.top=1cm&margin.left=20&fileName=&width=&pageRanges=1-3&outline=false";
        let body = "{\n  \"html\": \"<p>it\\u0027s \\u0060\\u0024{x}\\u0060\\n\",\n  \"format\": \"pdf\",\n  \"scale\": 0.50,\n  \
                    \"landscape\": true,\n  \"margin\": { \"top\": \"1cm\", \"left\": 20 },\n  \"pageRanges\": \"1-3\",\n  \
                    \"outline\": false\n}";
        assert_eq!(request(form), Ok(body.to_owned()));
        let form = "source=template&templateId=tpl_1&variables=%7B%22a%22%3A+10.50%7D&html=ignored&clip.x=0&clip.y=0&clip.width=5&clip.height=5";
        let body = "{\n  \"templateId\": \"tpl_1\",\n  \"variables\": {\"a\": 10.50},\n  \"clip\": \
                    { \"x\": 0, \"y\": 0, \"width\": 5, \"height\": 5 }\n}";
        assert_eq!(request(form), Ok(body.to_owned()));
        let named = template_text("An invoice", &TemplateId::from_text("tpl_1"));
        assert_eq!(template_id(&named), "tpl_1");
        for (entered, url) in [
            ("https://example.com", "https://example.com"),
            (" example.com:8080/a?b ", "https://example.com:8080/a?b"),
            ("http://example.com", "http://example.com"),
        ] {
            let form = format!("source=url&url={entered}");
            assert_eq!(request(&form).unwrap(), format!("{{\n  \"url\": \"{url}\"\n}}"));
        }
    }

    #[test]
    fn passwords_are_sent_and_not_shown() {
        let form = "html=a&format=pdf&protection.userPassword=open+%27sesame&protection.allow=print,+copy&metadata.title=2026\
                    &headerFirstHtml=+&pdfStandard=";
        let request = Request::of(&Form::parse(form.as_bytes())).unwrap();
        let body = "{\n  \"html\": \"a\",\n  \"format\": \"pdf\",\n  \"metadata\": { \"title\": \"2026\" },\n  \
                    \"headerFirstHtml\": \"\",\n  \"protection\": { \"userPassword\": \"open \\u0027sesame\", \
                    \"allow\": [\"print\",\"copy\"] }\n}";
        assert_eq!(request.body, body);
        assert_eq!(request.shown, body.replace("open \\u0027sesame", "…"));
    }

    #[test]
    fn problems_name_their_control() {
        for (form, field) in [
            ("html=", "html"),
            ("source=url&url=", "url"),
            ("html=a&width=wide", "width"),
            ("html=a&width=0", "width"),
            ("html=a&landscape=perhaps&format=pdf", "landscape"),
            ("html=a&format=gif", "format"),
            ("html=a&format=pdf&margin.top=1parsec", "margin.top"),
            ("html=a&format=pdf&margin=1cm&margin.top=1cm", "margin"),
            ("html=a&clip.x=1", "clip"),
            ("html=a&clip.x=a&clip.y=1&clip.width=1&clip.height=1", "clip.x"),
            ("html=a&format=pdf&metadata.date=today", "metadata.date"),
            ("html=a&format=pdf&attachments=[{}]", "attachments[0]"),
            ("html=a&format=pdf&attachments=[", "attachments"),
            ("html=a&format=pdf&pdfStandard=pdf/a-1b", "pdfStandard"),
            ("html=a&format=pdf&protection.userPassword=a&protection.allow=all", "protection.allow"),
            ("html=a&format=pdf&protection.allow=copy", "protection"),
            ("source=template&templateId=t&variables={", "variables"),
            ("source=template&templateId=t&variables=[]", "variables"),
            ("source=template&templateId=t&data=[]", "data"),
            ("source=template&templateId=t&data={", "data"),
        ] {
            let problem = request(form).unwrap_err();
            assert!(problem.0.starts_with(field), "{form}: {problem:?}");
        }
    }

    #[test]
    fn every_control_of_every_field_reaches_the_request() {
        for field in FieldName::all() {
            for name in control_names(field) {
                let source = Source::of_field(field).unwrap_or_default().name();
                let form = format!("source={source}&html=a&url=u&templateId=t&variables=&{name}=%22%22");
                let form = Form::parse(form.as_bytes());
                let (key, member) = name.split_once('.').unwrap_or((&name, ""));
                // The first value of a field is used, so the fields above stand for theirs.
                let value = value(field, &form, false).unwrap();
                let is_set = value.is_some_and(|value| member.is_empty() || value.contains(member));
                assert!(is_set || field == FieldName::Variables, "{key} {member}");
            }
        }
    }
}
