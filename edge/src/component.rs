//! The component: the lifecycle of a request, `auth → parse → claim → forward → relay`.
//!
//! Invariant: [`respond`] takes these steps in this order. A render takes one statement before it is forwarded,
//! [`attempts::claim`]; only when that returns no row does [`attempts::key_status`] find the reason. Every response
//! has the request id, and every request writes one line to the access log.

mod context;
mod failure;
mod farm;
mod log;
mod reply;
mod settings;

use std::{
    pin::pin,
    time::{Duration, Instant},
};

use futures::future::{Either, select};
use platen_component::{
    body::{self, BodyError, IncomingBody},
    database::{Database, DatabaseError},
    platform,
};
use platen_shared::{key::ApiKey, limits};
use platen_statements::attempts::{
    self, Attempt, Claim, ClaimedTemplate, KeyPurpose, KeyStatus, PresentedKey,
};
use spin_sdk::{
    time::sleep,
    wasip3::{
        self,
        exports::http::handler::Guest,
        http::types::{ErrorCode, Fields, Method, Request, Response},
    },
};

use crate::{
    api_error::ApiError,
    credentials,
    endpoint::Endpoint,
    quota::{QuotaMonth, Usage},
    request::{InvalidRequest, RenderRequest, Subject},
};
use context::{RECORDS, RequestContext};
use failure::Failure;
use settings::Settings;

/// How long a statement is repeated while the database is busy or absent.
const RETRY_TIMEOUT: Duration = Duration::from_secs(10);
const DATABASE: Database = Database::new(RETRY_TIMEOUT);
/// How long the key is looked up for a request that is refused in any case.
const KEY_STATUS_TIMEOUT: Duration = Duration::from_millis(limits::RENDER_TIMEOUT_MS);

struct Edge;
wasip3::http::service::export!(Edge);

impl Guest for Edge {
    async fn handle(request: Request) -> Result<Response, ErrorCode> {
        let headers = request.get_headers();
        let mut context = RequestContext::new(&headers);
        let endpoint = route(&request);
        let mut body = IncomingBody::of(request, &headers);
        let reply = match respond(endpoint, &mut body, &headers, &mut context).await {
            Ok(file) => reply::file(file, &context),
            Err(failure) => {
                let reply = reply::error(&failure.error, &context);
                context.log.failed(failure);
                reply
            }
        };
        context.background.idle().await;
        body.discard(&context.background);
        context.finish(reply.response.get_status_code(), reply.transfer);
        Ok(reply.response)
    }
}

async fn respond(
    endpoint: Result<Endpoint, ApiError>,
    body: &mut IncomingBody,
    headers: &Fields,
    context: &mut RequestContext,
) -> Result<reply::File, Failure> {
    let endpoint = endpoint?;
    context.log.endpoint = Some(endpoint);

    // auth
    let key = credentials::api_key(&headers.get("authorization")).ok_or(ApiError::InvalidKey)?;

    // parse
    let request = match parse(endpoint, body, headers).await {
        Ok(request) => request,
        // An invalid key has precedence over an invalid body, and only the database can tell whether a key is valid.
        Err(error) => {
            authenticate(&key, KeyPurpose::Any, context).await?;
            return Err(error.into());
        }
    };

    // claim
    let settings = Settings::get().await.map_err(Failure::internal)?;
    let deadline = Instant::now() + settings.render_timeout;
    let claim = claim(&key, &request, deadline, context).await?;
    let format = request.format();
    let disposition = request.content_disposition(claim.template.as_ref().map(|it| it.name.as_str()));
    context.attempt = Some(Attempt {
        id: 0,
        key_hash: key.hash(),
        account: claim.account.clone(),
        endpoint: endpoint.name(),
        format: format.extension(),
        status: 500,
        counted: true,
        ms: 0,
        bytes: None,
        at: context.month.now,
    });

    // forward
    let body = match forward(settings, request, &claim, deadline, context).await {
        Ok(body) => body,
        Err(failure) => {
            if !failure.error.is_counted() {
                refund(&claim, context).await;
            }
            return Err(failure);
        }
    };

    // relay
    if let Some(attempt) = &mut context.attempt {
        attempt.bytes = body.length();
    }
    Ok(reply::File { format, disposition, body })
}

fn route(request: &Request) -> Result<Endpoint, ApiError> {
    let path = request.get_path_with_query().unwrap_or_default();
    let path = path.split('?').next().unwrap_or_default();
    let endpoint = Endpoint::of_path(path).ok_or(ApiError::NotFound)?;
    if matches!(request.get_method(), Method::Post) { Ok(endpoint) } else { Err(ApiError::MethodNotAllowed) }
}

/// Checks content type, size and content of the body, in this order.
async fn parse(
    endpoint: Endpoint,
    body: &mut IncomingBody,
    headers: &Fields,
) -> Result<RenderRequest, ApiError> {
    if !body::is_of_type(&headers.get("content-type"), "application/json") {
        return Err(ApiError::ContentType);
    }
    let bytes = body.read(limits::MAX_BODY_BYTES).await.map_err(|error| match error {
        BodyError::TooLarge => ApiError::BodyTooLarge,
        BodyError::Incomplete => ApiError::BodyIncomplete,
    })?;
    Ok(RenderRequest::parse(endpoint, &bytes)?)
}

fn presented<'k>(key: &'k ApiKey, month: &'k QuotaMonth) -> PresentedKey<'k> {
    PresentedKey { key, month: &month.name, now: month.now }
}

/// Looks the key up in the database without recording an attempt.
async fn authenticate(
    key: &ApiKey,
    purpose: KeyPurpose<'_>,
    context: &mut RequestContext,
) -> Result<KeyStatus, Failure> {
    let found = attempts::key_status(&DATABASE, presented(key, &context.month), purpose);
    let found = platform::timeout(KEY_STATUS_TIMEOUT, found).await.ok_or_else(no_answer)?;
    let found = found.map_err(|error| Failure::database(&error))?.ok_or(ApiError::InvalidKey)?;
    context.authenticated(&found.account, Usage { attempts: found.attempts, quota: found.quota });
    Ok(found)
}

fn no_answer() -> Failure {
    Failure::new(ApiError::DatabaseUnavailable, "the database did not answer in time".to_owned())
}

/// Records the attempt, or finds the reason why the database refuses it.
async fn claim(
    key: &ApiKey,
    request: &RenderRequest,
    deadline: Instant,
    context: &mut RequestContext,
) -> Result<Claim, Failure> {
    let template = match &request.subject {
        Subject::Source(_) => None,
        Subject::Template { id, variables } => Some((id, variables)),
    };
    // The second iteration is needed only if the quota was raised, or an attempt refunded, between the
    // refused claim and the look-up of the reason.
    for _ in 0..2 {
        let claim = attempts::claim(DATABASE, presented(key, &context.month), template);
        let timeout = deadline.saturating_duration_since(Instant::now());
        let claim = match select(Box::pin(claim), pin!(sleep(timeout))).await {
            Either::Left((claim, _)) => claim.map_err(|error| Failure::database(&error))?,
            Either::Right(((), claim)) => {
                refund_late(claim, context);
                return Err(no_answer());
            }
        };
        if let Some(claim) = claim {
            context.authenticated(&claim.account, Usage { attempts: claim.attempts, quota: claim.quota });
            return Ok(claim);
        }
        match template {
            None => drop(authenticate(key, KeyPurpose::Source, context).await?),
            Some((id, variables)) => {
                let found = authenticate(key, KeyPurpose::Template(id), context).await?;
                let mut missing = found.placeholders.ok_or(ApiError::TemplateNotFound)?;
                missing.retain(|name| !variables.contains_key(name));
                if !missing.is_empty() {
                    return Err(ApiError::from(InvalidRequest::MissingVariables(missing)).into());
                }
            }
        }
        if context.usage.is_some_and(|usage| usage.is_exhausted()) {
            break;
        }
    }
    Err(ApiError::QuotaExhausted { retry_after: context.month.seconds_left }.into())
}

async fn forward(
    settings: &Settings,
    request: RenderRequest,
    claim: &Claim,
    deadline: Instant,
    context: &mut RequestContext,
) -> Result<farm::FileBody, Failure> {
    // Decompressed after the claim, where a damaged template fails as an attempt that is refunded.
    let markup = claim.template.as_ref().map(ClaimedTemplate::html).transpose().map_err(Failure::internal)?;
    let job = request.into_job(claim.account.clone(), markup.as_deref()).map_err(ApiError::from)?;
    farm::render(settings, &job, deadline, context).await
}

/// Takes the attempt back. If the database is not available, the response does not wait for it.
async fn refund(claim: &Claim, context: &mut RequestContext) {
    let refund = attempts::refund(RECORDS, claim);
    match select(Box::pin(refund), pin!(sleep(RETRY_TIMEOUT))).await {
        Either::Left((Err(cause), _)) => context.log.refund_error = Some(cause.to_string()),
        Either::Left((Ok(()), _)) => context.refunded(),
        Either::Right(((), refund)) => {
            context.refunded();
            let request_id = context.trace.request_id.clone();
            context.background.run(async move {
                if let Err(cause) = refund.await {
                    log::refund_lost(&request_id, &cause);
                }
            });
        }
    }
}

/// Takes an attempt back that the database records only now, after the request has been refused.
fn refund_late(
    claim: impl Future<Output = Result<Option<Claim>, DatabaseError>> + 'static,
    context: &RequestContext,
) {
    let request_id = context.trace.request_id.clone();
    context.background.run(async move {
        let Ok(Some(claim)) = claim.await else { return };
        if let Err(cause) = attempts::refund(RECORDS, &claim).await {
            log::refund_lost(&request_id, &cause);
        }
    });
}
