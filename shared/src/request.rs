//! Strict parsing of request bodies, with all defaults filled in.
//!
//! Invariant: every [`RenderRequest`] is valid; one for a template is checked again with the template's options. Errors have this precedence: JSON syntax; a body that is
//! not an object; the first repeated or unknown field in the order of the document; the fields in the
//! order of the contract; rules that concern several fields.

mod assets;
mod field_group;
mod field_kind;
mod field_name;
mod field_spec;
mod formats;
mod invalid;
mod object;
mod options;
mod other_services;
mod template_options;

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    endpoint::Endpoint,
    format::OutputFormat,
    id::{AccountId, TemplateId},
    job::{
        HeaderHtml, Html, JinjaTemplate, Output, PageUrl, RenderJob, RenderOptions, Source, TemplateData,
        Variable,
    },
    limits,
    link::LinkFile,
    template::{self, FillError, Language},
    url_rule::InvalidUrl,
};

pub use field_group::FieldGroup;
pub use field_kind::FieldKind;
pub use field_name::{FieldName, FieldPath};
pub use field_spec::FieldSpec;
pub use formats::Formats;
pub use invalid::InvalidRequest;
use object::{Field, Object};
use options::Options;
pub use template_options::TemplateOptions;

/// The options of a template that may have placeholders.
pub const OPTIONS_WITH_PLACEHOLDERS: [FieldName; 4] =
    [FieldName::HeaderHtml, FieldName::FooterHtml, FieldName::HeaderFirstHtml, FieldName::FooterFirstHtml];

/// The document to render, as the caller specifies it.
#[derive(Debug, Clone, PartialEq)]
pub enum Subject {
    /// Markup or a URL.
    Source(Source),
    /// A saved template.
    Template {
        /// Id of the template.
        id: TemplateId,
        /// Values by name.
        variables: BTreeMap<String, Variable>,
        /// Further values, with other names. Only a template in Jinja can have them.
        data: Option<TemplateData>,
    },
}

/// A valid request, as far as that does not depend on the options of a template.
#[derive(Debug, Clone, PartialEq)]
pub struct RenderRequest {
    /// The document to render.
    pub subject: Subject,
    /// The name of the file; without it, it is that of the template.
    pub file_name: Option<String>,
    options: GivenOptions,
}

/// The options of a request.
#[derive(Debug, Clone, PartialEq)]
enum GivenOptions {
    /// All of them.
    Complete(Box<RenderOptions>),
    /// Those that are given for a template.
    OverTemplate(TemplateOptions),
}

/// What a request uses of a saved template.
#[derive(Debug, Clone, Copy)]
pub struct SavedTemplate<'t> {
    /// The markup.
    pub html: &'t str,
    /// What it is written in.
    pub language: Language,
    /// The options.
    pub options: &'t TemplateOptions,
}

impl RenderRequest {
    /// Parses a request body.
    ///
    /// # Errors
    /// The first rule that the body breaks.
    pub fn parse(endpoint: Endpoint, body: &[u8]) -> Result<Self, InvalidRequest> {
        Self::parse_with(endpoint, body, PageUrl::try_from)
    }

    /// Parses the body of a request of the operator to a farm in the same process: the host of its `url` need not be public, if
    /// the farm's egress guard allows it. That of `baseUrl` must be.
    ///
    /// # Errors
    /// The first rule that the body breaks.
    pub fn parse_of_operator(endpoint: Endpoint, body: &[u8]) -> Result<Self, InvalidRequest> {
        Self::parse_with(endpoint, body, |text| PageUrl::of_operator(&text))
    }

    fn parse_with(
        endpoint: Endpoint,
        body: &[u8],
        page_url: fn(String) -> Result<PageUrl, InvalidUrl>,
    ) -> Result<Self, InvalidRequest> {
        let object = Object::read(&FieldName::of_endpoint(endpoint).collect::<Vec<_>>(), body)?;
        let field = |name| object.field(name);
        let subject = match endpoint {
            Endpoint::Render => {
                Subject::Source(source(field(FieldName::Html), field(FieldName::Url), page_url)?)
            }
            Endpoint::Template => {
                let id = field(FieldName::TemplateId).required()?.string()?.unwrap_or_default();
                let variables = field(FieldName::Variables).variables()?.unwrap_or_default();
                let data = field(FieldName::Data).data(&variables)?;
                Subject::Template { id: TemplateId::from_text(id), variables, data }
            }
        };
        let mut options = Options::read(&object)?;
        let file_name = options.file_name.take();
        let options = match endpoint {
            Endpoint::Render => {
                let options = options.into_options()?;
                let of_markup = [
                    (FieldName::Assets, options.assets.is_some()),
                    (FieldName::BaseUrl, options.base_url.is_some()),
                ];
                if let Some((field, _)) = of_markup.into_iter().find(|(_, is_given)| *is_given)
                    && !matches!(subject, Subject::Source(Source::Html(_)))
                {
                    return Err(InvalidRequest::RequiredWith(FieldName::Html, field));
                }
                let host = match &subject {
                    Subject::Source(Source::Url(url)) => url.as_url().domain(),
                    _ => None,
                };
                if host.is_some_and(|host| options.block_hosts.iter().any(|names| names.contain(host))) {
                    return Err(field(FieldName::BlockHosts).rule("must not have the host of \"url\""));
                }
                GivenOptions::Complete(Box::new(options))
            }
            Endpoint::Template => {
                options.check(options.format)?;
                GivenOptions::OverTemplate(TemplateOptions::of(&object))
            }
        };
        Ok(Self { subject, file_name, options })
    }

    /// The request of a link's address.
    #[must_use]
    pub fn of_link(template: TemplateId, file: &LinkFile) -> Self {
        let values = file.values.iter();
        let variables = values.map(|(name, value)| (name.clone(), Variable::Text(value.clone()))).collect();
        Self {
            subject: Subject::Template { id: template, variables, data: None },
            file_name: None,
            options: GivenOptions::OverTemplate(TemplateOptions::of_format(file.format)),
        }
    }

    /// The format of the file; `None` if it is that of the template.
    #[must_use]
    pub fn format(&self) -> Option<OutputFormat> {
        match &self.options {
            GivenOptions::Complete(options) => Some(options.output.format()),
            GivenOptions::OverTemplate(given) => given.format(),
        }
    }

    /// The fields with placeholders that it has in place of those of the template.
    #[must_use]
    pub fn replaced_fields(&self) -> Vec<FieldName> {
        match &self.options {
            GivenOptions::Complete(_) => Vec::new(),
            GivenOptions::OverTemplate(given) => {
                given.fields().filter(|field| OPTIONS_WITH_PLACEHOLDERS.contains(field)).collect()
            }
        }
    }

    /// The variables without a value, each once, sorted, if the template needs these. Those of the request's own header are
    /// among them if the request names the format.
    #[must_use]
    pub fn missing_variables(&self, of_template: Vec<String>) -> Vec<String> {
        let (Subject::Template { variables, .. }, GivenOptions::OverTemplate(given)) =
            (&self.subject, &self.options)
        else {
            return Vec::new();
        };
        let is_pdf = given.format() == Some(OutputFormat::Pdf);
        let of_fields = OPTIONS_WITH_PLACEHOLDERS.iter().filter(|_| is_pdf);
        let names: BTreeSet<String> =
            of_template.into_iter().chain(of_fields.flat_map(|field| given.placeholders(*field))).collect();
        names.into_iter().filter(|name| !variables.contains_key(name)).collect()
    }

    /// Checks the values for a template in this language that needs these variables.
    ///
    /// # Errors
    /// [`InvalidRequest::MissingVariables`], or a value that a template in this language cannot have.
    pub fn check_values(&self, language: Language, of_template: Vec<String>) -> Result<(), InvalidRequest> {
        self.check_language(language)?;
        match self.missing_variables(of_template) {
            missing if missing.is_empty() || language == Language::Jinja => Ok(()),
            missing => Err(InvalidRequest::MissingVariables(missing)),
        }
    }

    fn check_language(&self, language: Language) -> Result<(), InvalidRequest> {
        let Subject::Template { data, variables, .. } = &self.subject else { return Ok(()) };
        match language {
            Language::Placeholders if data.is_some() => Err(InvalidRequest::rule(
                FieldName::Data,
                "is for templates in Jinja; this one has placeholders, whose values are \"variables\"",
            )),
            Language::Jinja if variables.values().any(Variable::is_too_large) => {
                Err(InvalidRequest::rule(FieldName::Variables, "must have numbers up to 1.7e308"))
            }
            _ => Ok(()),
        }
    }

    /// The job for the farm. `template` is the saved template, if the request names one.
    ///
    /// # Errors
    /// Options that break a rule together with those of the template, a placeholder without a value, or a filled text that
    /// is empty or too large.
    pub fn into_job(
        self,
        account: AccountId,
        template: Option<SavedTemplate<'_>>,
    ) -> Result<RenderJob, InvalidRequest> {
        let none = TemplateOptions::default();
        let SavedTemplate { html, language, options: of_template } =
            template.unwrap_or(SavedTemplate { html: "", language: Language::Placeholders, options: &none });
        self.check_language(language)?;
        let mut options = match self.options {
            GivenOptions::Complete(options) => *options,
            GivenOptions::OverTemplate(given) => given.over(of_template)?,
        };
        let source = match self.subject {
            Subject::Source(source) => source,
            Subject::Template { variables, data, .. } if language == Language::Jinja => {
                let markup = Html::try_from(html.to_owned()).map_err(|_| InvalidRequest::EmptyTemplate)?;
                Source::Jinja(JinjaTemplate { markup, data: data.unwrap_or_default(), variables })
            }
            Subject::Template { variables, .. } => {
                let mut missing = BTreeSet::new();
                // `None` if the text is too large.
                let mut fill = |text: &str, max_bytes| match template::fill(text, max_bytes, |name| {
                    variables.get(name).map(Variable::as_str)
                }) {
                    Ok(filled) => Some(filled),
                    Err(FillError::TooLarge) => None,
                    Err(FillError::Missing(names)) => {
                        missing.extend(names);
                        Some(String::new())
                    }
                };
                if let Output::Pdf(pdf) = &mut options.output {
                    let texts =
                        [&mut pdf.header, &mut pdf.footer, &mut pdf.first_header, &mut pdf.first_footer];
                    for (field, html) in OPTIONS_WITH_PLACEHOLDERS.into_iter().zip(texts) {
                        let Some(html) = html else { continue };
                        let too_large = || InvalidRequest::FilledHeaderTooLarge { field };
                        let filled = fill(html.as_str(), limits::MAX_HEADER_BYTES).ok_or_else(too_large)?;
                        *html = HeaderHtml::try_from(filled).map_err(|_| too_large())?;
                    }
                }
                let filled =
                    fill(html, limits::MAX_HTML_BYTES).ok_or(InvalidRequest::FilledTemplateTooLarge)?;
                if !missing.is_empty() {
                    return Err(InvalidRequest::MissingVariables(missing.into_iter().collect()));
                }
                Source::Html(Html::try_from(filled).map_err(|_| InvalidRequest::EmptyTemplate)?)
            }
        };
        Ok(RenderJob { account, source, options })
    }
}

/// `html` has precedence; then only the type of `url` is checked.
fn source(
    html: Field<'_>,
    url: Field<'_>,
    page_url: fn(String) -> Result<PageUrl, InvalidUrl>,
) -> Result<Source, InvalidRequest> {
    match (html.string()?, url.string()?) {
        (Some(text), _) => Html::try_from(text).map(Source::Html).map_err(|error| html.rule(error)),
        (None, Some(text)) => page_url(text).map(Source::Url).map_err(|error| url.rule(error)),
        (None, None) => Err(InvalidRequest::NoSource),
    }
}

#[cfg(test)]
mod tests;
