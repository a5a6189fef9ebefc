//! The fields that both endpoints share, and those of them that a template keeps as its options.
//!
//! Invariant: the options of a template are valid with its own format. What a request changes is checked when both are
//! merged.

use std::fmt;

use serde::{Deserialize as _, Serialize, Serializer};
use serde_json::{Value, value::RawValue};

use crate::{
    format::{OutputFormat, PaperSize, WaitUntil},
    job::{
        Animations, ColorScheme, DeviceScaleFactor, Environment, MediaType, Output, PdfScale, RenderOptions,
        Selector, Side, StyleText, Viewport, WaitMs,
    },
    limits, template,
};

use super::{
    document_fields::DocumentFields,
    field_name::FieldName,
    image_fields::ImageFields,
    invalid::InvalidRequest,
    object::Object,
    pdf_fields::{FirstPdfFields, PdfFields},
};

/// The values of the fields that both endpoints share.
pub(super) struct SharedFields {
    pub(super) file_name: Option<String>,
    pub(super) format: Option<OutputFormat>,
    pdf: PdfFields,
    image: ImageFields,
    width: Option<Side>,
    /// With the default width.
    viewport: Viewport,
    environment: Environment,
    css: Option<StyleText>,
    wait_until: WaitUntil,
    wait_for_timeout: WaitMs,
    wait_for_selector: Option<Selector>,
    fail_on_http_status: bool,
    animations: Animations,
    scroll: bool,
    document: DocumentFields,
}

impl SharedFields {
    /// Reads the fields in the order of the contract.
    pub(super) fn read(object: &Object<'_>) -> Result<Self, InvalidRequest> {
        let field = |name| object.field(name);
        let boolean = |name| Ok(field(name).boolean()?.unwrap_or_default());
        let format = field(FieldName::Format).choice(OutputFormat::NAMES, OutputFormat::parse)?;
        let pdf = FirstPdfFields {
            paper: field(FieldName::PdfFormat).choice(PaperSize::NAMES, PaperSize::parse)?,
            print_background: boolean(FieldName::PrintBackground)?,
            scale: field(FieldName::Scale)
                .number("number", limits::PDF_SCALE_RANGE, |scale| PdfScale::try_from(scale).ok())?,
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
        let pdf = PdfFields::read(object, pdf)?;
        let image = ImageFields::read(object, full_page)?;
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
        Ok(Self {
            file_name,
            format,
            pdf,
            image,
            width,
            viewport: Viewport { mobile: boolean(FieldName::Mobile)?, ..viewport },
            environment: Environment { java_script, user_agent, ..environment },
            css,
            wait_until,
            wait_for_timeout,
            wait_for_selector,
            fail_on_http_status: boolean(FieldName::FailOnHttpStatus)?,
            animations,
            scroll,
            document: DocumentFields::read(object)?,
        })
    }

    /// Checks what no options of a template can make valid.
    pub(super) fn check_conflicts(&self) -> Result<(), InvalidRequest> {
        self.pdf.check_conflicts()?;
        self.check()?;
        self.format.map_or(Ok(()), |format| self.check_format(format))
    }

    fn check(&self) -> Result<(), InvalidRequest> {
        self.image.check()?;
        self.document.check(self.pdf.has_scale, self.environment.java_script)
    }

    fn check_format(&self, format: OutputFormat) -> Result<(), InvalidRequest> {
        self.image.check_format(format)?;
        self.document.check_format(format)
    }

    /// The options, with all defaults filled in.
    pub(super) fn into_options(self) -> Result<RenderOptions, InvalidRequest> {
        let format = self.format.unwrap_or(OutputFormat::DEFAULT);
        self.pdf.check()?;
        self.check()?;
        self.check_format(format)?;
        let wait_for_function = self.document.wait_for_function.clone();
        let (output, default_width) = match format {
            OutputFormat::Pdf => {
                let pdf = self.document.add_to(self.pdf.into_options());
                let width = pdf.content_width();
                (Output::Pdf(Box::new(pdf)), width)
            }
            OutputFormat::Image(format) => {
                (Output::Image(self.image.into_options(format)), self.viewport.width)
            }
        };
        let options = RenderOptions {
            viewport: Viewport { width: self.width.unwrap_or(default_width), ..self.viewport },
            environment: self.environment,
            css: self.css,
            wait_until: self.wait_until,
            wait_for_timeout: self.wait_for_timeout,
            wait_for_selector: self.wait_for_selector,
            wait_for_function,
            fail_on_http_status: self.fail_on_http_status,
            animations: self.animations,
            scroll: self.scroll,
            output,
        };
        match options.check() {
            Ok(()) => Ok(options),
            Err(error) => Err(InvalidRequest::options(error, &options.output)),
        }
    }
}

/// The options of a template: a JSON object of fields of a request. They are written with the fields in the order of the
/// contract and without spaces.
#[derive(Clone, PartialEq, Eq)]
pub struct TemplateOptions(String);

impl TemplateOptions {
    /// Reads a JSON object.
    ///
    /// # Errors
    /// The first rule that it breaks, as in a request.
    pub fn parse(json: &[u8]) -> Result<Self, InvalidRequest> {
        let object = Object::read(&FieldName::of_template().collect::<Vec<_>>(), json)?;
        SharedFields::read(&object)?.into_options()?;
        Ok(Self::of(&object))
    }

    /// Those that were written by [`as_json`](Self::as_json); `None` if there are other fields among them.
    #[must_use]
    pub fn stored(json: String) -> Option<Self> {
        let is_known = Object::read(&FieldName::of_template().collect::<Vec<_>>(), json.as_bytes()).is_ok();
        is_known.then_some(Self(json))
    }

    /// Those of a request, which are not checked together. Equal options have the same text.
    pub(super) fn of(object: &Object<'_>) -> Self {
        let field = |name: FieldName| {
            let json = object.value(name)?.get();
            let value =
                serde_json::from_str(json).map_or_else(|_| json.to_owned(), |it: Value| it.to_string());
            Some(format!("\"{name}\":{value}"))
        };
        let fields: Vec<String> = FieldName::options().filter_map(field).collect();
        Self(format!("{{{}}}", fields.join(",")))
    }

    /// As a JSON object.
    #[must_use]
    pub fn as_json(&self) -> &str {
        &self.0
    }

    /// The options in JSON with one field on each line, to be read and compared.
    #[must_use]
    pub fn lines(&self) -> String {
        let object = self.object();
        let field = |name: FieldName| Some(format!("  \"{name}\": {}", object.value(name)?.get()));
        let fields: Vec<String> = FieldName::of_template().filter_map(field).collect();
        if fields.is_empty() { "{}\n".to_owned() } else { format!("{{\n{}\n}}\n", fields.join(",\n")) }
    }

    /// The format of the file; `None` if they name none.
    #[must_use]
    pub fn format(&self) -> Option<OutputFormat> {
        self.object().field(FieldName::Format).choice(OutputFormat::NAMES, OutputFormat::parse).ok().flatten()
    }

    /// The names of the placeholders in a field; see [`template::placeholders`].
    #[must_use]
    pub fn placeholders(&self, field: FieldName) -> Vec<String> {
        let text = self.object().field(field).string().ok().flatten();
        text.map(|text| template::placeholders(&text)).unwrap_or_default()
    }

    /// The fields.
    pub fn fields(&self) -> impl Iterator<Item = FieldName> + use<> {
        self.object().names().collect::<Vec<_>>().into_iter()
    }

    /// The options of a request with these fields for a template with `template`.
    ///
    /// # Errors
    /// The first rule that they break together.
    pub(super) fn over(&self, template: &Self) -> Result<RenderOptions, InvalidRequest> {
        let (given, of_template) = (self.object(), template.object());
        let format = self.format().or(template.format()).unwrap_or(OutputFormat::DEFAULT);
        let is_added = |field: FieldName| {
            of_template.value(field).is_some()
                && field.spec().formats.include(format)
                && !given.names().any(|name| name.replaces(field))
        };
        let mut merged = given.clone();
        for field in FieldName::of_template().filter(|field| is_added(*field)) {
            merged.set(field, of_template.value(field));
        }
        SharedFields::read(&merged)
            .and_then(SharedFields::into_options)
            .map_err(|error| error.with_options_of(is_added))
    }

    fn object(&self) -> Object<'_> {
        let read = Object::read(&FieldName::options().collect::<Vec<_>>(), self.0.as_bytes());
        read.unwrap_or_default()
    }
}

impl Default for TemplateOptions {
    fn default() -> Self {
        Self("{}".to_owned())
    }
}

impl fmt::Debug for TemplateOptions {
    /// Shows the names of the fields only, because those of a request can have passwords.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.fields().map(FieldName::as_str)).finish()
    }
}

impl Serialize for TemplateOptions {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        <&RawValue>::deserialize(&mut serde_json::Deserializer::from_str(&self.0))
            .map_err(serde::ser::Error::custom)?
            .serialize(serializer)
    }
}
