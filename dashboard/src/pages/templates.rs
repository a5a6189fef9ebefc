//! Saved templates: the list, the editor, the versions.

use std::collections::BTreeMap;

use platen_shared::{
    format::PaperSize,
    id::{TemplateId, UserId},
    limits,
    request::{FieldName, OPTIONS_WITH_PLACEHOLDERS, TemplateOptions},
    template::{self, Language},
    template_files::TemplateFiles,
};
use platen_statements::{
    Timestamp,
    templates::{Template, TemplateContent, Version, VersionContent},
};

use super::{Layout, diff, paging::Paging, playground::Panel};
use crate::{
    files::{self, FormFiles},
    form::{Field, Form},
    playground::{
        body::Problem,
        control::{self, Group},
        text,
    },
    starter::Starter,
};

/// Sample values by placeholder.
pub(crate) type Samples = BTreeMap<String, String>;

#[derive(Debug, askama::Template)]
#[template(path = "templates.html")]
pub(crate) struct TemplatesPage {
    pub(crate) layout: Layout,
    /// The search text; empty for all templates.
    pub(crate) search: String,
    /// The templates of this page, last saved first.
    pub(crate) templates: Vec<Template>,
    pub(crate) paging: Paging,
}

/// The editor of a saved or a new template.
#[derive(Debug, askama::Template)]
#[template(path = "template.html")]
pub(crate) struct EditorPage<'t> {
    pub(crate) layout: Layout,
    /// The nonce of the code editor's styles.
    pub(crate) style_nonce: String,
    /// The saved template; `None` for a new one.
    pub(crate) saved: Option<&'t TemplateContent>,
    pub(crate) form: EditorForm,
    /// The files of the form, or else of the template.
    pub(crate) files: FormFiles,
    /// The newer version that stands in the way of the save.
    pub(crate) conflict: Option<Conflict>,
    /// Whether the form differs from what is saved.
    pub(crate) is_unsaved: bool,
    /// Whether the preview is shown.
    pub(crate) has_preview: bool,
    /// The user, whose drafts the browser keeps.
    pub(crate) user: UserId,
    /// How the saved template is rendered; `None` for a new one.
    pub(crate) panel: Option<TemplatePanel>,
}

/// The request of a saved template.
#[derive(Debug)]
pub(crate) struct TemplatePanel {
    pub(crate) panel: Panel,
    /// The field with the sample values, and these as a JSON object.
    pub(crate) values: (FieldName, String),
}

/// The fields of the editor with their errors.
#[derive(Debug)]
pub(crate) struct EditorForm {
    pub(crate) name: Field,
    pub(crate) html: Field,
    /// What it is written in.
    pub(crate) language: Language,
    /// The values of the controls of options.
    pub(crate) options: Form,
    /// Why the options are not valid.
    pub(crate) problem: Option<Problem>,
    /// The sample values of placeholders.
    pub(crate) samples: Samples,
    /// Those of a template in Jinja, as a JSON object.
    pub(crate) sample_data: String,
    /// The error of the sample values; empty if they are valid.
    pub(crate) samples_error: String,
    /// The files; `None` if the form has none, and keeps those of the template.
    pub(crate) files: Option<FormFiles>,
    /// The error of the files; empty if they are valid.
    pub(crate) files_error: String,
    /// The revision that the form was made from; `None` for a new template.
    pub(crate) revision: Option<u32>,
    /// What a new template was made from.
    pub(crate) starter: Option<&'static Starter>,
}

impl EditorForm {
    pub(crate) fn valid(name: &str, html: &str, options: Form, samples: Samples) -> Self {
        Self {
            name: Field::valid(name),
            html: Field::valid(html),
            language: Language::Placeholders,
            options,
            problem: None,
            samples,
            sample_data: "{}".to_owned(),
            samples_error: String::new(),
            files: None,
            files_error: String::new(),
            revision: None,
            starter: None,
        }
    }

    /// A new template like a starter.
    pub(crate) fn of_starter(starter: &'static Starter) -> Self {
        Self {
            language: starter.language(),
            sample_data: starter.sample_data(),
            starter: Some(starter),
            ..Self::valid(starter.name, starter.html, starter.options(), starter.samples())
        }
    }

    /// The controls of the options.
    fn groups(&self) -> Vec<Group> {
        control::groups(FieldName::of_template(), &self.options, self.problem.as_ref())
    }

    /// Tags of other template languages in the markup; empty if there are none.
    fn foreign_tags(&self) -> String {
        if self.language == Language::Jinja {
            return String::new();
        }
        template::foreign_tags(&self.html.value).join(" ")
    }

    /// Whether the sample values are those of a saved template.
    pub(crate) fn has_samples_of(&self, saved: &TemplateContent) -> bool {
        match self.language {
            Language::Jinja => self.sample_data == saved.samples,
            Language::Placeholders => with_values(&self.samples).eq(with_values(&saved.sample_texts())),
        }
    }

    /// The placeholders of the markup and of what is printed besides, each with its sample value or an empty one.
    fn samples_by_placeholder(&self) -> Vec<(String, String)> {
        let is_pdf = self.options.get(FieldName::Format.as_str()) == Some("pdf");
        let of_options = OPTIONS_WITH_PLACEHOLDERS.iter().filter(|_| is_pdf);
        let texts = of_options.map(|field| self.options.text(field.as_str()));
        let mut names = template::placeholders(&self.html.value);
        for name in texts.flat_map(|text| template::placeholders(&text)) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let value = |name: &String| self.samples.get(name).cloned().unwrap_or_default();
        names.into_iter().map(|name| (name.clone(), value(&name))).collect()
    }
}

/// The samples that are not empty.
fn with_values(samples: &Samples) -> impl Iterator<Item = (&String, &String)> {
    samples.iter().filter(|(_, value)| !value.is_empty())
}

/// The names of the options that may have placeholders, separated by spaces.
fn filled_options() -> String {
    OPTIONS_WITH_PLACEHOLDERS.map(FieldName::as_str).join(" ")
}

/// Width and height of each paper size in CSS pixels, as a JSON object.
pub(crate) fn papers() -> String {
    let sizes = PaperSize::NAMES.iter().filter_map(|name| {
        let (width, height) = name.parse::<PaperSize>().ok()?.size();
        Some((*name, [width.pixels(), height.pixels()]))
    });
    serde_json::json!(sizes.collect::<BTreeMap<_, _>>()).to_string()
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
    /// Changes from the saved options to those of the form; empty if they are equal.
    pub(crate) option_lines: Vec<diff::Line>,
    /// Changes from the saved files to those of the form; empty if they are equal.
    pub(crate) file_lines: Vec<diff::Line>,
    /// Changes from the saved markup to that of the form; empty if they are equal.
    pub(crate) lines: Vec<diff::Line>,
}

impl Conflict {
    /// `files` are those of the form; `None` if it keeps those of the template.
    pub(crate) fn of(
        stored: &TemplateContent,
        form: &EditorForm,
        options: &TemplateOptions,
        files: Option<&TemplateFiles>,
    ) -> Self {
        let stored_files = &stored.template.files;
        let name = &stored.template.name;
        Self {
            by: stored.saved_by.clone(),
            at: stored.template.updated_at,
            name: (*name != form.name.value).then(|| name.clone()),
            has_other_samples: !form.has_samples_of(stored),
            option_lines: diff::lines(&stored.template.options.lines(), &options.lines()),
            file_lines: diff::lines(
                &files::lines(stored_files),
                &files::lines(files.unwrap_or(stored_files)),
            ),
            lines: diff::lines(&stored.html, &form.html.value),
        }
    }
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
    /// The nonce of the code editor's styles.
    pub(crate) style_nonce: String,
    pub(crate) id: TemplateId,
    /// The current name of the template.
    pub(crate) template_name: String,
    pub(crate) version: Version,
    pub(crate) language: Language,
    pub(crate) html: String,
    /// Changes from the options of this version to those of the current template; empty if they are equal.
    pub(crate) option_lines: Vec<diff::Line>,
    /// Changes from the files of this version to those of the current template; empty if they are equal.
    pub(crate) file_lines: Vec<diff::Line>,
    /// Changes from this version to the current template; empty if they are equal.
    pub(crate) lines: Vec<diff::Line>,
    /// The files of this version.
    pub(crate) files: FormFiles,
    /// The options of this version, as a JSON object of the texts of controls.
    pub(crate) options_json: String,
    /// The current sample values, as a JSON object.
    pub(crate) samples_json: String,
}

impl VersionPage {
    pub(crate) fn new(
        (layout, style_nonce): (Layout, String),
        VersionContent { version, language, options, files, html }: VersionContent,
        current: &TemplateContent,
    ) -> Self {
        Self {
            layout,
            style_nonce,
            id: current.template.id.clone(),
            template_name: current.template.name.clone(),
            version,
            language,
            option_lines: diff::lines(&options.lines(), &current.template.options.lines()),
            file_lines: diff::lines(&files::lines(&files), &files::lines(&current.template.files)),
            files: FormFiles::of(&files),
            lines: diff::lines(&html, &current.html),
            html,
            options_json: text::texts_of_options(&options).to_string(),
            samples_json: current.samples.clone(),
        }
    }
}

pub(crate) const INITIAL_HTML: &str = "<!doctype html>\n<meta charset=\"utf-8\">\n<style>\n  body { font: 16px/1.5 sans-serif; margin: 3rem; }\n  h1 { color: #2743d2; }\n</style>\n<h1>Hello {{ name }}</h1>\n<p>This is your first template.</p>\n";

#[cfg(test)]
mod tests {
    use askama::Template as _;

    use super::*;

    #[test]
    fn user_input_is_escaped() {
        let layout = Layout { title: "</title><script>alert(1)</script>".into(), ..Layout::default() };
        let xss = "</textarea><script>alert(1)</script>";
        let page = EditorPage {
            layout,
            style_nonce: xss.to_owned(),
            saved: None,
            form: EditorForm {
                name: Field::invalid(xss, xss),
                html: Field::valid(xss),
                language: Language::Jinja,
                options: Form::of(vec![("headerHtml".to_owned(), xss.to_owned())]),
                problem: Some(Problem { field: "headerHtml".to_owned(), message: xss.to_owned() }),
                samples: Samples::from([(xss.to_owned(), xss.to_owned())]),
                sample_data: xss.to_owned(),
                samples_error: xss.to_owned(),
                files: None,
                files_error: xss.to_owned(),
                revision: None,
                starter: None,
            },
            files: FormFiles::parse(&serde_json::json!({ xss: { "mimeType": xss } }).to_string()).unwrap(),
            conflict: Some(Conflict {
                by: xss.to_owned(),
                at: Timestamp(0),
                name: Some(xss.to_owned()),
                has_other_samples: true,
                option_lines: diff::lines("", xss),
                file_lines: diff::lines("", xss),
                lines: diff::lines("", xss),
            }),
            is_unsaved: true,
            has_preview: true,
            user: UserId::from_text("usr_x"),
            panel: None,
        };
        let html = page.render().unwrap();
        assert!(!html.contains("<script>alert"), "{html}");
    }
}
