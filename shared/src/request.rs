//! Strict parsing of request bodies, with all defaults filled in.
//!
//! Invariant: every [`RenderRequest`] is valid. Errors have this precedence: JSON syntax; a body that is
//! not an object; the first repeated or unknown field in the order of the document; the fields in the
//! order of the contract; rules that concern several fields.

mod field;
mod field_name;
mod field_spec;
mod image_fields;
mod invalid;
mod object;
mod pdf_fields;

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    endpoint::Endpoint,
    file_name,
    format::{OutputFormat, PaperSize, WaitUntil},
    id::{AccountId, TemplateId},
    job::{
        Animations, ColorScheme, DeviceScaleFactor, Environment, HeaderHtml, Html, MediaType, Output,
        PdfScale, PublicUrl, RenderJob, RenderOptions, Source, Viewport, WaitMs,
    },
    limits, template,
};

use field::Field;
pub use field_name::{FieldName, FieldPath};
pub use field_spec::{FieldKind, FieldSpec, Formats};
use image_fields::ImageFields;
pub use invalid::InvalidRequest;
use object::Object;
use pdf_fields::{FirstPdfFields, PdfFields};

/// The document to render, as the caller specifies it.
#[derive(Debug, Clone, PartialEq)]
pub enum Subject {
    /// Markup or a URL.
    Source(Source),
    /// A saved template.
    Template {
        /// Id of the template.
        id: TemplateId,
        /// Values by name; numbers as the caller spells them.
        variables: BTreeMap<String, String>,
    },
}

/// A valid request.
#[derive(Debug, Clone, PartialEq)]
pub struct RenderRequest {
    /// The document to render.
    pub subject: Subject,
    file_name: Option<String>,
    options: RenderOptions,
}

impl RenderRequest {
    /// Parses a request body.
    ///
    /// # Errors
    /// The first rule that the body breaks.
    pub fn parse(endpoint: Endpoint, body: &[u8]) -> Result<Self, InvalidRequest> {
        let object = Object::read(endpoint, body)?;
        let field = |name| object.field(name);
        let boolean = |name| Ok(field(name).boolean()?.unwrap_or_default());
        let subject = match endpoint {
            Endpoint::Render => Subject::Source(source(field(FieldName::Html), field(FieldName::Url))?),
            Endpoint::Template => Subject::Template {
                id: TemplateId::from_text(
                    field(FieldName::TemplateId).required()?.string()?.unwrap_or_default(),
                ),
                variables: field(FieldName::Variables).variables()?.unwrap_or_default(),
            },
        };
        let format = field(FieldName::Format).choice(OutputFormat::NAMES, OutputFormat::parse)?;
        let pdf = FirstPdfFields {
            paper: field(FieldName::PdfFormat).choice(PaperSize::NAMES, PaperSize::parse)?,
            print_background: boolean(FieldName::PrintBackground)?,
            scale: field(FieldName::Scale)
                .number("number", limits::PDF_SCALE_RANGE, |scale| PdfScale::try_from(scale).ok())?
                .unwrap_or_default(),
        };
        let file_name = field(FieldName::FileName).file_name()?;
        let default = Viewport::default();
        let side = |name| field(name).whole_number(limits::VIEWPORT_SIDE_RANGE);
        let width = side(FieldName::Width)?;
        let viewport = Viewport {
            height: side(FieldName::Height)?.unwrap_or(default.height),
            device_scale_factor: field(FieldName::DeviceScaleFactor)
                .number("number", limits::DEVICE_SCALE_FACTOR_RANGE, |it| {
                    DeviceScaleFactor::try_from(it).ok()
                })?
                .unwrap_or_default(),
            ..default
        };
        let full_page = boolean(FieldName::FullPage)?;
        let wait_until =
            field(FieldName::WaitUntil).choice(WaitUntil::NAMES, WaitUntil::parse)?.unwrap_or_default();
        let wait_for_timeout = field(FieldName::WaitForTimeout)
            .number("number of milliseconds", limits::WAIT_FOR_TIMEOUT_MS_RANGE, |it| {
                WaitMs::try_from(it).ok()
            })?
            .unwrap_or_default();
        let pdf = PdfFields::read(&object, pdf)?;
        let image = ImageFields::read(&object, full_page)?;
        let media = field(FieldName::MediaType).choice(MediaType::NAMES, MediaType::parse)?;
        let color_scheme =
            field(FieldName::ColorScheme).choice(ColorScheme::NAMES, ColorScheme::parse)?.unwrap_or_default();
        let reduced_motion = boolean(FieldName::ReducedMotion)?;
        let wait_for_selector = field(FieldName::WaitForSelector).text_of()?;
        let environment = Environment {
            media,
            color_scheme,
            reduced_motion,
            time_zone: field(FieldName::Timezone).text_of()?,
            locale: field(FieldName::Locale).text_of()?,
            ..Environment::default()
        };
        let css = field(FieldName::Css).text_of()?;
        let java_script = field(FieldName::JavaScript).boolean()?.unwrap_or(true);
        let animations =
            field(FieldName::Animations).choice(Animations::NAMES, Animations::parse)?.unwrap_or_default();
        let scroll = field(FieldName::Scroll).boolean()?.unwrap_or(true);
        let user_agent = field(FieldName::UserAgent).text_of()?;
        let mobile = boolean(FieldName::Mobile)?;
        let fail_on_http_status = boolean(FieldName::FailOnHttpStatus)?;

        pdf.check()?;
        image.check()?;
        let output = match format.unwrap_or(OutputFormat::DEFAULT) {
            OutputFormat::Pdf => {
                image.check_for_pdf()?;
                Output::Pdf(Box::new(pdf.into_options()))
            }
            OutputFormat::Image(format) => Output::Image(image.into_options(format)?),
        };
        let default_width = match &output {
            Output::Pdf(pdf) => pdf.content_width(),
            Output::Image(_) => default.width,
        };
        let options = RenderOptions {
            viewport: Viewport { width: width.unwrap_or(default_width), mobile, ..viewport },
            environment: Environment { java_script, user_agent, ..environment },
            css,
            wait_until,
            wait_for_timeout,
            wait_for_selector,
            fail_on_http_status,
            animations,
            scroll,
            output,
        };
        match options.check() {
            Ok(()) => Ok(Self { subject, file_name, options }),
            Err(error) => Err(InvalidRequest::options(error, &options.output)),
        }
    }

    /// The format of the file.
    #[must_use]
    pub fn format(&self) -> OutputFormat {
        self.options.output.format()
    }

    /// The `content-disposition` of the file: named by `fileName`, else by the template.
    #[must_use]
    pub fn content_disposition(&self, template_name: Option<&str>) -> String {
        file_name::content_disposition(&[self.file_name.as_deref(), template_name], self.format())
    }

    /// The variables without a value, each once, sorted, if the template has these placeholders.
    #[must_use]
    pub fn missing_variables(&self, placeholders: Vec<String>) -> Vec<String> {
        let Subject::Template { variables, .. } = &self.subject else { return Vec::new() };
        let headers = self.header_and_footer().flat_map(|html| template::placeholders(html.as_str()));
        let names: BTreeSet<String> = placeholders.into_iter().chain(headers).collect();
        names.into_iter().filter(|name| !variables.contains_key(name)).collect()
    }

    fn header_and_footer(&self) -> impl Iterator<Item = &HeaderHtml> {
        let pdf = match &self.options.output {
            Output::Pdf(pdf) => Some(pdf),
            Output::Image(_) => None,
        };
        pdf.into_iter().flat_map(|pdf| [&pdf.header, &pdf.footer]).flatten()
    }

    /// The job for the farm. `template` is the markup of the saved template, if the request names one.
    ///
    /// # Errors
    /// A placeholder without a value, or a filled text that is empty or too large.
    pub fn into_job(self, account: AccountId, template: Option<&str>) -> Result<RenderJob, InvalidRequest> {
        let Self { subject, mut options, .. } = self;
        let source = match subject {
            Subject::Source(source) => source,
            Subject::Template { variables, .. } => {
                let value_of = |name: &str| variables.get(name).map(String::as_str);
                if let Output::Pdf(pdf) = &mut options.output {
                    for (field, html) in
                        [(FieldName::HeaderHtml, &mut pdf.header), (FieldName::FooterHtml, &mut pdf.footer)]
                    {
                        let Some(html) = html else { continue };
                        let filled = template::fill(html.as_str(), limits::MAX_HEADER_BYTES, value_of)
                            .map_err(|error| InvalidRequest::unfilled(error, Some(field)))?;
                        *html = HeaderHtml::try_from(filled)
                            .map_err(|_| InvalidRequest::FilledHeaderTooLarge { field: field.into() })?;
                    }
                }
                let filled = template::fill(template.unwrap_or_default(), limits::MAX_HTML_BYTES, value_of)
                    .map_err(|error| InvalidRequest::unfilled(error, None))?;
                Source::Html(Html::try_from(filled).map_err(|_| InvalidRequest::EmptyTemplate)?)
            }
        };
        Ok(RenderJob { account, source, options })
    }
}

/// `html` has precedence; then only the type of `url` is checked.
fn source(html: Field<'_>, url: Field<'_>) -> Result<Source, InvalidRequest> {
    match (html.string()?, url.string()?) {
        (Some(text), _) if text.is_empty() => Err(InvalidRequest::EmptyHtml),
        (Some(text), _) => Html::try_from(text).map(Source::Html).map_err(|_| InvalidRequest::HtmlTooLarge),
        (None, Some(text)) => Ok(Source::Url(PublicUrl::try_from(text).map_err(InvalidRequest::Url)?)),
        (None, None) => Err(InvalidRequest::NoSource),
    }
}

#[cfg(test)]
mod tests;
