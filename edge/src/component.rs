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

use std::time::Instant;

use platen_component::{
    body::{self, BodyError},
    database::Database,
};
use platen_shared::{key::ApiKey, limits};
use platen_statements::attempts::{
    self, Attempt, Claim, ClaimedTemplate, KeyPurpose, KeyStatus, PresentedKey,
};
use spin_sdk::wasip3::{
    self,
    exports::http::handler::Guest,
    http::types::{ErrorCode, Fields, Method, Request, Response},
};

use crate::{
    api_error::ApiError,
    credentials,
    endpoint::Endpoint,
    quota::{QuotaMonth, Usage},
    request::{InvalidRequest, RenderRequest, Subject},
};
use context::RequestContext;
use failure::Failure;
use settings::Settings;

struct Edge;
wasip3::http::service::export!(Edge);

impl Guest for Edge {
    async fn handle(request: Request) -> Result<Response, ErrorCode> {
        let headers = request.get_headers();
        let mut context = RequestContext::new(&headers);
        let response = match respond(request, &headers, &mut context).await {
            Ok(file) => reply::file(file, &context),
            Err(failure) => {
                let response = reply::error(&failure.error, &context);
                context.log.failed(failure);
                response
            }
        };
        context.finish(response.get_status_code());
        Ok(response)
    }
}

async fn respond(
    request: Request,
    headers: &Fields,
    context: &mut RequestContext,
) -> Result<reply::File, Failure> {
    let endpoint = route(&request)?;
    context.log.endpoint = Some(endpoint);

    // auth
    let key = credentials::api_key(&headers.get("authorization")).ok_or(ApiError::InvalidKey)?;

    // parse
    let request = match parse(endpoint, request, headers).await {
        Ok(request) => request,
        // An invalid key has precedence over an invalid body, and only the database can tell whether a key is valid.
        Err(error) => {
            let database = Database::open().await.map_err(Failure::internal)?;
            authenticate(&database, &key, KeyPurpose::Any, context).await?;
            return Err(error.into());
        }
    };

    // claim
    let settings = Settings::get().await.map_err(Failure::internal)?;
    let database = Database::open().await.map_err(Failure::internal)?;
    let deadline = Instant::now() + settings.render_timeout;
    let claim = claim(&database, &key, &request, context).await?;
    let format = request.format();
    let disposition = request.content_disposition(claim.template.as_ref().map(|it| it.name.as_str()));
    context.attempt = Some(Attempt {
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
                refund(&database, &claim, context).await;
            }
            return Err(failure);
        }
    };

    // relay
    if let Some(attempt) = &mut context.attempt {
        attempt.bytes = body.declared_length();
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
async fn parse(endpoint: Endpoint, request: Request, headers: &Fields) -> Result<RenderRequest, ApiError> {
    if !body::is_of_type(&headers.get("content-type"), "application/json") {
        return Err(ApiError::ContentType);
    }
    let bytes = body::read(request, headers, limits::MAX_BODY_BYTES).await.map_err(|error| match error {
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
    database: &Database,
    key: &ApiKey,
    purpose: KeyPurpose<'_>,
    context: &mut RequestContext,
) -> Result<KeyStatus, Failure> {
    let found = attempts::key_status(database, presented(key, &context.month), purpose).await;
    let found = found.map_err(Failure::internal)?.ok_or(ApiError::InvalidKey)?;
    context.authenticated(&found.account, Usage { attempts: found.attempts, quota: found.quota });
    Ok(found)
}

/// Records the attempt, or finds the reason why the database refuses it.
async fn claim(
    database: &Database,
    key: &ApiKey,
    request: &RenderRequest,
    context: &mut RequestContext,
) -> Result<Claim, Failure> {
    let template = match &request.subject {
        Subject::Source(_) => None,
        Subject::Template { id, variables } => Some((id, variables)),
    };
    // The second iteration is needed only if the quota was raised, or an attempt refunded, between the
    // refused claim and the look-up of the reason.
    for _ in 0..2 {
        let claim = attempts::claim(database, presented(key, &context.month), template).await;
        if let Some(claim) = claim.map_err(Failure::internal)? {
            context.authenticated(&claim.account, Usage { attempts: claim.attempts, quota: claim.quota });
            return Ok(claim);
        }
        match template {
            None => drop(authenticate(database, key, KeyPurpose::Source, context).await?),
            Some((id, variables)) => {
                let found = authenticate(database, key, KeyPurpose::Template(id), context).await?;
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

async fn refund(database: &Database, claim: &Claim, context: &mut RequestContext) {
    match attempts::refund(database, claim).await {
        Ok(()) => context.refunded(),
        Err(cause) => context.log.refund_error = Some(cause.to_string()),
    }
}
