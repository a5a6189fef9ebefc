//! The header and the footer of a PDF in the form that Chromium prints.
//!
//! Chromium puts the texts of both into elements of one document, so their `html` and `body` elements are lost, and styles
//! of one apply to the other. Here a text is read as a document whose `html` and `body` become elements of other names, and its
//! styles get a scope. Chromium's parsers do both, in the empty document before the job's page, which has no names and no
//! policy of the page.

use chromiumoxide_cdp::cdp::js_protocol::runtime::EvaluateParams;
use platen_cdp::Session;
use platen_shared::{
    job::{HeaderHtml, Output, RenderOptions},
    refusal::Refusal,
};
use serde_json::{from_value, json};

use crate::error::JobError;

/// The default style, which every rule of a template overrides. Chromium's own font has one pixel, also that of the root
/// element, which no template has; and generic families are those of the system. The elements are laid out as if the
/// content were in Chromium's header itself.
const STYLE: &str = "<style>:root { font-size: 16px }\
    :where(#header, #footer) { font: 10px Arial, \"Liberation Sans\", sans-serif }\
    :where(platen-html, platen-body) { display: flex; flex: auto; align-self: stretch; align-items: inherit;\
    min-width: 0 }</style>";
/// Converts texts to templates.
const CONVERT: &str = concat!("(", include_str!("convert_headers.js"), ")");

/// Text of a size that no other text has, before everything that a template draws: what is before it in the content of a page
/// is the page's own. The templates of a job with another first page have it.
const MARK: &str = "<i style='all: initial !important; position: absolute !important; z-index: -2147483648 !important;\
    white-space: pre !important; font: 1.37px Arial, \"Liberation Sans\" !important'>        </i>";
/// The size of the font of [`MARK`].
pub(super) const MARK_SIZE: f32 = 1.37;

/// The `id` of Chromium's element around a header.
const HEADER: &str = "header";
/// The `id` of Chromium's element around a footer.
const FOOTER: &str = "footer";

/// The templates of the headers and footers of a job, each with its element and its text. That of an empty text is not
/// empty, because Chromium would print its own.
#[derive(Debug)]
pub(super) struct HeaderTemplates(Vec<((&'static str, String), String)>);

impl HeaderTemplates {
    /// The template of a header of the job, or of none.
    pub(super) fn header(&self, html: Option<&HeaderHtml>) -> Option<String> {
        self.template(HEADER, html).map(|template| format!("{STYLE}{template}"))
    }

    /// The template of a footer of the job, or of none.
    pub(super) fn footer(&self, html: Option<&HeaderHtml>) -> Option<String> {
        self.template(FOOTER, html).cloned()
    }

    fn template(&self, element: &'static str, html: Option<&HeaderHtml>) -> Option<&String> {
        let text = html.map_or("", HeaderHtml::as_str);
        self.0.iter().find(|((its, known), _)| *its == element && known == text).map(|(_, template)| template)
    }
}

/// The headers and footers of a job, each with its element.
pub(super) fn texts(options: &RenderOptions) -> Vec<(&'static str, &str)> {
    let Output::Pdf(pdf) = &options.output else { return Vec::new() };
    let of_job = [
        (HEADER, &pdf.header),
        (FOOTER, &pdf.footer),
        (HEADER, &pdf.first_header),
        (FOOTER, &pdf.first_footer),
    ];
    of_job.into_iter().filter_map(|(element, html)| Some((element, html.as_ref()?.as_str()))).collect()
}

/// Makes the templates of a job; `None` if it has neither header nor footer. The document must be empty, and have the
/// job's time zone.
///
/// # Errors
/// [`Refusal::HeaderFailed`] if a text cannot be converted.
pub(super) async fn convert(
    session: &Session,
    options: &RenderOptions,
) -> Result<Option<HeaderTemplates>, JobError> {
    let Output::Pdf(pdf) = &options.output else { return Ok(None) };
    let mut texts: Vec<_> =
        texts(options).into_iter().map(|(element, html)| (element, html.to_owned())).collect();
    if texts.is_empty() {
        return Ok(None);
    }
    texts.extend([HEADER, FOOTER].map(|element| (element, String::new())));
    // As that of markup without an address.
    let address = options.has_own_address().then_some("about:blank");
    let locale = options.environment.locale.as_ref().map_or("en-US", |locale| locale.as_str());
    let mut script =
        EvaluateParams::new(format!("{CONVERT}({}, {}, {})", json!(locale), json!(texts), json!(address)));
    script.return_by_value = Some(true);
    let converted = session.call(&script).await?.result.value;
    let templates = converted
        .and_then(|converted| from_value::<Vec<String>>(converted).ok())
        .filter(|templates| templates.len() == texts.len())
        .ok_or(JobError::Refused(Refusal::HeaderFailed))?;
    let mark = if pdf.first_header.is_some() || pdf.first_footer.is_some() { MARK } else { "" };
    let templates = templates.into_iter().map(|template| format!("{mark}{template}"));
    Ok(Some(HeaderTemplates(texts.into_iter().zip(templates).collect())))
}
