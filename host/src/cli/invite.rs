//! `platen invite`.

use anyhow::{Result, anyhow, bail};
use clap::Args;
use platen_shared::{email::Email, id::AccountId, name::Name};
use platen_statements::{
    NameTaken, Timestamp,
    invites::{Invite, InviteRefusal, InviteTarget},
    members::Role,
};
use serde::Serialize;
use url::Url;

use super::CommonArgs;
use crate::admin::{Admin, no_account};

#[derive(Debug, Args)]
pub(crate) struct InviteCommand {
    /// The e-mail address with which the user signs in; no e-mail is sent
    #[arg(value_parser = Email::parse)]
    email: Email,

    /// The account of the user: its name or id
    #[arg(long, value_name = "NAME|ID")]
    account: Option<String>,

    /// The role of a new user of the account. Members may do everything except delete, disable, expire and roll keys,
    /// delete templates, and manage people. The first user of an account is an owner [default: member, or owner
    /// with --operator]
    #[arg(long, value_name = "owner|member", value_parser = parse_role)]
    role: Option<Role>,

    /// Make the user an operator, who creates accounts and invites users. Without this and without
    /// --account the user must exist already and sets a new password with the link. The first operator gets the
    /// account "default", which is created if there is none, unless --account names another one
    #[arg(long)]
    operator: bool,

    /// Fail if an operator exists already
    #[arg(long, requires = "operator")]
    first: bool,

    /// The server's URL in users' browsers
    #[arg(long, env = "PLATEN_URL", value_name = "URL", default_value = "http://127.0.0.1:3000")]
    url: Url,

    #[command(flatten)]
    common: CommonArgs,
}

/// How long a link is valid.
const DAY_SECONDS: i64 = 86_400;
/// The name of the account of the first operator.
const OWN_ACCOUNT: &str = "default";

#[derive(Serialize)]
struct InviteWithLink {
    email: String,
    /// The user's account once the invite is used.
    account: Option<AccountId>,
    /// The user's role in the account.
    role: Option<Role>,
    /// Whether the user is an operator once the invite is used.
    operator: bool,
    expires_at: Timestamp,
    link: String,
}

impl InviteCommand {
    /// Creates the invite and prints its link.
    pub(crate) async fn run(self) -> Result<()> {
        let admin = self.common.open().await?;
        if self.first && admin.operator().has_operator().await? {
            bail!("there is an operator already");
        }
        let account = match self.account {
            Some(id_or_name) => Some(admin.account(&id_or_name).await?.id),
            None if self.operator && !admin.operator().has_operator().await? => {
                own_account(&admin, &self.email).await?
            }
            None => None,
        };
        let role = self.role.unwrap_or(if self.operator { Role::Owner } else { Role::Member });
        let account_id = account.as_ref().map(AccountId::as_str);
        let target = InviteTarget { account: account_id, role, operator: self.operator };
        let email = self.email.to_string();
        let invited = admin.operator().invite(&self.email, target, DAY_SECONDS).await?;
        let Invite { token, account, role, operator, expires_at } = invited.map_err(|refusal| match refusal {
            InviteRefusal::NoSuchAccount => anyhow!(no_account(target.account.unwrap_or_default())),
            InviteRefusal::OtherAccount => anyhow!("{email} belongs to another account already"),
            InviteRefusal::NoTarget => anyhow!(
                "there is no user with this address yet: invite to an account with --account NAME, or as an \
                 operator with --operator"
            ),
        })?;
        let base = self.url.as_str().trim_end_matches('/');
        let link = format!("{base}/dashboard/invite/{}", token.expose());
        let role = account.is_some().then_some(role);
        let invite = InviteWithLink { email, account, role, operator, expires_at, link };
        self.common.output.print(&invite, |InviteWithLink { email, expires_at, link, .. }| {
            format!("{link}\nThis link lets {email} in once, until {expires_at}.")
        })
    }
}

/// The account in which the first operator works; `None` for a user who has another one.
async fn own_account(admin: &Admin, email: &Email) -> Result<Option<AccountId>> {
    let operator = admin.operator();
    if operator.has_account(email).await? {
        return Ok(None);
    }
    let name = Name::parse(OWN_ACCOUNT)?;
    Ok(Some(match operator.create_account(&name, None).await? {
        Ok(id) => id,
        Err(NameTaken) => admin.account(OWN_ACCOUNT).await?.id,
    }))
}

pub(super) fn parse_role(word: &str) -> Result<Role, String> {
    Role::parse(word).ok_or_else(|| "owner or member".to_owned())
}
