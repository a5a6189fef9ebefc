//! A request body, parsed into what the edge acts on: strict, and every default filled in.
//!
//! Invariant: a [`RenderRequest`] cannot hold a bad value. Which error wins: JSON syntax, then a
//! body that is not an object, then the first repeated or unknown field in the order of the
//! document, then the fields in the order of the contract, then what no single field shows.

mod field;
mod object;

use std::collections::BTreeMap;

use platen_shared::{
    file_name,
    format::{OutputFormat, PaperSize, WaitUntil},
    id::{AccountId, TemplateId},
    job::{DeviceScaleFactor, Html, Output, PdfScale, PublicUrl, RenderJob, Side, Source, Viewport, WaitMs},
    limits,
    template::{self, FillError},
};
use serde_json::value::RawValue;

use field::Field;
pub use field::InvalidRequest;

/// The two operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endpoint {
    /// `POST /v1/render`.
    Render,
    /// `POST /v1/render/template`.
    Template,
}

impl Endpoint {
    /// The operation of a path, which ends before any `?`.
    #[must_use]
    pub fn of_path(path: &str) -> Option<Self> {
        match path {
            "/v1/render" => Some(Self::Render),
            "/v1/render/template" => Some(Self::Template),
            _ => None,
        }
    }

    fn fields(self) -> &'static [&'static str] {
        match self {
            Self::Render => const { &concat_fields(["html", "url"]) },
            Self::Template => const { &concat_fields(["templateId", "variables"]) },
        }
    }
}

/// The fields both operations share, in the order of the contract.
const SHARED_FIELDS: [&str; 11] = [
    "format",
    "pdfFormat",
    "printBackground",
    "scale",
    "fileName",
    "width",
    "height",
    "deviceScaleFactor",
    "fullPage",
    "waitUntil",
    "waitForTimeout",
];

const fn concat_fields(own: [&'static str; 2]) -> [&'static str; 13] {
    let mut all = [""; 13];
    (all[0], all[1]) = (own[0], own[1]);
    let mut index = 0;
    while index < SHARED_FIELDS.len() {
        all[index + 2] = SHARED_FIELDS[index];
        index += 1;
    }
    all
}

/// What is to be rendered, as the caller named it.
#[derive(Debug, Clone, PartialEq)]
pub enum Subject {
    /// Markup or a URL, ready to go.
    Source(Source),
    /// A saved template with the values for it, numbers as they were written.
    Template {
        /// Which template.
        id: TemplateId,
        /// Value by name.
        variables: BTreeMap<String, String>,
    },
}

/// A valid request.
#[derive(Debug, Clone, PartialEq)]
pub struct RenderRequest {
    /// What is to be rendered.
    pub subject: Subject,
    /// `fileName` as given.
    pub file_name: Option<String>,
    viewport: Viewport,
    wait_until: WaitUntil,
    wait_for_timeout: WaitMs,
    output: Output,
}

impl RenderRequest {
    /// Parses a body.
    ///
    /// # Errors
    /// The first rule it breaks, as the message the caller reads.
    pub fn parse(endpoint: Endpoint, body: &[u8]) -> Result<Self, InvalidRequest> {
        let known = endpoint.fields();
        let values = object::fields(body, known)?;
        let field = |name: &'static str| -> Field<'_> {
            let value: Option<&RawValue> =
                known.iter().position(|known| *known == name).and_then(|index| values[index]);
            Field { name, value }
        };
        let subject = match endpoint {
            Endpoint::Render => Subject::Source(source(field("html"), field("url"))?),
            Endpoint::Template => Subject::Template {
                id: TemplateId::from_text(field("templateId").required()?.string()?.unwrap_or_default()),
                variables: field("variables").variables()?.unwrap_or_default(),
            },
        };
        let format = field("format").choice(OutputFormat::NAMES, OutputFormat::parse)?;
        let paper = field("pdfFormat").choice(PAPER_NAMES, PaperSize::parse)?.unwrap_or_default();
        let print_background = field("printBackground").boolean()?.unwrap_or_default();
        let scale = field("scale").number(limits::PDF_SCALE_RANGE, PdfScale::try_from)?.unwrap_or_default();
        let file_name = field("fileName").file_name()?;
        let default = Viewport::default();
        let side = |name| field(name).whole(limits::VIEWPORT_SIDE_RANGE, Side::try_from);
        let viewport = Viewport {
            width: side("width")?.unwrap_or(default.width),
            height: side("height")?.unwrap_or(default.height),
            device_scale_factor: field("deviceScaleFactor")
                .number(limits::DEVICE_SCALE_FACTOR_RANGE, DeviceScaleFactor::try_from)?
                .unwrap_or_default(),
        };
        let full_page = field("fullPage").boolean()?.unwrap_or_default();
        let wait_until = field("waitUntil").choice(WaitUntil::NAMES, WaitUntil::parse)?.unwrap_or_default();
        let wait_for_timeout = field("waitForTimeout")
            .milliseconds(limits::WAIT_FOR_TIMEOUT_MS_RANGE, WaitMs::try_from)?
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

    /// The `content-disposition` of the file. `template_name` is the name of the template it was
    /// made from, if any.
    #[must_use]
    pub fn content_disposition(&self, template_name: Option<&str>) -> String {
        file_name::content_disposition(&[self.file_name.as_deref(), template_name], self.format())
    }

    /// The job for the farm. `template` is the markup of the saved template when the request
    /// names one.
    ///
    /// # Errors
    /// What a template needs and the request does not give, or a filled template over the limit.
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

const PAPER_NAMES: &[&str] = &{
    let mut names = [""; PaperSize::ALL.len()];
    let mut index = 0;
    while index < names.len() {
        names[index] = PaperSize::ALL[index].0;
        index += 1;
    }
    names
};

/// `html` wins; then `url` is looked at for its type only.
fn source(html: Field<'_>, url: Field<'_>) -> Result<Source, InvalidRequest> {
    match (html.string()?, url.string()?) {
        (Some(text), _) => match text.len() {
            0 => Err(InvalidRequest::EmptyHtml),
            _ => Html::try_from(text).map(Source::Html).map_err(|_| InvalidRequest::HtmlTooLarge),
        },
        (None, Some(text)) => PublicUrl::try_from(text).map(Source::Url).map_err(InvalidRequest::from),
        (None, None) => Err(InvalidRequest::NoSource),
    }
}

impl From<FillError> for InvalidRequest {
    fn from(error: FillError) -> Self {
        match error {
            FillError::Missing(names) => Self::MissingVariables(names),
            FillError::TooLarge => Self::FilledTemplateTooLarge,
        }
    }
}

#[cfg(test)]
mod tests;
