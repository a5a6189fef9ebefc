//! `platen user`: the users of the dashboard, and the invites that can be used.

use anyhow::{Context as _, Result, bail};
use clap::{Args, Subcommand};
use platen_shared::email::Email;
use platen_statements::{
    invites::PendingInvite,
    members::{MemberChange, Role},
    users::{ListedUser, User},
};

use super::{CommonArgs, ListArgs, invite::parse_role, table};
use crate::admin::Admin;

#[derive(Debug, Subcommand)]
pub(crate) enum UserCommand {
    /// List users, with their accounts and roles
    List(ListArgs),
    /// Change the role of a user in the user's account
    Role(RoleArgs),
    /// Remove a user, who is signed out everywhere; this cannot be undone
    Remove(EmailArgs),
    /// List invites that can be used
    Invites(ListArgs),
    /// Revoke the invite of an address
    Revoke(EmailArgs),
}

#[derive(Debug, Args)]
pub(crate) struct EmailArgs {
    /// The e-mail address
    #[arg(value_parser = Email::parse)]
    email: Email,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RoleArgs {
    #[command(flatten)]
    user: EmailArgs,
    /// The new role
    #[arg(value_name = "owner|member", value_parser = parse_role)]
    role: Role,
}

impl UserCommand {
    pub(crate) async fn run(self) -> Result<()> {
        match self {
            Self::List(ListArgs { account, common }) => {
                let admin = common.open().await?;
                let account = admin.account_id(account.as_deref()).await?;
                let users = admin.operator().every_user(account.as_ref()).await?;
                common.output.print(&users, |users| users_table(users))
            }
            Self::Role(RoleArgs { user: EmailArgs { email, common }, role }) => {
                let admin = common.open().await?;
                let operator = admin.operator();
                let user = find(&admin, &email).await?;
                let account = user.account.with_context(|| format!("{email} has no account"))?;
                let mut users = operator.users(account.as_str()).await?.into_iter();
                let user = users.find(|other| other.id == user.id).with_context(|| missing(&email))?;
                match operator.set_role(account.as_str(), &user, role).await? {
                    MemberChange::Done => {}
                    MemberChange::LastOwner => bail!("{email} {ONLY_OWNER}"),
                    MemberChange::NotFound => bail!(missing(&email)),
                    MemberChange::Operator | MemberChange::NotOwner => bail!("{email} cannot be changed"),
                }
                let user = User { role, ..user };
                common.output.print(&user, |user| format!("{} has the role {}", user.email, role.word()))
            }
            Self::Remove(EmailArgs { email, common }) => {
                let admin = common.open().await?;
                let operator = admin.operator();
                let user = find(&admin, &email).await?;
                let change = match &user.account {
                    Some(account) if !user.operator => {
                        operator.remove_user(account.as_str(), user.id.as_str()).await?
                    }
                    _ => operator.remove_operator(user.id.as_str()).await?,
                };
                match change {
                    MemberChange::LastOwner => bail!("{email} {ONLY_OWNER}"),
                    // Another command has removed the user meanwhile.
                    MemberChange::Done | MemberChange::NotFound => {}
                    MemberChange::Operator | MemberChange::NotOwner => bail!("{email} cannot be removed"),
                }
                common.output.print(&user, |user| format!("removed {}", user.email))
            }
            Self::Invites(ListArgs { account, common }) => {
                let admin = common.open().await?;
                let invites = match admin.account_id(account.as_deref()).await? {
                    Some(account) => admin.operator().pending_invites_of(account.as_str()).await?,
                    None => admin.operator().pending_invites(u32::MAX.into(), 0).await?,
                };
                common.output.print(&invites, |invites| invites_table(invites))
            }
            Self::Revoke(EmailArgs { email, common }) => {
                let admin = common.open().await?;
                let invites = admin.operator().pending_invites(u32::MAX.into(), 0).await?;
                // An address has one at most.
                let invite = invites.into_iter().find(|invite| invite.email == email.as_str());
                let none = || format!("there is no invite of {email}: see `platen user invites`");
                let invite = invite.with_context(none)?;
                if !admin.operator().revoke_invite(invite.id.as_str()).await? {
                    bail!(none());
                }
                common.output.print(&invite, |invite| format!("revoked the invite of {}", invite.email))
            }
        }
    }
}

const ONLY_OWNER: &str =
    "is the only owner of the account: make another user an owner first, by `platen user role`";

async fn find(admin: &Admin, email: &Email) -> Result<ListedUser> {
    let mut users = admin.operator().every_user(None).await?.into_iter();
    users.find(|user| user.email == email.as_str()).with_context(|| missing(email))
}

fn missing(email: &Email) -> String {
    format!("there is no user {email}: see `platen user list`")
}

/// The account of a user or an invite; `-` for an operator without one.
fn account_text(name: Option<&String>) -> String {
    name.map_or_else(|| "-".to_owned(), Clone::clone)
}

fn rights(is_operator: bool, role: &str) -> String {
    if is_operator { format!("{role}, operator") } else { role.to_owned() }
}

fn users_table(users: &[ListedUser]) -> String {
    let rows = users.iter().map(|user| {
        [
            user.email.clone(),
            account_text(user.account_name.as_ref()),
            rights(user.operator, user.role.word()),
            user.created_at.to_string(),
            user.seen_at.map_or_else(|| "never".to_owned(), |at| at.to_string()),
        ]
    });
    table(["EMAIL", "ACCOUNT", "ROLE", "CREATED", "LAST SEEN"], rows)
}

fn invites_table(invites: &[PendingInvite]) -> String {
    let rows = invites.iter().map(|invite| {
        [
            invite.email.clone(),
            account_text(invite.account_name.as_ref()),
            rights(invite.operator, invite.role.word()),
            invite.created_at.to_string(),
            invite.expires_at.to_string(),
            invite.created_by.clone().unwrap_or_default(),
        ]
    });
    table(["EMAIL", "ACCOUNT", "ROLE", "CREATED", "EXPIRES", "CREATED BY"], rows)
}
