//! A template in Jinja with its sample values, as a farm fills it, for the preview. No attempt is recorded.

use std::{fmt::Display, time::Duration};

use platen_shared::{
    endpoint::Endpoint,
    id::AccountId,
    job::{Output, RenderJob, Source},
    refusal::Refusal,
    request::{OPTIONS_WITH_PLACEHOLDERS, RenderRequest, SavedTemplate},
    template::Language,
    wire,
};
use platen_spin::{body, platform};
use serde_json::{Value, json, value::RawValue};
use spin_sdk::wasip3::{
    http::{
        client,
        types::{RequestOptions, Response},
    },
    wit_future,
};

use super::template_editor::entered;
use crate::{
    form::Form,
    playground::body::template_options,
    router::{
        context::Context,
        page_error::{PageError, PageResult},
        response::PageResponse,
    },
};

/// The farm ends a template after 200 ms of CPU time, and may have others to fill before.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes of a filled job as JSON. A longer page is not shown.
const MAX_BYTES: usize = 8 * 1024 * 1024;

/// Why there is nothing to show. `field` is that of the form, `line` one of its text.
#[derive(Debug, Default)]
struct Problem {
    field: Option<String>,
    line: Option<u32>,
    message: String,
}

impl Problem {
    fn of(message: impl Display) -> Self {
        Self { message: format!("{message}"), ..Self::default() }
    }
}

/// The markup and the headers and footers of a form, filled; or why they cannot be, with the line.
pub(crate) async fn filled(context: &Context<'_>, form: &Form) -> PageResult {
    let account = context.current_user()?.account.as_ref().ok_or(PageError::NoAccount)?;
    let job = match job(&account.id, form) {
        Ok(job) => job,
        Err(problem) => return Ok(of_problem(&problem)),
    };
    Ok(match platform::timeout(TIMEOUT, fill(context, &job)).await {
        Some(Ok(job)) => PageResponse::json(&texts(&job)),
        Some(Err(problem)) => of_problem(&problem),
        None => of_problem(&Problem::of("The farm did not answer in time.")),
    })
}

fn of_problem(Problem { field, line, message }: &Problem) -> PageResponse {
    PageResponse::json(&json!({ "field": field, "line": line, "error": message })).with_status(422)
}

/// The job of the template with its sample values.
fn job(account: &AccountId, form: &Form) -> Result<RenderJob, Problem> {
    let entered = entered(form);
    let data: &RawValue = serde_json::from_str(&entered.sample_data)
        .map_err(|error| Problem::of(format!("The sample values are not valid JSON: {error}.")))?;
    let options = template_options(&entered.options)
        .map_err(|problem| Problem { field: Some(problem.field), ..Problem::of(problem.message) })?;
    let body = format!(r#"{{"templateId":"-","data":{data}}}"#);
    let request = RenderRequest::parse(Endpoint::Template, body.as_bytes()).map_err(Problem::of)?;
    let template = SavedTemplate { html: &entered.html.value, language: Language::Jinja, options: &options };
    request.into_job(account.clone(), Some(template)).map_err(Problem::of)
}

async fn fill(context: &Context<'_>, job: &RenderJob) -> Result<RenderJob, Problem> {
    let no_farm = || Problem::of("The farm cannot be reached.");
    let body = serde_json::to_vec(job).map_err(Problem::of)?;
    let milliseconds = TIMEOUT.as_millis().to_string().into_bytes();
    let headers = vec![(wire::DEADLINE_MS.to_owned(), milliseconds)];
    let request = context.settings.farm.post(wire::FILL_PATH, headers, body, RequestOptions::new());
    let (request, transfer) = request.map_err(|_| no_farm())?;
    let (response, _) = futures::join!(client::send(request), transfer);
    let response = response.map_err(|_| no_farm())?;
    let status = response.get_status_code();
    let (_done, done_reader) = wit_future::new(|| Ok(()));
    let (mut contents, _trailers) = Response::consume_body(response, done_reader);
    let bytes = body::read_up_to(&mut contents, 64 * 1024, MAX_BYTES).await;
    if bytes.len() > MAX_BYTES {
        return Err(Problem::of("The filled template is too long for the preview."));
    }
    if status == 200 {
        return serde_json::from_slice(&bytes).map_err(Problem::of);
    }
    let refusal: Refusal = serde_json::from_slice(&bytes).map_err(Problem::of)?;
    Err(match &refusal {
        Refusal::TemplateFailed { field, line, .. } => {
            Problem { field: field.clone(), line: Some(*line), ..Problem::of(&refusal) }
        }
        refusal => Problem::of(refusal),
    })
}

/// The texts of a filled job by the names of their fields.
fn texts(job: &RenderJob) -> Value {
    let mut texts = json!({});
    if let Source::Html(html) = &job.source {
        texts["html"] = html.as_str().into();
    }
    if let Output::Pdf(pdf) = &job.options.output {
        let headers = [&pdf.header, &pdf.footer, &pdf.first_header, &pdf.first_footer];
        for (field, html) in OPTIONS_WITH_PLACEHOLDERS.into_iter().zip(headers) {
            if let Some(html) = html {
                texts[field.as_str()] = html.as_str().into();
            }
        }
    }
    texts
}
