//! The way from a request to its response.
//!
//! Invariant: [`route`] lists all addresses except those of static files. Every POST request has passed the
//! check of its form token before a handler runs, and [`report`] answers those that were not carried out. All
//! responses carry the headers set in [`response`]. The log holds neither paths (an invite's path is a secret) nor
//! form fields.

mod context;
mod handlers;
mod page_error;
mod report;
mod request_head;
mod response;
mod settings;

use std::time::{Duration, Instant};

use platen_shared::limits;
use platen_spin::{
    background::Background,
    body::{BodyError, IncomingBody},
    media_type, platform,
};
use spin_sdk::wasip3::{
    self,
    exports::http::handler::Guest,
    http::types::{ErrorCode, Request, Response},
};

use crate::{csrf, form::Form, pages::Layout, throttle::Subject};
use context::{Context, count_try};
use handlers::{
    audit, fill, invites, keys, links, operator, people, playground, profile, requests, retention, sign_in,
    template_editor, templates, usage,
};
use page_error::{PageError, PageResult};
use report::report;
use request_head::RequestHead;
use response::PageResponse;

struct Dashboard;
wasip3::http::service::export!(Dashboard);

/// Limit of forms without markup.
const MAX_FORM_BYTES: usize = 64 * 1024;
/// Limit of the template form: percent-encoding can triple the size of the markup, and the form also holds sample values, and
/// files in base64.
const MAX_TEMPLATE_FORM_BYTES: usize =
    3 * limits::MAX_HTML_BYTES + 2 * limits::MAX_TEMPLATE_FILE_BYTES + 1024 * 1024;

/// Longer than an upload over a slow line; it ends requests that wait for a database that does not answer. An export ends
/// if one of its statements takes as long.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(130);

impl Guest for Dashboard {
    async fn handle(request: Request) -> Result<Response, ErrorCode> {
        let started = Instant::now();
        let head = RequestHead::of(&request);
        let mut body = IncomingBody::of(request, &head.headers);
        let background = Background::start();
        let page = serve(&mut body, &head).await;
        let cause = page.cause().map(str::to_owned);
        let (response, transfer) = page.into_http(&head);
        head.log(response.get_status_code(), started.elapsed(), cause.as_deref());
        background.idle().await;
        body.discard(&background);
        background.run(async {
            _ = transfer.await;
        });
        Ok(response)
    }
}

async fn serve(body: &mut IncomingBody, head: &RequestHead) -> PageResponse {
    let bare = |error: PageError| error.to_response(Layout::default()).with_cause(error.cause());
    let segments = head.segments();
    if let ["dashboard", "assets", name] = segments[..] {
        return handlers::asset(head, name).unwrap_or_else(bare);
    }
    let now = i64::try_from(platform::now()).unwrap_or(i64::MAX);
    let mut context = match Context::begin(head, now).await {
        Ok(context) => context,
        Err(error) => return bare(error),
    };
    // Paths outside of the dashboard have no segments in it, and no page.
    let segments = segments.strip_prefix(&["dashboard"]).unwrap_or(&["", ""]);
    let mut form = Form::default();
    let answered = platform::timeout(REQUEST_TIMEOUT, answer(&mut context, body, segments, &mut form)).await;
    match answered.unwrap_or(Err(PageError::TimedOut)) {
        Ok(response) => response,
        Err(error) => report(&mut context, segments, &form, error).await,
    }
}

/// Leaves the form that was received in `form`, so that it is not lost with an error.
async fn answer(
    context: &mut Context<'_>,
    body: &mut IncomingBody,
    segments: &[&str],
    form: &mut Form,
) -> PageResult {
    let head = context.head;
    if head.is_unsupported {
        return Err(PageError::Method);
    }
    let found = context.find_user().await;
    if head.is_post {
        let (origin, fetch_site) = (head.header("origin"), head.header("sec-fetch-site"));
        if csrf::is_cross_site(origin.as_deref(), fetch_site.as_deref(), &head.host) {
            return Err(PageError::CrossSite);
        }
        if !media_type::is_of_type(&head.headers.get("content-type"), "application/x-www-form-urlencoded") {
            return Err(PageError::ContentType);
        }
        let max_bytes = max_form_bytes(context, segments, found.is_ok()).await?;
        let bytes = body.read(max_bytes).await.map_err(|error| match error {
            BodyError::TooLarge => PageError::TooLarge,
            BodyError::Incomplete => PageError::Incomplete,
        })?;
        *form = Form::parse(&bytes);
    }
    found?;
    if head.is_post {
        let is_public = matches!(segments, ["sign-in"] | ["invite", _]);
        if !is_public && context.current_user.is_none() {
            return Err(PageError::SignInFirst);
        }
        context.check_form(form)?;
    }
    route(context, segments, form).await
}

/// The limit of a form's body. Without a session, a large form is one that was submitted after the session had
/// ended, or the sign-in form that keeps it; a network address may send only a few of them.
async fn max_form_bytes(
    context: &Context<'_>,
    segments: &[&str],
    user_is_known: bool,
) -> Result<usize, PageError> {
    let is_large_form = matches!(segments, ["templates", _] | ["playground", ..] | ["sign-in"]);
    let length = context.head.header("content-length").and_then(|length| length.parse().ok());
    let is_small = length.is_some_and(|length: usize| length <= MAX_FORM_BYTES);
    if !is_large_form || is_small {
        return Ok(MAX_FORM_BYTES);
    }
    if context.current_user.is_none() && user_is_known {
        let subject = Subject::large_forms(&context.address());
        if let Some(seconds) = count_try(&context.store, &subject).await? {
            return Err(PageError::TooManyForms(seconds));
        }
    }
    let is_unknown = context.current_user.is_none() && !user_is_known && context.session_token.is_none();
    Ok(if is_unknown { MAX_FORM_BYTES } else { MAX_TEMPLATE_FORM_BYTES })
}

/// Defines [`route`], and the first segments of the paths, which the log shows.
macro_rules! routes {
    (
        ($context:ident, $segments:ident, $form:ident)
        POST { $([$post:literal $($post_rest:tt)*] => $posted:expr,)* }
        GET { $([$($get:literal $($get_rest:tt)*)?] => $page:expr,)* }
    ) => {
        const SECTIONS: &[&str] = &["assets", $($post,)* $($($get,)?)*];

        async fn route($context: &Context<'_>, $segments: &[&str], $form: &Form) -> PageResult {
            if $context.head.is_post {
                match $segments {
                    $([$post $($post_rest)*] => $posted,)*
                    _ => Err(PageError::NotFound),
                }
            } else {
                match $segments {
                    $([$($get $($get_rest)*)?] => $page,)*
                    _ => Err(PageError::NotFound),
                }
            }
        }
    };
}

routes! {
    (context, segments, form)
    POST {
        ["sign-in"] => sign_in::sign_in(context, form).await,
        ["invite", token] => sign_in::accept_invite(context, token, form).await,
        ["sign-out"] => sign_in::sign_out(context).await,
        ["theme"] => profile::set_theme(context, form),
        ["you", "password"] => profile::change_password(context, form).await,
        ["you", "sessions", "end-others"] => profile::end_other_sessions(context).await,
        ["you", "sessions", id, "end"] => profile::end_session(context, id).await,
        ["keys"] => keys::create(context, form).await,
        ["keys", id, "name"] => keys::rename(context, id, form).await,
        ["keys", id, "expiry"] => keys::set_expiry(context, id, form).await,
        ["keys", id, "roll"] => keys::roll(context, id, form).await,
        ["keys", id, "disable"] => keys::set_disabled(context, id, true).await,
        ["keys", id, "enable"] => keys::set_disabled(context, id, false).await,
        ["keys", id, "delete"] => keys::delete(context, id).await,
        ["links", id] => links::sign(context, id, form).await,
        ["links", id, "settings"] => links::change(context, id, form).await,
        ["links", id, "roll"] => links::roll(context, id, form).await,
        ["links", id, "disable"] => links::set_disabled(context, id, true).await,
        ["links", id, "enable"] => links::set_disabled(context, id, false).await,
        ["links", id, "delete"] => links::delete(context, id).await,
        ["templates", "new"] => template_editor::create(context, form).await,
        ["templates", id] => template_editor::save(context, id, form).await,
        ["templates", id, "links"] => links::create(context, id, form).await,
        ["templates", id, "duplicate"] => templates::duplicate(context, id).await,
        ["templates", id, "delete"] => templates::delete(context, id).await,
        ["templates", id, "versions", number, "restore"] => templates::restore(context, id, number).await,
        ["playground"] => playground::show(context, form).await,
        ["playground", "request"] => playground::request(context, form).await,
        ["playground", "request.json"] => playground::download(context, form).await,
        ["playground", "render"] => playground::render(context, form).await,
        ["playground", "fill"] => fill::filled(context, form).await,
        ["playground", "template"] => template_editor::resume(context, None, form).await,
        ["people", "invite"] => people::invite(context, form).await,
        ["people", "invites", id, "revoke"] => people::revoke(context, id).await,
        ["people", user, "role"] => people::set_role(context, user, form).await,
        ["people", user, "remove"] => people::remove(context, user).await,
        ["operator"] => operator::create(context, form).await,
        ["operator", "leave"] => operator::leave(context).await,
        ["operator", "retention"] => retention::save(context, form).await,
        ["operator", "invites", id, "revoke"] => invites::revoke(context, id).await,
        ["operator", "people", user, "remove"] => operator::remove(context, None, user).await,
        ["operator", "accounts", id, "name"] => operator::rename(context, id, form).await,
        ["operator", "accounts", id, "quota"] => operator::set_quota(context, id, form).await,
        ["operator", "accounts", id, "limits"] => operator::set_limits(context, id, form).await,
        ["operator", "accounts", id, "disable"] => operator::set_disabled(context, id, true).await,
        ["operator", "accounts", id, "enable"] => operator::set_disabled(context, id, false).await,
        ["operator", "accounts", id, "delete"] => operator::delete(context, id).await,
        ["operator", "accounts", id, "join"] => operator::switch_to(context, id).await,
        ["operator", "accounts", id, "invite"] => operator::invite(context, id, form).await,
        ["operator", "accounts", id, "people", user, "role"] => operator::set_role(context, id, user, form).await,
        ["operator", "accounts", id, "people", user, "remove"] => operator::remove(context, Some(id), user).await,
    }
    GET {
        ["sign-in"] => sign_in::sign_in_page(context),
        ["invite", token] => sign_in::invite_page(context, token).await,
        [] => usage::home(context).await,
        ["you"] => profile::page(context).await,
        ["keys"] => keys::list(context).await,
        ["keys", id] => keys::page(context, id).await,
        ["keys", id, action @ ("disable" | "delete")] => keys::confirm(context, id, action).await,
        ["links", id] => links::page(context, id).await,
        ["links", id, action @ ("disable" | "delete")] => links::confirm(context, id, action).await,
        ["templates"] => templates::list(context).await,
        ["templates", "new"] => template_editor::new_page(context),
        ["templates", id] => template_editor::page(context, id).await,
        ["templates", id, "delete"] => templates::confirm_delete(context, id).await,
        ["templates", id, "links"] => links::list(context, id).await,
        ["templates", id, "versions"] => templates::versions(context, id).await,
        ["templates", id, "versions", number] => templates::version(context, id, number).await,
        ["files", hash] => templates::file(context, hash).await,
        ["playground"] => playground::page(context).await,
        ["playground", "template"] => playground::template(context).await,
        ["requests"] => requests::list(context).await,
        ["requests.csv"] => requests::export(context).await,
        ["requests", id] => requests::page(context, id).await,
        ["usage"] => usage::usage(context).await,
        ["people"] => people::page(context).await,
        ["people", user, "remove"] => people::confirm_removal(context, user).await,
        ["operator"] => operator::page(context).await,
        ["operator", "retention"] => retention::page(context).await,
        ["operator", "invites"] => invites::page(context).await,
        ["operator", "people", user, "remove"] => operator::confirm_removal(context, None, user).await,
        ["operator", "audit"] => audit::page(context).await,
        ["operator", "audit.csv"] => audit::export(context).await,
        ["operator", "accounts", id, "disable"] => operator::confirm_disable(context, id).await,
        ["operator", "accounts", id, "delete"] => operator::confirm_delete(context, id).await,
        ["operator", "accounts", id] => operator::account(context, id).await,
        ["operator", "accounts", id, "people", user, "remove"] => operator::confirm_removal(context, Some(id), user).await,
    }
}
