//! Pages with what a user had entered into a form that was not saved.
//!
//! Invariant: the user sees every field that is submitted again.

use super::{keys, operator, people, playground, retention, templates};
use crate::{
    form::Form,
    router::{
        context::Context,
        page_error::{PageError, PageResult},
    },
};

/// Whether a form of this address has text that a user has typed.
pub(crate) fn is_resumable(segments: &[&str]) -> bool {
    matches!(
        segments,
        ["templates", _]
            | ["keys" | "operator" | "playground"]
            | ["keys", _, "name" | "expiry"]
            | ["people", "invite"]
            | ["operator", "retention"]
            | ["operator", "accounts", _, "name" | "quota" | "limits" | "invite"]
    )
}

/// The page of a form with these values.
pub(crate) async fn show(context: &Context<'_>, segments: &[&str], form: &Form) -> PageResult {
    match segments {
        ["templates", "new"] => templates::resume(context, None, form).await,
        ["templates", id] => templates::resume(context, Some(id), form).await,
        ["playground"] => playground::show(context, form).await,
        ["keys"] => keys::resume(context, form).await,
        ["keys", id, _] => keys::resume_key(context, id, form).await,
        ["operator", "retention"] => retention::resume(context, form).await,
        ["people", "invite"] => people::resume(context, form).await,
        ["operator"] => operator::resume(context, form).await,
        ["operator", "accounts", id, field] => operator::resume_account(context, id, field, form).await,
        _ => Err(PageError::NotFound),
    }
}
