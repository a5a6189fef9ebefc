//! Saved templates: the list, the editor, the versions.

use std::collections::BTreeMap;

use platen_shared::{id::TemplateId, template};

use super::Layout;
use crate::{clock::Timestamp, form::Field};

/// Sample values by placeholder.
pub type Samples = BTreeMap<String, String>;

/// A template in the list.
#[derive(Debug, Clone)]
pub struct TemplateSummary {
    /// The `templateId` of requests.
    pub id: String,
    /// Name given by the user.
    pub name: String,
    /// Names of the placeholders in its markup.
    pub placeholders: Vec<String>,
    /// Time of the last save.
    pub updated: Timestamp,
}

/// A template with its markup.
#[derive(Debug, Clone)]
pub struct Template {
    /// The `templateId` of requests.
    pub id: TemplateId,
    /// Name given by the user.
    pub name: String,
    /// The markup with placeholders.
    pub html: String,
    /// Values for the preview and for “Render”.
    pub samples: Samples,
    /// Time of the last save.
    pub updated: Timestamp,
    /// Number of earlier versions.
    pub versions: u32,
}

/// An earlier version of a template.
#[derive(Debug, Clone)]
pub struct Version {
    /// Counts from 1.
    pub number: u32,
    /// Name of the template in this version.
    pub name: String,
    /// Time at which this version was saved.
    pub saved: Timestamp,
    /// The markup; empty in the list.
    pub html: String,
}

/// The list of templates.
#[derive(Debug, askama::Template)]
#[template(path = "templates.html")]
pub struct TemplatesPage {
    /// Shared parts.
    pub layout: Layout,
    /// The search text; empty for all templates.
    pub search: String,
    /// The templates found, last saved first.
    pub templates: Vec<TemplateSummary>,
}

/// The editor of a saved or a new template.
#[derive(Debug, askama::Template)]
#[template(path = "template.html")]
pub struct EditorPage {
    /// Shared parts.
    pub layout: Layout,
    /// The saved template; `None` for a new one.
    pub saved: Option<SavedTemplate>,
    /// Name in the form.
    pub name: Field,
    /// Markup in the form.
    pub html: Field,
    /// Placeholders of the markup with their sample values.
    pub samples: Vec<(String, String)>,
    /// The error of the sample values; empty if they are valid.
    pub samples_error: String,
}

/// What the editor shows of a saved template besides the form.
#[derive(Debug, Clone)]
pub struct SavedTemplate {
    /// The `templateId` of requests.
    pub id: String,
    /// Time of the last save.
    pub updated: Timestamp,
    /// Number of earlier versions.
    pub versions: u32,
    /// A curl command that renders it with its sample values.
    pub curl: String,
}

impl EditorPage {
    fn action(&self) -> String {
        match &self.saved {
            Some(saved) => format!("/dashboard/templates/{}", saved.id),
            None => "/dashboard/templates/new".to_owned(),
        }
    }
}

/// The placeholders of the markup, each with its sample value or an empty one.
#[must_use]
pub fn with_samples(html: &str, samples: &Samples) -> Vec<(String, String)> {
    let value = |name: &String| samples.get(name).cloned().unwrap_or_default();
    template::placeholders(html).into_iter().map(|name| (name.clone(), value(&name))).collect()
}

/// A curl command that renders a template. The body is quoted for a POSIX shell, so no value can end it.
#[must_use]
pub fn curl(base_url: &str, id: &str, html: &str, samples: &Samples) -> String {
    let variables: BTreeMap<String, String> = with_samples(html, samples).into_iter().collect();
    let body = serde_json::json!({ "templateId": id, "variables": variables, "format": "pdf" });
    let body = body.to_string().replace('\'', "'\\''");
    format!(
        "curl -o file.pdf {base_url}/v1/render/template \\\n  -H 'authorization: Bearer YOUR_KEY' \\\n  \
         -H 'content-type: application/json' \\\n  -d '{body}'"
    )
}

/// The earlier versions of a template.
#[derive(Debug, askama::Template)]
#[template(path = "versions.html")]
pub struct VersionsPage {
    /// Shared parts.
    pub layout: Layout,
    /// Id of the template.
    pub id: String,
    /// Name of the template.
    pub name: String,
    /// The versions, newest first.
    pub versions: Vec<Version>,
}

/// One earlier version of a template.
#[derive(Debug, askama::Template)]
#[template(path = "version.html")]
pub struct VersionPage {
    /// Shared parts.
    pub layout: Layout,
    /// Id of the template.
    pub id: String,
    /// The version with its markup.
    pub version: Version,
}

/// The markup of a new template.
pub const INITIAL_HTML: &str = "<!doctype html>\n<meta charset=\"utf-8\">\n<style>\n  body { font: 16px/1.5 sans-serif; margin: 3rem; }\n  h1 { color: #2743d2; }\n</style>\n<h1>Hello {{ name }}</h1>\n<p>This is your first template.</p>\n";

#[cfg(test)]
mod tests {
    use askama::Template as _;

    use super::*;

    #[test]
    fn values_cannot_end_the_quotes_of_the_curl_command() {
        let samples =
            Samples::from([("a".into(), "'; rm -rf ~; '\"$(x)".into()), ("unused".into(), "u".into())]);
        let line = curl("https://p.example", "tpl_x", "{{ a }}", &samples);
        assert!(line.contains(r#""variables":{"a":"'\''; rm -rf ~; '\''\"$(x)"}"#), "{line}");
        assert!(!line.contains("unused"));
    }

    #[test]
    fn user_input_is_escaped() {
        let layout = Layout {
            title: "</title><script>alert(1)</script>".into(),
            form_token: "t".into(),
            user: None,
            notice: None,
            section: super::super::Section::Templates,
        };
        let xss = "</textarea><script>alert(1)</script>";
        let page = EditorPage {
            layout,
            saved: None,
            name: Field::invalid(xss, xss),
            html: Field::valid(xss),
            samples: vec![(xss.to_owned(), xss.to_owned())],
            samples_error: xss.to_owned(),
        };
        let html = page.render().unwrap();
        assert!(!html.contains("<script>alert"), "{html}");
    }
}
