//! The controls of a form, from the table of fields.

use std::collections::BTreeMap;

use platen_shared::{
    format::OutputFormat,
    request::{FieldGroup, FieldKind, FieldName, FieldSpec, Formats},
};
use serde_json::json;

use super::{
    Source,
    body::{PASSWORDS, Problem},
    control_names,
};
use crate::form::Form;

/// Controls of related options.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) title: FieldGroup,
    /// Whether it is shown open: that of the file, and those with a value or an error.
    pub(crate) is_open: bool,
    pub(crate) controls: Vec<Control>,
}

impl Group {
    /// How many fields have a value, in words; empty if none has one.
    pub(crate) fn note(&self) -> String {
        match self.controls.iter().filter(|control| control.is_set()).count() {
            0 => String::new(),
            count => format!("{count} set"),
        }
    }
}

/// The controls of a field.
#[derive(Debug)]
pub(crate) struct Control {
    pub(crate) field: FieldName,
    /// One, or one for each member.
    pub(crate) parts: Vec<Part>,
    /// The formats for which the field is sent; empty for all.
    pub(crate) formats: String,
    /// The source of which the field is a part; empty for options.
    pub(crate) source: &'static str,
    /// The fields of a template that this one takes the place of, separated by spaces.
    pub(crate) replaces: String,
    /// What the field does: parts that are code are `true`.
    pub(crate) help: Vec<(bool, String)>,
}

/// A control of a field, or of a member of one.
#[derive(Debug)]
pub(crate) struct Part {
    /// Name of the field in JSON, with the member after a dot.
    pub(crate) name: String,
    pub(crate) input: Input,
    pub(crate) value: String,
    /// Why the value is not valid; empty if it is.
    pub(crate) error: String,
}

impl Control {
    /// Whether the field is an option that is given.
    pub(crate) fn is_set(&self) -> bool {
        self.source.is_empty() && self.parts.iter().any(|part| !part.value.is_empty())
    }

    fn has_error(&self) -> bool {
        self.parts.iter().any(|part| !part.error.is_empty())
    }

    /// The control that the field's label names, and those of members.
    pub(crate) fn whole_and_members(&self) -> (Option<&Part>, &[Part]) {
        match self.parts.split_first() {
            Some((first, others)) if first.member().is_empty() => (Some(first), others),
            _ => (None, &self.parts),
        }
    }

    /// Whether members are shown: those with values, and those that are the only controls.
    pub(crate) fn has_open_members(&self) -> bool {
        let (whole, members) = self.whole_and_members();
        whole.is_none() || members.iter().any(|part| !part.value.is_empty() || !part.error.is_empty())
    }
}

impl Part {
    /// Whether this is its value.
    pub(crate) fn is(&self, value: &str) -> bool {
        self.value == value
    }

    /// The name of the member; empty if this is the field itself.
    pub(crate) fn member(&self) -> &str {
        self.name.split_once('.').map_or("", |(_, member)| member)
    }
}

/// How a value is entered.
#[derive(Debug)]
pub(crate) enum Input {
    /// One of some values, or none.
    Choice {
        names: &'static [&'static str],
        /// The text of the entry without a value.
        unset: String,
        /// The value of a switch without one; empty if this is no switch.
        switch: &'static str,
    },
    Number {
        min: f64,
        max: f64,
        /// `1` or `any`.
        step: &'static str,
        placeholder: String,
    },
    Line {
        placeholder: String,
    },
    Password,
    /// Several lines, with the language of the text.
    Lines(&'static str),
}

/// Options that are often used together, by what they are for.
const PRESETS: [(&str, &[(&str, &str)]); 4] = [
    (
        "A4 document",
        &[("format", "pdf"), ("pdfFormat", "A4"), ("margin", "20mm"), ("printBackground", "true")],
    ),
    (
        "Label",
        &[
            ("format", "pdf"),
            ("pdfWidth", "100mm"),
            ("pdfHeight", "150mm"),
            ("margin", "0"),
            ("printBackground", "true"),
        ],
    ),
    ("Social card", &[("format", "png"), ("width", "1200"), ("height", "630")]),
    ("Full page", &[("format", "png"), ("fullPage", "true")]),
];

/// The presets with the values of their controls, as a JSON object.
pub(crate) fn presets() -> Vec<(&'static str, String)> {
    let json =
        |values: &[(&str, &str)]| json!(values.iter().copied().collect::<BTreeMap<_, _>>()).to_string();
    PRESETS.iter().map(|(title, values)| (*title, json(values))).collect()
}

/// The values of `pdfStandard`; the members of an array with commas between them.
const STANDARDS: &[&str] = &["pdf/a-2b", "pdf/a-3b", "pdf/ua-1", "pdf/a-2b, pdf/ua-1", "pdf/a-3b, pdf/ua-1"];

/// A longer text is edited in several lines.
const MAX_LINE_CHARS: usize = 4_096;

/// The controls of options, with the values of a form.
pub(crate) fn groups(
    options: impl Iterator<Item = FieldName>,
    form: &Form,
    problem: Option<&Problem>,
) -> Vec<Group> {
    let options: Vec<FieldName> = options.collect();
    let group = |title: FieldGroup| {
        let fields = options.iter().filter(|field| field.group() == title);
        let controls: Vec<Control> = fields.map(|field| control(*field, form, problem)).collect();
        (!controls.is_empty()).then_some(Group { title, is_open: title == FieldGroup::File, controls })
    };
    let mut groups: Vec<Group> = FieldGroup::all().filter_map(group).collect();
    for group in &mut groups {
        group.is_open |= group.controls.iter().any(|control| control.is_set() || control.has_error());
    }
    groups
}

/// The controls of a field, with the values of a form.
pub(crate) fn control(field: FieldName, form: &Form, problem: Option<&Problem>) -> Control {
    let spec = field.spec();
    let names = control_names(field);
    // A problem of a member that has no control is shown at the first one of the field.
    let problem = problem
        .filter(|problem| problem.field.split(['.', '[']).next().is_some_and(|it| it == field.as_str()));
    let at = problem.map(|problem| names.iter().position(|name| *name == problem.field).unwrap_or(0));
    let part = |(index, name): (usize, &String)| Part {
        input: input(field, &spec, name),
        value: form.text(name),
        error: problem
            .filter(|_| at == Some(index))
            .map(|problem| problem.message.clone())
            .unwrap_or_default(),
        name: name.clone(),
    };
    let replaced = FieldName::of_template().filter(|other| field.replaces(*other));
    Control {
        field,
        parts: names.iter().enumerate().map(part).collect(),
        formats: formats(spec.formats),
        source: Source::of_field(field).map_or("", Source::name),
        replaces: replaced.map(FieldName::as_str).collect::<Vec<_>>().join(" "),
        help: help(field, &spec),
    }
}

fn input(field: FieldName, spec: &FieldSpec, name: &str) -> Input {
    let default = spec.default.map(|default| default.trim_matches('"'));
    let switch = if spec.kind == FieldKind::Boolean { default.unwrap_or_default() } else { "" };
    let placeholder = default.unwrap_or_default().to_owned();
    let unset = default.map_or_else(|| "Default".to_owned(), |default| format!("{default} (default)"));
    match spec.kind {
        FieldKind::Boolean => Input::Choice { names: &["true", "false"], unset, switch },
        FieldKind::Choice(names) => Input::Choice { names, unset, switch },
        FieldKind::Number { min, max, whole } => {
            Input::Number { min, max, step: if whole { "1" } else { "any" }, placeholder }
        }
        FieldKind::Clip => Input::Number { min: 0.0, max: f64::from(u32::MAX), step: "any", placeholder },
        FieldKind::Text { .. } if field == FieldName::TemplateId => {
            Input::Line { placeholder: "Search by name, or enter an ID".to_owned() }
        }
        FieldKind::Length => {
            let side = if field == FieldName::PdfHeight { "297mm" } else { "210mm" };
            Input::Line { placeholder: side.to_owned() }
        }
        FieldKind::Margin if name.contains('.') => Input::Line { placeholder: "0".to_owned() },
        FieldKind::Margin => Input::Line { placeholder: "1cm".to_owned() },
        FieldKind::Variables | FieldKind::Data | FieldKind::Attachments | FieldKind::Assets => {
            Input::Lines("json")
        }
        FieldKind::Standard => Input::Choice { names: STANDARDS, unset: "None".to_owned(), switch },
        FieldKind::Metadata => {
            let example = match name {
                "metadata.language" => "en",
                "metadata.date" => "2026-12-31T12:00:00Z",
                _ => "",
            };
            Input::Line { placeholder: example.to_owned() }
        }
        FieldKind::Texts { .. } => {
            let example = if field == FieldName::FailOn { "pageErrors, failedRequests" } else { "" };
            Input::Line { placeholder: example.to_owned() }
        }
        FieldKind::Protection if PASSWORDS.contains(&name) => Input::Password,
        FieldKind::Protection => Input::Line { placeholder: "print".to_owned() },
        FieldKind::Text { max_chars, .. } if max_chars <= MAX_LINE_CHARS => Input::Line { placeholder },
        FieldKind::Text { .. } => match field {
            FieldName::Html
            | FieldName::HeaderHtml
            | FieldName::FooterHtml
            | FieldName::HeaderFirstHtml
            | FieldName::FooterFirstHtml
            | FieldName::InvoiceXml => Input::Lines("html"),
            FieldName::Css => Input::Lines("css"),
            _ => Input::Line { placeholder },
        },
    }
}

/// The names of formats, separated by spaces; empty for all.
fn formats(formats: Formats) -> String {
    if formats == Formats::All {
        return String::new();
    }
    let includes = |name: &&&str| name.parse().is_ok_and(|format| formats.include(format));
    let names = OutputFormat::NAMES.iter().filter(includes);
    names.copied().collect::<Vec<_>>().join(" ")
}

/// The description, and what concerns the control. Text between backquotes is code.
fn help(field: FieldName, spec: &FieldSpec) -> Vec<(bool, String)> {
    let here = match (field, spec.kind) {
        (_, FieldKind::Number { min, max, .. }) => format!(" From {min} to {max}."),
        (_, FieldKind::Assets) => " Enter a JSON object.".to_owned(),
        (_, FieldKind::Attachments) => " Enter a JSON array.".to_owned(),
        (_, FieldKind::Texts { .. }) => " Separate them by commas.".to_owned(),
        (_, FieldKind::Protection) => {
            " Separate what is allowed by commas. Passwords are neither kept nor shown in programs."
                .to_owned()
        }
        (FieldName::HeaderFirstHtml | FieldName::FooterFirstHtml, _) => {
            " Enter a space for the empty text.".to_owned()
        }
        _ => String::new(),
    };
    let text = format!("{}{here}", spec.description);
    text.split('`').enumerate().map(|(index, part)| (index % 2 == 1, part.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::{
        super::{body::template_options, text::form_of},
        *,
    };

    #[test]
    fn every_option_has_a_control_with_help() {
        let options = FieldName::all().filter(|field| Source::of_field(*field).is_none());
        let groups = groups(options, &Form::default(), None);
        let of_groups: Vec<FieldName> =
            groups.iter().flat_map(|group| &group.controls).map(|control| control.field).collect();
        for field in FieldName::all() {
            let is_option = Source::of_field(field).is_none();
            assert_eq!(of_groups.contains(&field), is_option, "{field}");
            let control = control(field, &Form::default(), None);
            assert!(!control.parts.is_empty() && !control.help.is_empty(), "{field}");
        }
    }

    #[test]
    fn groups_with_values_are_open() {
        let form = Form::parse(b"margin.top=1cm");
        for group in groups(FieldName::of_template(), &form, None) {
            let is_open = [FieldGroup::File, FieldGroup::Pdf].contains(&group.title);
            assert_eq!(group.is_open, is_open, "{}", group.title);
        }
    }

    #[test]
    fn presets_are_valid() {
        for (title, values) in presets() {
            let form = form_of(&serde_json::from_str(&values).unwrap());
            assert!(template_options(&form).is_ok(), "{title}");
        }
    }

    #[test]
    fn problems_are_shown_at_their_control() {
        let with = |field: &str, of: FieldName| {
            let problem = Problem { field: field.to_owned(), message: "wrong".to_owned() };
            let parts = control(of, &Form::default(), Some(&problem)).parts;
            let wrong = parts.into_iter().filter(|part| !part.error.is_empty());
            wrong.map(|part| part.name).collect::<Vec<_>>()
        };
        assert_eq!(with("margin.left", FieldName::Margin), ["margin.left"]);
        assert_eq!(with("margin", FieldName::Margin), ["margin"]);
        assert_eq!(with("clip", FieldName::Clip), ["clip.x"]);
        assert_eq!(with("width", FieldName::Clip), [""; 0]);
    }
}
