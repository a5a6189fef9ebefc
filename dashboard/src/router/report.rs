//! The response to a request that was not carried out: with the frame of its context, and with what the user
//! has entered.
//!
//! Invariant: nothing is saved here. Fields of forms with passwords are not shown again, and fields of a form
//! that was not made for this browser only in fields that the user sees.

use super::{
    context::Context,
    handlers::{self, sign_in},
    page_error::{PageError, PageResult},
    response::PageResponse,
};
use crate::{
    csrf,
    form::Form,
    next,
    pages::{RepeatPage, Section},
};

pub(super) async fn report(
    context: &mut Context<'_>,
    segments: &[&str],
    form: &Form,
    error: PageError,
) -> PageResponse {
    let answered = answer(context, segments, form, &error).await;
    let response = answered.unwrap_or_else(|error| {
        let layout = context.layout("", Section::None);
        error.to_response(layout)
    });
    response.with_cause(error.cause())
}

async fn answer(context: &mut Context<'_>, segments: &[&str], form: &Form, error: &PageError) -> PageResult {
    let is_signed_in = context.current_user.is_some();
    let is_stale = matches!(error, PageError::StaleForm | PageError::NoCookie);
    if matches!(error, PageError::SignInFirst) {
        if !context.head.is_post {
            return Ok(PageResponse::redirect(&next::sign_in_address(&context.head.target)));
        }
        return Ok(sign_in::ask(context, segments, form)?.with_status(403));
    }
    if segments == ["sign-in"] && context.head.is_post {
        return if is_stale && is_signed_in {
            sign_in::go_on(context, form).await
        } else {
            Ok(sign_in::ask_again(context, form, error.to_string())?.with_status(error.status()))
        };
    }
    if is_stale && is_signed_in && handlers::is_resumable(segments) {
        context.warning = Some("This form had expired. Nothing was saved: check it and submit it again.");
        return Ok(handlers::resume(context, segments, form).await?.with_status(error.status()));
    }
    // The form was not saved, or its result was not received.
    let has_password = matches!(segments, ["invite", _] | ["you", "password"]);
    if error.is_unavailable() && context.head.is_post && !has_password && context.accepts(form) {
        let page = RepeatPage {
            layout: context.layout(error.title(), Section::None),
            text: error.to_string(),
            action: context.head.path.clone(),
            fields: form.fields().filter(|(name, _)| *name != csrf::FIELD).collect(),
        };
        return Ok(context.page(&page)?.with_status(error.status()));
    }
    Ok(error.to_response(context.layout("", Section::None)))
}
