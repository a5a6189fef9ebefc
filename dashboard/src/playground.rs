//! Makes a request of the API from the controls of a form, and programs that send it.
//!
//! Invariant: the controls are made from the table of fields ([`FieldName::spec`]), so that each field of the contract
//! has one. The body of a request is made once, and all programs contain or read exactly these bytes.

pub(crate) mod body;
pub(crate) mod control;
pub(crate) mod snippets;
pub(crate) mod text;

use platen_shared::{endpoint::Endpoint, request::FieldName};

use crate::form::Form;

/// What is rendered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Source {
    #[default]
    Html,
    Url,
    Template,
}

impl Source {
    pub(crate) const ALL: [Self; 3] = [Self::Html, Self::Url, Self::Template];
    /// The form field with the source.
    pub(crate) const FIELD: &str = "source";

    /// The source that the form names; HTML if it names none.
    pub(crate) fn of(form: &Form) -> Self {
        let name = form.get(Self::FIELD).unwrap_or_default();
        Self::ALL.into_iter().find(|source| source.name() == name).unwrap_or_default()
    }

    /// The value of the form field.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Html => "html",
            Self::Url => "url",
            Self::Template => "template",
        }
    }

    /// How pages call it.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Html => "HTML",
            Self::Url => "A URL",
            Self::Template => "A saved template",
        }
    }

    pub(crate) fn endpoint(self) -> Endpoint {
        if self == Self::Template { Endpoint::Template } else { Endpoint::Render }
    }

    /// The source of which this field is a part; `None` if it is an option.
    pub(crate) fn of_field(field: FieldName) -> Option<Self> {
        match field {
            FieldName::Html => Some(Self::Html),
            FieldName::Url => Some(Self::Url),
            FieldName::TemplateId | FieldName::Variables | FieldName::Data => Some(Self::Template),
            _ => None,
        }
    }
}

/// The names of the controls of a field: the field itself, or its members.
pub(crate) fn control_names(field: FieldName) -> Vec<String> {
    let members: &[&str] = match field {
        FieldName::Margin => &["", ".top", ".right", ".bottom", ".left"],
        FieldName::Clip => &[".x", ".y", ".width", ".height"],
        FieldName::Metadata => {
            &[".title", ".author", ".subject", ".keywords", ".creator", ".language", ".date"]
        }
        FieldName::Protection => &[".userPassword", ".ownerPassword", ".allow"],
        _ => &[""],
    };
    members.iter().map(|member| format!("{field}{member}")).collect()
}
