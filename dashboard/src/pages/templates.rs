//! Saved templates: the list, the editor, the versions.

use std::collections::BTreeMap;

use platen_shared::{
    id::{TemplateId, UserId},
    limits, template,
};
use platen_statements::{
    Timestamp,
    templates::{Template, TemplateContent, Version},
};

use super::{Layout, diff};
use crate::form::Field;

/// Sample values by placeholder.
pub(crate) type Samples = BTreeMap<String, String>;

#[derive(Debug, askama::Template)]
#[template(path = "templates.html")]
pub(crate) struct TemplatesPage {
    pub(crate) layout: Layout,
    /// The search text; empty for all templates.
    pub(crate) search: String,
    /// The templates found, last saved first.
    pub(crate) templates: Vec<Template>,
}

/// The editor of a saved or a new template.
#[derive(Debug, askama::Template)]
#[template(path = "template.html")]
pub(crate) struct EditorPage<'t> {
    pub(crate) layout: Layout,
    /// The saved template; `None` for a new one.
    pub(crate) saved: Option<&'t TemplateContent>,
    pub(crate) form: EditorForm,
    /// The newer version that stands in the way of the save.
    pub(crate) conflict: Option<Conflict>,
    /// Whether the form differs from what is saved.
    pub(crate) is_unsaved: bool,
    /// Whether the preview is shown.
    pub(crate) has_preview: bool,
    /// The user, whose drafts the browser keeps.
    pub(crate) user: UserId,
    /// Scheme and host of the server, for the curl command.
    pub(crate) base_url: String,
}

/// The fields of the editor with their errors.
#[derive(Debug)]
pub(crate) struct EditorForm {
    pub(crate) name: Field,
    pub(crate) html: Field,
    /// Placeholders of the markup with their sample values.
    pub(crate) samples: Vec<(String, String)>,
    /// The error of the sample values; empty if they are valid.
    pub(crate) samples_error: String,
    /// The revision that the form was made from; `None` for a new template.
    pub(crate) revision: Option<u32>,
}

impl EditorForm {
    pub(crate) fn valid(name: &str, html: &str, samples: &Samples) -> Self {
        Self {
            name: Field::valid(name),
            html: Field::valid(html),
            samples: with_samples(html, samples),
            samples_error: String::new(),
            revision: None,
        }
    }
}

/// What was saved while a user edited an older revision.
#[derive(Debug)]
pub(crate) struct Conflict {
    /// Who saved it.
    pub(crate) by: String,
    pub(crate) at: Timestamp,
    /// The name, if it differs from that of the form.
    pub(crate) name: Option<String>,
    /// Whether the sample values differ.
    pub(crate) has_other_samples: bool,
    /// From the saved markup to that of the form; empty if they are equal.
    pub(crate) lines: Vec<diff::Line>,
}

impl Conflict {
    pub(crate) fn of(stored: &TemplateContent, form: &EditorForm, samples: &Samples) -> Self {
        let name = &stored.template.name;
        Self {
            by: saved_by(stored.saved_by.as_ref()).to_owned(),
            at: stored.template.updated_at,
            name: (*name != form.name.value).then(|| name.clone()),
            has_other_samples: stored.samples != *samples,
            lines: diff::lines(&stored.html, &form.html.value),
        }
    }
}

/// Who saved a template or a version, for display.
fn saved_by(editor: Option<&String>) -> &str {
    editor.map_or("unknown", String::as_str)
}

/// The placeholders of the markup, each with its sample value or an empty one.
pub(crate) fn with_samples(html: &str, samples: &Samples) -> Vec<(String, String)> {
    let value = |name: &String| samples.get(name).cloned().unwrap_or_default();
    template::placeholders(html).into_iter().map(|name| (name.clone(), value(&name))).collect()
}

/// A curl command that renders a template. The body is quoted for a POSIX shell, so no value can end it.
fn curl(base_url: &str, id: &TemplateId, html: &str, samples: &Samples) -> String {
    let variables: BTreeMap<String, String> = with_samples(html, samples).into_iter().collect();
    let body = serde_json::json!({ "templateId": id, "variables": variables, "format": "pdf" });
    let body = body.to_string().replace('\'', "'\\''");
    format!(
        "curl --fail-with-body -o file.pdf {base_url}/v1/render/template \\\n  -H 'authorization: Bearer YOUR_KEY' \\\n  \
         -H 'content-type: application/json' \\\n  -d '{body}'"
    )
}

#[derive(Debug, askama::Template)]
#[template(path = "versions.html")]
pub(crate) struct VersionsPage {
    pub(crate) layout: Layout,
    pub(crate) template: Template,
    /// The versions, newest first.
    pub(crate) versions: Vec<Version>,
}

#[derive(Debug, askama::Template)]
#[template(path = "version.html")]
pub(crate) struct VersionPage {
    pub(crate) layout: Layout,
    pub(crate) id: TemplateId,
    pub(crate) version: Version,
    pub(crate) html: String,
}

pub(crate) const INITIAL_HTML: &str = "<!doctype html>\n<meta charset=\"utf-8\">\n<style>\n  body { font: 16px/1.5 sans-serif; margin: 3rem; }\n  h1 { color: #2743d2; }\n</style>\n<h1>Hello {{ name }}</h1>\n<p>This is your first template.</p>\n";

#[cfg(test)]
mod tests {
    use askama::Template as _;

    use super::*;

    #[test]
    fn values_cannot_end_the_quotes_of_the_curl_command() {
        let samples =
            Samples::from([("a".into(), "'; rm -rf ~; '\"$(x)".into()), ("unused".into(), "u".into())]);
        let line = curl("https://p.example", &TemplateId::from_text("tpl_x"), "{{ a }}", &samples);
        assert!(line.contains(r#""variables":{"a":"'\''; rm -rf ~; '\''\"$(x)"}"#), "{line}");
        assert!(!line.contains("unused"));
    }

    #[test]
    fn user_input_is_escaped() {
        let layout = Layout { title: "</title><script>alert(1)</script>".into(), ..Layout::default() };
        let xss = "</textarea><script>alert(1)</script>";
        let page = EditorPage {
            layout,
            saved: None,
            form: EditorForm {
                name: Field::invalid(xss, xss),
                html: Field::valid(xss),
                samples: vec![(xss.to_owned(), xss.to_owned())],
                samples_error: xss.to_owned(),
                revision: None,
            },
            conflict: Some(Conflict {
                by: xss.to_owned(),
                at: Timestamp(0),
                name: Some(xss.to_owned()),
                has_other_samples: true,
                lines: diff::lines("", xss),
            }),
            is_unsaved: true,
            has_preview: true,
            user: UserId::from_text("usr_x"),
            base_url: String::new(),
        };
        let html = page.render().unwrap();
        assert!(!html.contains("<script>alert"), "{html}");
    }
}
