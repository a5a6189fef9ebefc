//! The controls of a form, from the table of fields.

use platen_shared::{
    format::OutputFormat,
    request::{FieldKind, FieldName, FieldSpec, Formats, TemplateOptions},
};
use serde_json::Value;

use super::{Source, body::Problem, control_names};
use crate::form::Form;

/// Controls of related options.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) title: &'static str,
    /// Whether it is shown open: the first one, and the one with an error.
    pub(crate) is_open: bool,
    pub(crate) controls: Vec<Control>,
}

impl Group {
    /// How many controls have a value, in words; empty if none has one.
    pub(crate) fn note(&self) -> String {
        match self.controls.iter().filter(|control| !control.value.is_empty()).count() {
            0 => String::new(),
            count => format!("{count} set"),
        }
    }
}

/// A control of a field, or of a member of one.
#[derive(Debug)]
pub(crate) struct Control {
    /// Name of the field in JSON, with the member after a dot.
    pub(crate) name: String,
    pub(crate) input: Input,
    pub(crate) value: String,
    /// Why the value is not valid; empty if it is.
    pub(crate) error: String,
    /// The formats for which the field is sent; empty for all.
    pub(crate) formats: String,
    /// The source of which the field is a part; empty for options.
    pub(crate) source: &'static str,
    /// What the field does: parts that are code are `true`.
    pub(crate) help: Vec<(bool, String)>,
}

impl Control {
    /// Whether this is its value.
    pub(crate) fn is(&self, value: &str) -> bool {
        self.value == value
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
    /// Several lines, with the language of the text.
    Lines(&'static str),
}

/// A longer text is edited in several lines.
const MAX_LINE_CHARS: usize = 4_096;

/// The controls of options, with the values of a form.
pub(crate) fn groups(
    options: impl Iterator<Item = FieldName>,
    form: &Form,
    problem: Option<&Problem>,
) -> Vec<Group> {
    let titles = ["File", "Page and viewport", "Image", "PDF"];
    let mut groups: Vec<Group> = titles
        .map(|title| Group { title, is_open: title == titles[0], controls: Vec::new() })
        .into_iter()
        .collect();
    for field in options {
        let group = match (field, field.spec().formats) {
            (FieldName::Format | FieldName::FileName, _) => 0,
            (_, Formats::All) => 1,
            (_, Formats::Pdf) => 3,
            _ => 2,
        };
        groups[group].controls.extend(controls(field, form, problem));
    }
    for group in &mut groups {
        group.is_open |= group.controls.iter().any(|control| !control.error.is_empty());
    }
    groups
}

/// The controls of a field, with the values of a form.
pub(crate) fn controls(field: FieldName, form: &Form, problem: Option<&Problem>) -> Vec<Control> {
    let spec = field.spec();
    let names = control_names(field);
    // A problem of a member that has no control is shown at the first one of the field.
    let problem = problem
        .filter(|problem| problem.field.split('.').next().is_some_and(|of_field| of_field == field.as_str()));
    let at = problem.map(|problem| names.iter().position(|name| *name == problem.field).unwrap_or(0));
    let control = |(index, name): (usize, &String)| Control {
        input: input(field, &spec, name),
        value: form.text(name),
        error: problem
            .filter(|_| at == Some(index))
            .map(|problem| problem.message.clone())
            .unwrap_or_default(),
        formats: formats(spec.formats),
        source: Source::of_field(field).map_or("", Source::name),
        help: if index == 0 { help(&spec) } else { Vec::new() },
        name: name.clone(),
    };
    names.iter().enumerate().map(control).collect()
}

fn input(field: FieldName, spec: &FieldSpec, name: &str) -> Input {
    let default = spec.default.map(|default| default.trim_matches('"'));
    let placeholder = default.unwrap_or_default().to_owned();
    let unset = default.map_or_else(|| "Default".to_owned(), |default| format!("{default} (default)"));
    match spec.kind {
        FieldKind::Boolean => Input::Choice { names: &["true", "false"], unset },
        FieldKind::Choice(names) => Input::Choice { names, unset },
        FieldKind::Number { min, max, whole } => {
            Input::Number { min, max, step: if whole { "1" } else { "any" }, placeholder }
        }
        FieldKind::Clip => Input::Number { min: 0.0, max: f64::from(u32::MAX), step: "any", placeholder },
        FieldKind::Length => Input::Line { placeholder: "210mm".to_owned() },
        FieldKind::Margin if name.contains('.') => Input::Line { placeholder: "0".to_owned() },
        FieldKind::Margin => Input::Line { placeholder: "1cm".to_owned() },
        FieldKind::Variables => Input::Lines("json"),
        FieldKind::Text { max_chars, .. } if max_chars <= MAX_LINE_CHARS => Input::Line { placeholder },
        FieldKind::Text { .. } => match field {
            FieldName::Html | FieldName::HeaderHtml | FieldName::FooterHtml => Input::Lines("html"),
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
    let includes = |name: &&&str| OutputFormat::parse(name).is_some_and(|format| formats.include(format));
    let names = OutputFormat::NAMES.iter().filter(includes);
    names.copied().collect::<Vec<_>>().join(" ")
}

/// The description and the bounds. Text between backquotes is code.
fn help(spec: &FieldSpec) -> Vec<(bool, String)> {
    let bounds = match spec.kind {
        FieldKind::Number { min, max, .. } => format!(" From {min} to {max}."),
        _ => String::new(),
    };
    let text = format!("{}{bounds}", spec.description);
    text.split('`').enumerate().map(|(index, part)| (index % 2 == 1, part.to_owned())).collect()
}

/// The form of a request body that is an object: the values of the controls.
pub(crate) fn form_of(body: &Value) -> Form {
    let mut values = Vec::new();
    for (name, value) in body.as_object().into_iter().flatten() {
        match value {
            Value::Object(variables) if name == FieldName::Variables.as_str() => {
                let json = serde_json::to_string_pretty(variables).unwrap_or_default();
                values.push((name.clone(), json));
            }
            Value::Object(members) => {
                values
                    .extend(members.iter().map(|(member, value)| (format!("{name}.{member}"), text(value))));
            }
            value => values.push((name.clone(), text(value))),
        }
    }
    Form::of(values)
}

/// The options of a template as the values of controls.
pub(crate) fn form_of_options(options: &TemplateOptions) -> Form {
    serde_json::from_str(options.as_json()).map_or_else(|_| Form::default(), |options| form_of(&options))
}

/// The text of a control for a value: a string without its quotation marks, anything else as JSON.
pub(crate) fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::{super::body::Request, *};

    #[test]
    fn every_option_has_a_control_with_help() {
        let options = FieldName::all().filter(|field| Source::of_field(*field).is_none());
        let groups = groups(options, &Form::default(), None);
        let names: Vec<&str> =
            groups.iter().flat_map(|group| &group.controls).map(|control| control.name.as_str()).collect();
        for field in FieldName::all() {
            let is_option = Source::of_field(field).is_none();
            let has_control = names.iter().any(|name| name.split('.').next() == Some(field.as_str()));
            assert_eq!(has_control, is_option, "{field}");
            let controls = controls(field, &Form::default(), None);
            assert!(!controls[0].help.is_empty(), "{field}");
        }
    }

    #[test]
    fn problems_are_shown_at_their_control() {
        let with = |field: &str, control: FieldName| {
            let problem = Problem { field: field.to_owned(), message: "wrong".to_owned() };
            let controls = controls(control, &Form::default(), Some(&problem));
            controls
                .into_iter()
                .filter(|control| !control.error.is_empty())
                .map(|control| control.name)
                .collect::<Vec<_>>()
        };
        assert_eq!(with("margin.left", FieldName::Margin), ["margin.left"]);
        assert_eq!(with("margin", FieldName::Margin), ["margin"]);
        assert_eq!(with("clip", FieldName::Clip), ["clip.x"]);
        assert_eq!(with("width", FieldName::Clip), [""; 0]);
    }

    #[test]
    fn the_form_of_a_body_gives_the_same_request() {
        let body = r#"{"templateId":"t","format":"pdf","scale":0.5,"landscape":true,"margin":{"top":"1cm","left":20},"variables":{"a":"b"}}"#;
        let mut form = form_of(&serde_json::from_str(body).unwrap());
        form.set(Source::FIELD, "template");
        let request = Request::of(&form).unwrap().body;
        let same =
            |json: &str| serde_json::from_str::<std::collections::BTreeMap<String, Value>>(json).unwrap();
        assert_eq!(same(&request), same(body));
    }
}
