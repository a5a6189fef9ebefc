//! The component itself: the way of one request, `auth → parse → claim → forward → relay`.
//!
//! Invariant: every step of that way stands in [`answer`], in that order, and whatever happens one
//! log line is written and every answer carries its request id.

mod attempt;
mod database;
mod farm;
mod log;
mod reply;
mod settings;

use std::{error::Error, time::Instant};

use platen_component::{
    body::{self, BodyError},
    platform,
};
use platen_shared::{key::ApiKey, limits};
use platen_statements::attempts::{Claim, ClaimedTemplate, KeyPurpose};
use spin_sdk::wasip3::{
    self,
    exports::http::handler::Guest,
    http::types::{ErrorCode, Fields, Method, Request, Response},
};

use crate::{
    api_error::ApiError,
    credentials,
    quota::{QuotaMonth, Usage},
    request::{Endpoint, RenderRequest, Subject},
};
use attempt::Attempt;
use database::Database;
use farm::Trace;
use log::Record;
use settings::Settings;

struct Edge;
wasip3::http::service::export!(Edge);

impl Guest for Edge {
    async fn handle(request: Request) -> Result<Response, ErrorCode> {
        let started = Instant::now();
        let headers = request.get_headers();
        let trace = Trace::of(&headers);
        let mut record = Record::new(&trace);
        let (mut standing, mut attempt) = (None, None);
        let answer = answer(request, &headers, &trace, &mut record, &mut standing, &mut attempt).await;
        let answer = answer.map_err(|failure| {
            record.failed(&failure.error, failure.cause);
            failure.error
        });
        let response = reply::response(answer, &trace, standing.as_ref());
        record.write(response.get_status_code(), started.elapsed());
        if let Some(attempt) = attempt {
            attempt.write_later(response.get_status_code(), started);
        }
        Ok(response)
    }
}

/// Why a request was not answered with a file, and what only the log may say of it.
struct Failure {
    error: ApiError,
    cause: Option<String>,
}

impl<E: Into<ApiError>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self { error: error.into(), cause: None }
    }
}

impl Failure {
    fn internal<E: Error + 'static>(cause: E) -> Self {
        Self { error: ApiError::Internal, cause: Some(with_sources(&cause)) }
    }
}

/// An error with all that caused it, for the log.
fn with_sources(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}

/// Where an account stands, for the `ratelimit` fields of an answer to a good key.
struct Standing {
    usage: Usage,
    month: QuotaMonth,
}

async fn answer(
    request: Request,
    headers: &Fields,
    trace: &Trace,
    record: &mut Record,
    standing: &mut Option<Standing>,
    attempt: &mut Option<Attempt>,
) -> Result<reply::File, Failure> {
    let path = request.get_path_with_query().unwrap_or_default();
    let path = path.split('?').next().unwrap_or_default();
    let endpoint = Endpoint::of_path(path).ok_or(ApiError::NotFound)?;
    record.endpoint(endpoint);
    if !matches!(request.get_method(), Method::Post) {
        return Err(ApiError::MethodNotAllowed.into());
    }
    let key = credentials::api_key(&headers.get("authorization")).ok_or(ApiError::InvalidKey)?;
    let month = QuotaMonth::at(platform::now());

    let parsed = match parse(endpoint, request, headers).await {
        Ok(parsed) => parsed,
        // A bad key outranks a bad body, and only the database knows a bad key.
        Err(error) => {
            check_key(&key, month, record, standing).await?;
            return Err(error.into());
        }
    };

    let settings = Settings::get().await.map_err(Failure::internal)?;
    let database = Database::open().await.map_err(Failure::internal)?;
    let claimed = Instant::now();
    let now = month.now;
    let claim = claim(&database, &key, &parsed, month, record, standing).await?;
    let format = parsed.format();
    let attempt = attempt.insert(Attempt::begin(
        &trace.request_id,
        &key,
        &claim.account,
        endpoint,
        format.extension(),
        now,
    ));
    let outcome = async {
        let template = claim.template.as_ref();
        let disposition = parsed.content_disposition(template.map(|template| template.name.as_str()));
        // Here, and not where it was read: a damaged one must not cost an attempt.
        let markup = template.map(ClaimedTemplate::html).transpose().map_err(Failure::internal)?;
        let job = parsed.into_job(claim.account.clone(), markup.as_deref()).map_err(ApiError::from)?;
        let left = settings.deadline.saturating_sub(claimed.elapsed());
        let body = farm::render(settings, &job, left, trace, record).await?;
        attempt.entry.bytes = body.declared_length();
        Ok(reply::File { format, disposition, body })
    }
    .await;
    if let Err(Failure { error, .. }) = &outcome
        && !error.is_counted()
    {
        match database.refund(&claim).await {
            Ok(()) => {
                attempt.entry.counted = false;
                if let Some(standing) = standing {
                    standing.usage.attempts = standing.usage.attempts.saturating_sub(1);
                }
            }
            Err(cause) => record.refund_failed(&cause),
        }
    }
    outcome
}

/// Content type, size and content of the body, in that order.
async fn parse(endpoint: Endpoint, request: Request, headers: &Fields) -> Result<RenderRequest, ApiError> {
    if !body::is_of_type(&headers.get("content-type"), "application/json") {
        return Err(ApiError::ContentType);
    }
    let bytes = body::read(request, headers, limits::BODY_BYTES).await.map_err(|error| match error {
        BodyError::TooLarge => ApiError::BodyTooLarge,
        BodyError::Incomplete => ApiError::BodyIncomplete,
    })?;
    Ok(RenderRequest::parse(endpoint, &bytes)?)
}

/// Whether the key belongs to somebody, so that another error may be told.
async fn check_key(
    key: &ApiKey,
    month: QuotaMonth,
    record: &mut Record,
    standing: &mut Option<Standing>,
) -> Result<(), Failure> {
    let database = Database::open().await.map_err(Failure::internal)?;
    let found = database.key_status(key, &month, KeyPurpose::Any).await.map_err(Failure::internal)?;
    let found = found.ok_or(ApiError::InvalidKey)?;
    record.account(&found.account);
    *standing = Some(Standing { usage: Usage { attempts: found.attempts, quota: found.quota }, month });
    Ok(())
}

/// Records the attempt, or finds out why it cannot be recorded.
async fn claim(
    database: &Database,
    key: &ApiKey,
    request: &RenderRequest,
    month: QuotaMonth,
    record: &mut Record,
    standing: &mut Option<Standing>,
) -> Result<Claim, Failure> {
    // A second round is needed only if the quota was raised, or an attempt given back, between
    // the claim that failed and the look at why.
    for _ in 0..2 {
        if let Some(claim) = database.claim(key, &month, request).await.map_err(Failure::internal)? {
            record.account(&claim.account);
            let usage = Usage { attempts: claim.attempts, quota: claim.quota };
            *standing = Some(Standing { usage, month });
            return Ok(claim);
        }
        let purpose = match &request.subject {
            Subject::Template { id, .. } => KeyPurpose::Template(id),
            Subject::Source(_) => KeyPurpose::Source,
        };
        let found = database.key_status(key, &month, purpose).await.map_err(Failure::internal)?;
        let found = found.ok_or(ApiError::InvalidKey)?;
        record.account(&found.account);
        let usage = Usage { attempts: found.attempts, quota: found.quota };
        *standing = Some(Standing { usage, month: month.clone() });
        if let Subject::Template { variables, .. } = &request.subject {
            let placeholders = found.placeholders.ok_or(ApiError::TemplateNotFound)?;
            let missing: Vec<String> =
                placeholders.into_iter().filter(|name| !variables.contains_key(name)).collect();
            if !missing.is_empty() {
                return Err(
                    ApiError::Invalid(crate::request::InvalidRequest::MissingVariables(missing)).into()
                );
            }
        }
        if usage.quota.is_some_and(|quota| usage.attempts >= quota) {
            break;
        }
    }
    Err(ApiError::QuotaExhausted { retry_after: month.seconds_left }.into())
}
