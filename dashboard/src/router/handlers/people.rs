//! The people of the current account: roles, invites, removal.

use platen_shared::email::Email;
use platen_statements::{
    invites::OwnerInviteRefusal,
    members::{MemberChange, Role},
    users::User,
};

use super::invites::{self, INVITE_SECONDS, entered_role, redirect_to_link};
use crate::{
    form::{Field, Form},
    pages::{ConfirmPage, Section, users::PeoplePage},
    router::{
        context::{Context, redirect_if_found, redirect_with_notice},
        page_error::{PageError, PageResult},
    },
};

const PATH: &str = "/dashboard/people";

pub(crate) async fn page(context: &Context<'_>) -> PageResult {
    show(context, Field::default(), None).await
}

/// The page with what was entered into its form.
pub(crate) async fn resume(context: &Context<'_>, form: &Form) -> PageResult {
    show(context, Field::valid(form.text("email")), None).await
}

pub(crate) async fn invite(context: &Context<'_>, form: &Form) -> PageResult {
    let owner = context.owner()?;
    let entered = form.text("email");
    let error = match Email::parse(&entered) {
        Ok(email) => match owner.invite_member(&email, entered_role(form), INVITE_SECONDS).await? {
            Ok(token) => return Ok(redirect_to_link(context, PATH, owner.account_id().as_str(), &token)),
            Err(OwnerInviteRefusal::AlreadyMember) => {
                "The user is in this account already. An operator can make a link for a new password"
                    .to_owned()
            }
            Err(OwnerInviteRefusal::NotAvailable) => {
                "This address cannot be invited by an owner. Ask your operator to invite it".to_owned()
            }
        },
        Err(error) => error.to_string(),
    };
    Ok(show(context, Field::invalid(entered, &error), None).await?.with_status(422))
}

pub(crate) async fn revoke(context: &Context<'_>, id: &str) -> PageResult {
    redirect_if_found(context.owner()?.revoke_invite(id).await?, PATH, "invite-revoked")
}

pub(crate) async fn set_role(context: &Context<'_>, id: &str, form: &Form) -> PageResult {
    let owner = context.owner()?;
    let role = form.get("role").and_then(Role::parse).ok_or(PageError::NotFound)?;
    let user = owner.person(id).await?.ok_or(PageError::NotFound)?;
    let change = owner.set_role(&user, role).await?;
    answer(context, change, "role-changed").await
}

pub(crate) async fn confirm_removal(context: &Context<'_>, id: &str) -> PageResult {
    let user = context.owner()?.person(id).await?;
    context.page(&confirmation(context, user, (PATH, PATH), Section::People)?)
}

pub(crate) async fn remove(context: &Context<'_>, id: &str) -> PageResult {
    let change = context.owner()?.remove_person(id).await?;
    answer(context, change, "user-removed").await
}

/// The page that asks whether to remove a user: with the path of the users and that of “Cancel”.
pub(super) fn confirmation(
    context: &Context<'_>,
    user: Option<User>,
    (people, page): (&str, &str),
    section: Section,
) -> Result<ConfirmPage<'static>, PageError> {
    let own = &context.current_user()?.user;
    let user = user.filter(|user| user.id != *own).ok_or(PageError::NotFound)?;
    Ok(ConfirmPage {
        layout: context.layout("Remove user", section),
        question: format!("Remove {}?", user.email),
        consequence: "The user is signed out immediately and can no longer sign in. API keys and templates \
                      they created are kept.",
        button: "Remove",
        action: format!("{people}/{}/remove", user.id),
        fields: &[],
        cancel: page.to_owned(),
    })
}

/// Why a change to a user was refused, as a sentence for a page.
pub(super) fn refusal(change: MemberChange) -> Result<&'static str, PageError> {
    match change {
        MemberChange::LastOwner => {
            Ok("This user is the only owner of the account. Make another member an owner first.")
        }
        MemberChange::Operator => {
            Ok("This user is an operator. Only operators can change or remove operators.")
        }
        MemberChange::NotOwner => Err(PageError::NotOwner),
        MemberChange::NotFound | MemberChange::Done => Err(PageError::NotFound),
    }
}

async fn answer(context: &Context<'_>, change: MemberChange, notice: &'static str) -> PageResult {
    if change == MemberChange::Done {
        return Ok(redirect_with_notice(PATH, notice));
    }
    Ok(show(context, Field::default(), Some(refusal(change)?)).await?.with_status(409))
}

async fn show(context: &Context<'_>, email: Field, warning: Option<&'static str>) -> PageResult {
    let account = context.account()?;
    let current_user = context.current_user()?;
    let mut layout = context.layout("People", Section::People);
    layout.warning = warning.or(layout.warning);
    context.page(&PeoplePage {
        layout,
        people: account.people().await?,
        invites: account.pending_invites().await?,
        email,
        link: invites::created(context, |account| current_user.works_in(account)).await?,
        user: current_user.user.clone(),
    })
}
