//! The component itself: from a request to an answer.
//!
//! Invariant: every address stands in [`route`]. Whatever posts has shown a form's token before
//! anything is changed, and every answer carries the headers of [`answer`]. The log says neither
//! addresses, which hold invites, nor what forms hold.

mod answer;
mod context;
mod handlers;
mod page_error;
mod request_head;
mod settings;

use std::time::Instant;

use platen_component::{body, body::BodyError, platform};
use platen_shared::limits;
use spin_sdk::wasip3::{
    self,
    exports::http::handler::Guest,
    http::types::{ErrorCode, Request, Response},
};

use crate::{form::Form, guard};
use answer::Answer;
use context::Context;
use handlers::{entry, files, keys, operator, person, templates, usage};
use page_error::PageError;
use request_head::RequestHead;

struct Dashboard;
wasip3::http::service::export!(Dashboard);

/// Largest form that holds no markup.
const FORM_BYTES: usize = 64 * 1024;
/// Largest form with markup: each of its bytes may take three on the way, and there are samples.
const MARKUP_FORM_BYTES: usize = 3 * limits::MAX_HTML_BYTES + 1024 * 1024;

impl Guest for Dashboard {
    async fn handle(request: Request) -> Result<Response, ErrorCode> {
        let started = Instant::now();
        let head = RequestHead::of(&request);
        let (answer, cause) = match serve(request, &head).await {
            Ok(answer) => (answer, None),
            Err(error) => {
                let cause = error.cause();
                (error.answer(), cause)
            }
        };
        let response = answer.respond(&head);
        head.log(response.get_status_code(), started.elapsed(), cause.as_deref());
        Ok(response)
    }
}

async fn serve(request: Request, head: &RequestHead) -> Result<Answer, PageError> {
    let segments: Vec<&str> = head.path.split('/').filter(|segment| !segment.is_empty()).collect();
    let Some(("dashboard", segments)) = segments.split_first().map(|(first, rest)| (*first, rest)) else {
        return Err(PageError::NotFound);
    };
    if let ["assets", name] = segments {
        return files::asset(head, name);
    }
    let context = Context::begin(head, i64::try_from(platform::now()).unwrap_or(i64::MAX)).await?;
    let form = if head.is_post {
        if guard::is_foreign(head.origin.as_deref(), head.fetch_site.as_deref(), &head.host) {
            return Err(PageError::Foreign);
        }
        // Nobody who is not signed in sends more than a few fields.
        let cap = match segments {
            ["templates", _] if context.current_user.is_some() => MARKUP_FORM_BYTES,
            _ => FORM_BYTES,
        };
        if !body::is_of_type(&head.content_type, "application/x-www-form-urlencoded") {
            return Err(PageError::ContentType);
        }
        let bytes = body::read(request, &head.headers, cap).await.map_err(|error| match error {
            BodyError::TooLarge => PageError::TooLarge,
            BodyError::Incomplete => PageError::Incomplete,
        })?;
        let form = Form::parse(&bytes);
        context.check_form(&form)?;
        form
    } else {
        Form::default()
    };
    route(&context, segments, &form).await
}

/// Every address of the dashboard.
async fn route(context: &Context<'_>, segments: &[&str], form: &Form) -> Result<Answer, PageError> {
    let c = context;
    if c.head.is_post {
        match segments {
            ["sign-in"] => entry::sign_in(c, form).await,
            ["invite", token] => entry::accept_invite(c, token, form).await,
            ["sign-out"] => entry::sign_out(c).await,
            ["you", "password"] => person::change_password(c, form).await,
            ["you", "sessions", "end-others"] => person::end_others(c).await,
            ["you", "sessions", id, "end"] => person::end_session(c, id).await,
            ["keys"] => keys::create(c, form).await,
            ["keys", id, "disable"] => keys::set_disabled(c, id, true).await,
            ["keys", id, "enable"] => keys::set_disabled(c, id, false).await,
            ["keys", id, "delete"] => keys::delete(c, id).await,
            ["templates", "new"] => templates::create(c, form).await,
            ["templates", id] => templates::save(c, id, form).await,
            ["templates", id, "duplicate"] => templates::duplicate(c, id).await,
            ["templates", id, "delete"] => templates::delete(c, id).await,
            ["templates", id, "render-key"] => templates::render_key(c, id).await,
            ["templates", id, "versions", number, "restore"] => templates::restore(c, id, number).await,
            ["operator"] => operator::create(c, form).await,
            ["operator", "people", user, "remove"] => operator::remove_operator(c, user).await,
            ["operator", "accounts", id, "name"] => operator::rename(c, id, form).await,
            ["operator", "accounts", id, "quota"] => operator::set_quota(c, id, form).await,
            ["operator", "accounts", id, "disable"] => operator::set_disabled(c, id, true).await,
            ["operator", "accounts", id, "enable"] => operator::set_disabled(c, id, false).await,
            ["operator", "accounts", id, "join"] => operator::join(c, id).await,
            ["operator", "accounts", id, "invite"] => operator::invite(c, id, form).await,
            ["operator", "accounts", id, "people", user, "remove"] => {
                operator::remove_person(c, id, user).await
            }
            _ => Err(PageError::NotFound),
        }
    } else {
        match segments {
            [] => entry::home(c),
            ["sign-in"] => entry::sign_in_page(c),
            ["invite", token] => entry::invite_page(c, token).await,
            ["you"] => person::page(c).await,
            ["keys"] => keys::page(c).await,
            ["keys", id, "delete"] => keys::ask_delete(c, id).await,
            ["templates"] => templates::list(c).await,
            ["templates", "new"] => templates::new_page(c),
            ["templates", id] => templates::page(c, id).await,
            ["templates", id, "delete"] => templates::ask_delete(c, id).await,
            ["templates", id, "versions"] => templates::versions(c, id).await,
            ["templates", id, "versions", number] => templates::version(c, id, number).await,
            ["usage"] => usage::page(c).await,
            ["usage.csv"] => usage::export(c).await,
            ["operator"] => operator::page(c).await,
            ["operator", "people", user, "remove"] => operator::ask_remove_operator(c, user).await,
            ["operator", "audit"] => operator::audit(c).await,
            ["operator", "accounts", id] => operator::account(c, id).await,
            ["operator", "accounts", id, "people", user, "remove"] => operator::ask_remove(c, id, user).await,
            _ => Err(PageError::NotFound),
        }
    }
}
