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
mod render;
mod reply;

use std::time::Instant;

use platen_shared::{
    endpoint::Endpoint, key::ApiKey, limits, link::PATH as LINKS, openapi, request::RenderRequest,
};
use platen_spin::{
    body::{self, BodyError, IncomingBody},
    media_type,
};
use platen_statements::attempts::{KeyOrLink, KeyPurpose};
use spin_sdk::wasip3::{
    self,
    exports::http::handler::Guest,
    http::types::{ErrorCode, Fields, Method, Request, Response},
};

use crate::api_error::ApiError;
use claim::{authenticate, claim};
use context::RequestContext;
use failure::Failure;
use farm::Settings;
use render::render;
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
