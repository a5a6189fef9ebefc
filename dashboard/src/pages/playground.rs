//! The playground, and the panel that tries a template.

use platen_shared::{
    id::{TemplateId, UserId},
    request::FieldName,
};

use super::Layout;
use crate::{
    form::Form,
    playground::{
        Source,
        body::{Problem, Request},
        control::{self, Control, Group},
        snippets::{self, Snippet},
    },
};

#[derive(Debug, askama::Template)]
#[template(path = "playground.html")]
pub(crate) struct PlaygroundPage {
    pub(crate) layout: Layout,
    /// The nonce of the code editors' styles.
    pub(crate) style_nonce: String,
    /// The user, for whom the browser keeps what was entered.
    pub(crate) user: UserId,
    pub(crate) source: Source,
    /// The controls of all sources.
    pub(crate) sources: Vec<Control>,
    /// Ids and names of the templates that are suggested.
    pub(crate) templates: Vec<(TemplateId, String)>,
    /// Whether the preview is shown.
    pub(crate) has_preview: bool,
    pub(crate) panel: Panel,
}

/// The options of a request, and the programs that send it.
#[derive(Debug)]
pub(crate) struct Panel {
    pub(crate) groups: Vec<Group>,
    /// Empty ones if there is no valid request.
    pub(crate) snippets: Vec<Snippet>,
    /// Whether the programs read the body from a file.
    pub(crate) reads_file: bool,
    /// Why there is no request, if that concerns no control.
    pub(crate) problem: String,
}

impl Panel {
    pub(crate) fn of(
        base_url: &str,
        form: &Form,
        request: Result<&Request, &Problem>,
    ) -> askama::Result<Self> {
        let problem = request.err();
        let has_control = |problem: &&Problem| {
            let field = problem.field.split(['.', '[']).next().unwrap_or_default();
            FieldName::all().any(|known| known.as_str() == field)
        };
        Ok(Self {
            groups: control::groups(
                FieldName::all().filter(|field| Source::of_field(*field).is_none()),
                form,
                problem,
            ),
            snippets: request
                .map_or_else(|_| Ok(snippets::none()), |request| snippets::all(base_url, request))?,
            reads_file: request.is_ok_and(snippets::read_a_file),
            problem: problem
                .filter(|problem| !has_control(problem))
                .map_or_else(String::new, |problem| problem.message.clone()),
        })
    }

    pub(super) fn has_request(&self) -> bool {
        self.snippets.iter().any(|snippet| !snippet.program.is_empty())
    }
}

/// The controls of all sources.
pub(crate) fn sources(form: &Form, problem: Option<&Problem>) -> Vec<Control> {
    let fields = FieldName::all().filter(|field| Source::of_field(*field).is_some());
    fields.map(|field| control::control(field, form, problem)).collect()
}
