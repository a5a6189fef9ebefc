//! Saved templates.

use std::collections::BTreeMap;

use platen_shared::{id::TemplateId, template};

use super::Layout;
use crate::{clock::Timestamp, form::Field};

/// Values to try a template with, by placeholder.
pub type Samples = BTreeMap<String, String>;

/// A template in a list.
#[derive(Debug, Clone)]
pub struct Listed {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The names its markup uses.
    pub placeholders: Vec<String>,
    /// When it was last saved.
    pub updated: Timestamp,
}

/// A template.
#[derive(Debug, Clone)]
pub struct Template {
    /// Its id.
    pub id: TemplateId,
    /// Its name.
    pub name: String,
    /// Its markup.
    pub html: String,
    /// Values to try it with.
    pub samples: Samples,
    /// When it was last saved.
    pub updated: Timestamp,
    /// How many earlier versions there are.
    pub versions: u32,
}

/// An earlier version.
#[derive(Debug, Clone)]
pub struct Version {
    /// Its number.
    pub number: u32,
    /// The template's name then.
    pub name: String,
    /// When it was saved.
    pub saved: Timestamp,
    /// The markup; empty in a list.
    pub html: String,
}

/// The list.
#[derive(Debug, askama::Template)]
#[template(path = "templates.html")]
pub struct List {
    /// What surrounds it.
    pub layout: Layout,
    /// What was searched for.
    pub search: String,
    /// The templates found.
    pub templates: Vec<Listed>,
}

/// A template's page with its editor; without a template, the page of a new one.
#[derive(Debug, askama::Template)]
#[template(path = "template.html")]
pub struct Editor {
    /// What surrounds it.
    pub layout: Layout,
    /// The saved template.
    pub saved: Option<Saved>,
    /// The name.
    pub name: Field,
    /// The markup.
    pub html: Field,
    /// Placeholder and value.
    pub samples: Vec<(String, String)>,
    /// What is wrong with the sample values; empty if nothing is.
    pub samples_error: String,
}

/// What is known of a template that is saved.
#[derive(Debug, Clone)]
pub struct Saved {
    /// Its id.
    pub id: String,
    /// When it was last saved.
    pub updated: Timestamp,
    /// How many earlier versions there are.
    pub versions: u32,
    /// A ready curl line.
    pub curl: String,
}

impl Editor {
    fn action(&self) -> String {
        match &self.saved {
            Some(saved) => format!("/dashboard/templates/{}", saved.id),
            None => "/dashboard/templates/new".to_owned(),
        }
    }
}

/// The placeholders of a markup with the values there are for them.
#[must_use]
pub fn with_samples(html: &str, samples: &Samples) -> Vec<(String, String)> {
    let value = |name: &String| samples.get(name).cloned().unwrap_or_default();
    template::placeholders(html).into_iter().map(|name| (name.clone(), value(&name))).collect()
}

/// A ready curl line. Within single quotes of a layout, so that no value ends the text.
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

/// The list of a template's versions.
#[derive(Debug, askama::Template)]
#[template(path = "versions.html")]
pub struct Versions {
    /// What surrounds it.
    pub layout: Layout,
    /// The template's id.
    pub id: String,
    /// The template's name.
    pub name: String,
    /// The versions, the newest first.
    pub versions: Vec<Version>,
}

/// One version.
#[derive(Debug, askama::Template)]
#[template(path = "version.html")]
pub struct OneVersion {
    /// What surrounds it.
    pub layout: Layout,
    /// The template's id.
    pub id: String,
    /// The version.
    pub version: Version,
}

/// The markup a new template begins with.
pub const FIRST_MARKUP: &str = "<!doctype html>\n<meta charset=\"utf-8\">\n<style>\n  body { font: 16px/1.5 sans-serif; margin: 3rem; }\n  h1 { color: #2743d2; }\n</style>\n<h1>Hello {{ name }}</h1>\n<p>This is your first template.</p>\n";

#[cfg(test)]
mod tests {
    use askama::Template as _;

    use super::*;

    #[test]
    fn a_curl_line_cannot_be_broken_out_of() {
        let samples =
            Samples::from([("a".into(), "'; rm -rf ~; '\"$(x)".into()), ("unused".into(), "u".into())]);
        let line = curl("https://p.example", "tpl_x", "{{ a }}", &samples);
        assert!(line.contains(r#""variables":{"a":"'\''; rm -rf ~; '\''\"$(x)"}"#), "{line}");
        assert!(!line.contains("unused"));
    }

    #[test]
    fn what_was_typed_is_escaped() {
        let layout = Layout {
            title: "</title><script>alert(1)</script>".into(),
            form_token: "t".into(),
            person: None,
            notice: None,
            section: super::super::Section::Templates,
        };
        let xss = "</textarea><script>alert(1)</script>";
        let page = Editor {
            layout,
            saved: None,
            name: Field::wrong(xss, xss),
            html: Field::of(xss),
            samples: vec![(xss.to_owned(), xss.to_owned())],
            samples_error: xss.to_owned(),
        };
        let html = page.render().unwrap();
        assert!(!html.contains("<script>alert"), "{html}");
    }
}
