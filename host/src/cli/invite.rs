//! `platen invite`.

use anyhow::{Result, anyhow, bail};
use clap::Args;
use platen_shared::{email::Email, id::AccountId};
use platen_statements::{
    Timestamp,
    invites::{Invite, InviteRefusal, InviteTarget},
};
use serde::Serialize;
use url::Url;

use super::CommonArgs;
use crate::admin::no_account;

#[derive(Debug, Args)]
pub(crate) struct InviteCommand {
    /// The e-mail address with which the user signs in; no e-mail is sent
    #[arg(value_parser = Email::parse)]
    email: Email,

    /// The account of the user: its name or id
    #[arg(long, value_name = "NAME|ID", conflicts_with = "operator")]
    account: Option<String>,

    /// Make the user an operator, who creates accounts and invites users. Without this and without
    /// --account the user must exist already and sets a new password with the link
    #[arg(long)]
    operator: bool,

    /// Fail if an operator exists already
    #[arg(long, requires = "operator")]
    first: bool,

    /// The server's URL in users' browsers
    #[arg(long, env = "PLATEN_URL", value_name = "URL", default_value = "http://127.0.0.1:3000")]
    url: Url,

    /// How long the link is valid, in seconds: at most a day
    #[arg(long, value_name = "SECONDS", default_value_t = DAY_SECONDS, value_parser = clap::value_parser!(u32).range(1..=i64::from(DAY_SECONDS)))]
    valid_for: u32,

    #[command(flatten)]
    common: CommonArgs,
}

const DAY_SECONDS: u32 = 86_400;

#[derive(Serialize)]
struct InviteWithLink {
    email: String,
    /// The user's account once the invite is used.
    account: Option<AccountId>,
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
            None => None,
        };
        let target =
            InviteTarget { account: account.as_ref().map(AccountId::as_str), operator: self.operator };
        let email = self.email.to_string();
        let invited = admin.operator().invite(&self.email, target, self.valid_for.into()).await?;
        let Invite { token, account, operator, expires_at } = invited.map_err(|refusal| match refusal {
            InviteRefusal::NoSuchAccount => anyhow!(no_account(target.account.unwrap_or_default())),
            InviteRefusal::OtherAccount => anyhow!("{email} belongs to another account already"),
            InviteRefusal::NoTarget => anyhow!(
                "there is no user with this address yet: invite to an account with --account NAME, or as an \
                 operator with --operator"
            ),
        })?;
        let base = self.url.as_str().trim_end_matches('/');
        let link = format!("{base}/dashboard/invite/{}", token.expose());
        let invite = InviteWithLink { email, account, operator, expires_at, link };
        self.common.output.print(&invite, |InviteWithLink { email, expires_at, link, .. }| {
            format!("{link}\nThis link lets {email} in once, until {expires_at}.")
        })
    }
}
