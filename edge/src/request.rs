//! The way from a request to its response: `auth → parse → claim → forward → relay`.
//!
//! Invariant: [`respond`] takes these steps in this order. The body is not read before the key is known to have been valid within
//! the last hour. A render takes one statement before it is forwarded, or none if its attempt was claimed ahead, one more if its key
//! was not known, and one more if the farm needs the files of its template. The address of a link is checked in place of a key and a
//! body ([`link`]). Every response has the request id, and every request
//! writes one line to the access log.

mod ahead;
mod attempt_end;
mod attempt_log;
mod claim;
mod context;
mod failure;
mod farm;
mod link;
mod log;
mod reply;

use std::time::Instant;

use platen_shared::{
    endpoint::Endpoint,
    file_name,
    job::RenderJob,
    key::ApiKey,
    limits,
    link::PATH as LINKS,
    openapi,
    request::{RenderRequest, SavedTemplate},
};
use platen_spin::{
    body::{self, BodyError, IncomingBody},
    database::Database,
    media_type, platform,
};
use platen_statements::{
    attempts::{Claim, ClaimedTemplate, KeyOrLink, KeyPurpose},
    template_files,
};
use spin_sdk::wasip3::{
    self,
    exports::http::handler::Guest,
    http::types::{ErrorCode, Fields, Method, Request, Response},
};

use crate::api_error::ApiError;
use attempt_end::{end_attempt, refund};
use claim::{authenticate, claim, no_answer, too_late};
use context::RequestContext;
use failure::Failure;
use farm::{FarmFile, Settings};
use reply::Reply;

/// `platen up` passes bodies up to this size on when they are complete.
const MAX_RECEIVED_BODY_BYTES: usize = 1024 * 1024;

struct Edge;
wasip3::http::service::export!(Edge);

impl Guest for Edge {
    async fn handle(request: Request) -> Result<Response, ErrorCode> {
        let headers = request.get_headers();
        let mut context = RequestContext::new(&headers);
        let route = route(&request);
        let mut body = IncomingBody::of(request, &headers);
        let reply = match route {
            Ok(Route::Document) => reply::document(&context),
            Ok(Route::Link { target, is_head }) => {
                match link::respond(&target, is_head, &mut context).await {
                    Ok(answer) => reply::link(answer, &context),
                    Err(failure) => fail(failure, &mut context),
                }
            }
            Ok(Route::Render(endpoint)) => match respond(endpoint, &mut body, &headers, &mut context).await {
                Ok(file) => reply::file(file, &context),
                Err(failure) => fail(failure, &mut context),
            },
            Err(error) => fail(error.into(), &mut context),
        };
        context.background.idle().await;
        body.discard(&context.background);
        context.finish(reply.response.get_status_code(), reply.transfer);
        Ok(reply.response)
    }
}

fn fail(failure: Failure, context: &mut RequestContext) -> Reply {
    let reply = reply::error(&failure.error, context);
    context.failed(failure);
    reply
}

async fn respond(
    endpoint: Endpoint,
    body: &mut IncomingBody,
    headers: &Fields,
    context: &mut RequestContext,
) -> Result<reply::File, Failure> {
    context.log.endpoint = Some(endpoint.name());

    // auth
    let key = ApiKey::from_authorization(&headers.get("authorization")).ok_or(ApiError::InvalidKey)?;

    let settings = Settings::get().await;
    if let Ok(settings) = settings {
        context.set_render_timeout(settings.render_timeout);
    }

    if !claim::was_valid(&key, context) {
        authenticate(KeyOrLink::Key(&key), KeyPurpose::Any, context).await?;
    }

    // parse
    let request = match parse(endpoint, body, headers, context).await {
        Ok(request) => request,
        // An invalid key has precedence over an invalid body, and only the database can tell whether a key is still valid.
        Err(failure) => {
            if !context.is_key_checked {
                authenticate(KeyOrLink::Key(&key), KeyPurpose::Any, context).await?;
            }
            claim::reject(KeyOrLink::Key(&key), endpoint.name(), context);
            return Err(failure);
        }
    };

    // claim
    let settings = settings.map_err(Failure::internal)?;
    let caller = KeyOrLink::Key(&key);
    let claim = claim(caller, endpoint.name(), &request, settings.claim_ahead, context).await?;
    render(settings, request, &claim, context).await
}

/// Renders a request whose attempt was claimed.
async fn render(
    settings: &Settings,
    request: RenderRequest,
    claim: &Claim,
    context: &mut RequestContext,
) -> Result<reply::File, Failure> {
    // forward
    let file = match forward(settings, request, claim, context).await {
        Ok(file) => file,
        Err(failure) => {
            if failure.error.is_counted() {
                end_attempt(claim, context).await;
            } else {
                refund(claim, &failure, context).await;
            }
            return Err(failure);
        }
    };
    end_attempt(claim, context).await;

    // relay
    if let Some(attempt) = &mut context.attempt {
        attempt.bytes = file.body.length();
    }
    Ok(file)
}

/// What a request is for.
enum Route {
    Render(Endpoint),
    /// The `OpenAPI` document.
    Document,
    /// An address of a link: the request target.
    Link {
        target: String,
        is_head: bool,
    },
}

fn route(request: &Request) -> Result<Route, ApiError> {
    let target = request.get_path_with_query().unwrap_or_default();
    let path = target.split('?').next().unwrap_or_default();
    let is_link = path.starts_with(LINKS);
    if is_link || path == openapi::PATH {
        let is_head = match request.get_method() {
            Method::Get => false,
            Method::Head => true,
            _ => return Err(ApiError::MethodNotAllowed { allowed: "GET, HEAD" }),
        };
        return Ok(if is_link { Route::Link { target, is_head } } else { Route::Document });
    }
    let endpoint = Endpoint::of_path(path).ok_or(ApiError::NotFound)?;
    match request.get_method() {
        Method::Post => Ok(Route::Render(endpoint)),
        _ => Err(ApiError::MethodNotAllowed { allowed: "POST" }),
    }
}

/// Checks content type, encoding, size and content of the body, in this order.
async fn parse(
    endpoint: Endpoint,
    body: &mut IncomingBody,
    headers: &Fields,
    context: &mut RequestContext,
) -> Result<RenderRequest, Failure> {
    if !media_type::is_of_type(&headers.get("content-type"), "application/json") {
        return Err(ApiError::UnsupportedContentType.into());
    }
    if !body::is_identity(&headers.get("content-encoding")) {
        return Err(ApiError::UnsupportedContentEncoding.into());
    }
    let began = Instant::now();
    let bytes = body.read(limits::MAX_BODY_BYTES).await;
    // A server that says how long the request has waited has received the whole of a small body.
    let is_small = bytes.as_ref().is_ok_and(|bytes| bytes.len() <= MAX_RECEIVED_BODY_BYTES);
    if !is_small || context.age.is_none() {
        context.deadline.add_body_time(began.elapsed());
    }
    let bytes = bytes.map_err(|error| match error {
        BodyError::TooLarge => ApiError::BodyTooLarge,
        BodyError::Incomplete => ApiError::BodyIncomplete,
    })?;
    Ok(RenderRequest::parse(endpoint, &bytes).map_err(ApiError::from)?)
}

async fn forward(
    settings: &Settings,
    request: RenderRequest,
    claim: &Claim,
    context: &mut RequestContext,
) -> Result<reply::File, Failure> {
    // Decompressed after the claim, where a damaged template fails as an attempt that is refunded.
    let markup = claim.template.as_ref().map(ClaimedTemplate::html).transpose().map_err(Failure::internal)?;
    let template = claim.template.as_ref().zip(markup.as_deref());
    let (file_name, template_name) =
        (request.file_name.clone(), template.map(|(saved, _)| saved.name.as_str()));
    let template = template.map(|(saved, html)| SavedTemplate {
        html,
        language: saved.language,
        options: &saved.options,
    });
    let mut job = request.into_job(claim.account.clone(), template).map_err(ApiError::from)?;
    let format = job.options.output.format();
    if let Some(attempt) = &mut context.attempt {
        attempt.format = format.extension();
    }
    if let Some(template) = &claim.template {
        job.add_template_files(template.files.assets());
    }
    if context.deadline.is_too_close(Instant::now()) {
        return Err(too_late());
    }
    let mut file = farm::render(settings, &job, context.deadline.at(), context).await?;
    if file.is_none() {
        add_contents(&mut job, context).await?;
        file = farm::render(settings, &job, context.deadline.at(), context).await?;
    }
    let FarmFile { body, page, .. } = file.ok_or_else(|| Failure::internal(ContentsRefused))?;
    let disposition = file_name::content_disposition(&[file_name.as_deref(), template_name], format);
    if let Some(attempt) = &mut context.attempt {
        (attempt.page_errors, attempt.failed_requests) = (Some(page.errors), Some(page.failed_requests));
        attempt.page_host = page.host();
    }
    Ok(reply::File { format, disposition, body, page })
}

/// The farm asked for contents that it was sent.
#[derive(Debug, thiserror::Error)]
#[error("the farm asked again for the files of the template")]
struct ContentsRefused;

/// Adds the contents of the files of the template. One that is gone or damaged is an internal error.
async fn add_contents(job: &mut RenderJob, context: &RequestContext) -> Result<(), Failure> {
    let hashes: Vec<_> = job.template_files().map(|(hash, _)| hash.clone()).collect();
    let contents = template_files::contents(&Database, &job.account, &hashes);
    let contents = platform::timeout(context.deadline.time_left(Instant::now()), contents).await;
    let contents = contents.ok_or_else(no_answer)?.map_err(|error| Failure::database(&error))?;
    job.set_contents(&contents).map_err(Failure::internal)
}
