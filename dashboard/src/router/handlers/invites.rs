//! Links of invites, and the operator's page of all invites that can be used.

use platen_shared::token::Token;
use platen_statements::{invites::InviteState, members::Role};

use crate::{
    cookies::Once,
    form::Form,
    pages::{
        Section,
        paging::{PAGE_ROWS, Paging},
        users::InvitesPage,
    },
    router::{
        context::{Context, redirect_if_found},
        page_error::{PageError, PageResult},
        response::PageResponse,
    },
};

const PATH: &str = "/dashboard/operator/invites";
/// Seconds for which an invite is valid.
pub(super) const INVITE_SECONDS: i64 = 24 * 60 * 60;

/// Redirects to a page that shows the link of an invite to this account once.
pub(super) fn redirect_to_link(
    context: &Context<'_>,
    path: &str,
    account: &str,
    token: &Token,
) -> PageResponse {
    context.redirect_once(path, format!("{account}~{}", token.expose()))
}

/// The address that the invite just created is for, and its link. `is_shown` says for which account.
pub(super) async fn created(
    context: &Context<'_>,
    is_shown: impl Fn(&str) -> bool,
) -> Result<Option<(String, String)>, PageError> {
    let Some((account, token)) = context.once.as_ref().and_then(Once::parts) else { return Ok(None) };
    let Some(secret) = Token::parse(token).filter(|_| is_shown(account)) else { return Ok(None) };
    Ok(match context.store.invited(&secret).await? {
        InviteState::Open(email) => {
            Some((email, format!("{}/dashboard/invite/{token}", context.head.base_url())))
        }
        InviteState::Revoked | InviteState::Invalid => None,
    })
}

/// The role that a form names. Without one, the one with fewer rights.
pub(super) fn entered_role(form: &Form) -> Role {
    form.get("role").and_then(Role::parse).unwrap_or(Role::Member)
}

pub(crate) async fn page(context: &Context<'_>) -> PageResult {
    let operator = context.operator()?;
    let count = operator.count_pending_invites().await?;
    let paging = Paging::new(context.head.query.get("page"), count, PATH, &[]);
    let invites = operator.pending_invites(PAGE_ROWS, paging.offset()).await?;
    context.page(&InvitesPage { layout: context.layout("Invites", Section::Operator), invites, paging })
}

pub(crate) async fn revoke(context: &Context<'_>, id: &str) -> PageResult {
    redirect_if_found(context.operator()?.revoke_invite(id).await?, PATH, "invite-revoked")
}
