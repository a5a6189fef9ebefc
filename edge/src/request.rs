//! Strict parsing of request bodies, with all defaults filled in.
//!
//! Invariant: every [`RenderRequest`] is valid. Errors have this precedence: JSON syntax; a body that is
//! not an object; the first repeated or unknown field in the order of the document; the fields in the
//! order of the contract; rules that concern several fields.

mod field;
mod field_name;
mod invalid;
mod object;

use std::collections::BTreeMap;

use platen_shared::{
    file_name,
    format::{OutputFormat, PaperSize, WaitUntil},
    id::{AccountId, TemplateId},
    job::{DeviceScaleFactor, Html, Output, PdfScale, PublicUrl, RenderJob, Side, Source, Viewport, WaitMs},
    limits, template,
};

use crate::endpoint::Endpoint;
use field::Field;
pub use field_name::FieldName;
pub use invalid::InvalidRequest;
use object::Object;

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
    viewport: Viewport,
    wait_until: WaitUntil,
    wait_for_timeout: WaitMs,
    output: Output,
}

impl RenderRequest {
    /// Parses a request body.
    ///
    /// # Errors
    /// The first rule that the body breaks.
    pub fn parse(endpoint: Endpoint, body: &[u8]) -> Result<Self, InvalidRequest> {
        let object = Object::read(endpoint, body)?;
        let field = |name| object.field(name);
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
        let paper =
            field(FieldName::PdfFormat).choice(PaperSize::NAMES, PaperSize::parse)?.unwrap_or_default();
        let print_background = field(FieldName::PrintBackground).boolean()?.unwrap_or_default();
        let scale = field(FieldName::Scale)
            .number("number", limits::PDF_SCALE_RANGE, |scale| PdfScale::try_from(scale).ok())?
            .unwrap_or_default();
        let file_name = field(FieldName::FileName).file_name()?;
        let default = Viewport::default();
        let side = |name| {
            field(name).number("whole number", limits::VIEWPORT_SIDE_RANGE, |side| {
                Side::try_from(side).ok().filter(|_| side.fract() == 0.0)
            })
        };
        let viewport = Viewport {
            width: side(FieldName::Width)?.unwrap_or(default.width),
            height: side(FieldName::Height)?.unwrap_or(default.height),
            device_scale_factor: field(FieldName::DeviceScaleFactor)
                .number("number", limits::DEVICE_SCALE_FACTOR_RANGE, |it| {
                    DeviceScaleFactor::try_from(it).ok()
                })?
                .unwrap_or_default(),
        };
        let full_page = field(FieldName::FullPage).boolean()?.unwrap_or_default();
        let wait_until =
            field(FieldName::WaitUntil).choice(WaitUntil::NAMES, WaitUntil::parse)?.unwrap_or_default();
        let wait_for_timeout = field(FieldName::WaitForTimeout)
            .number("number of milliseconds", limits::WAIT_FOR_TIMEOUT_MS_RANGE, |it| {
                WaitMs::try_from(it).ok()
            })?
            .unwrap_or_default();
        let output = match format.unwrap_or(OutputFormat::DEFAULT) {
            OutputFormat::Pdf => Output::Pdf { paper, print_background, scale },
            OutputFormat::Image(format) => Output::Image { format, full_page },
        };
        let pixels = viewport.device_pixels();
        if matches!(output, Output::Image { .. }) && pixels > limits::MAX_IMAGE_PIXELS {
            return Err(InvalidRequest::TooManyPixels { pixels });
        }
        Ok(Self { subject, file_name, viewport, wait_until, wait_for_timeout, output })
    }

    /// The format of the file.
    #[must_use]
    pub fn format(&self) -> OutputFormat {
        self.output.format()
    }

    /// The `content-disposition` of the file: named by `fileName`, else by the template.
    #[must_use]
    pub fn content_disposition(&self, template_name: Option<&str>) -> String {
        file_name::content_disposition(&[self.file_name.as_deref(), template_name], self.format())
    }

    /// The job for the farm. `template` is the markup of the saved template, if the request names one.
    ///
    /// # Errors
    /// A placeholder without a value, or a filled template that is empty or too large.
    pub fn into_job(self, account: AccountId, template: Option<&str>) -> Result<RenderJob, InvalidRequest> {
        let Self { subject, viewport, wait_until, wait_for_timeout, output, .. } = self;
        let source = match subject {
            Subject::Source(source) => source,
            Subject::Template { variables, .. } => {
                let filled = template::fill(template.unwrap_or_default(), |name| {
                    variables.get(name).map(String::as_str)
                })?;
                Source::Html(Html::try_from(filled).map_err(|_| InvalidRequest::EmptyTemplate)?)
            }
        };
        Ok(RenderJob { account, source, viewport, wait_until, wait_for_timeout, output })
    }
}

/// `html` has precedence; then only the type of `url` is checked.
fn source(html: Field<'_>, url: Field<'_>) -> Result<Source, InvalidRequest> {
    match (html.string()?, url.string()?) {
        (Some(text), _) if text.is_empty() => Err(InvalidRequest::EmptyHtml),
        (Some(text), _) => Html::try_from(text).map(Source::Html).map_err(|_| InvalidRequest::HtmlTooLarge),
        (None, Some(text)) => Ok(Source::Url(PublicUrl::try_from(text)?)),
        (None, None) => Err(InvalidRequest::NoSource),
    }
}

#[cfg(test)]
mod tests;
