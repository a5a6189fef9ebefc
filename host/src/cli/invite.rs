//! `platen invite`.

use anyhow::{Result, bail};
use clap::Args;
use platen_shared::email::{Email, InvalidEmail};
use serde::Serialize;
use url::Url;

use super::CommonArgs;
use crate::admin::invites::{Invite, InviteTarget};

#[derive(Debug, Args)]
pub(crate) struct InviteCommand {
    /// The e-mail address with which the user signs in; no e-mail is sent
    #[arg(value_parser = email)]
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
    #[serde(flatten)]
    invite: Invite,
    link: String,
}

impl InviteCommand {
    /// Creates the invite and prints its link.
    pub(crate) async fn run(self) -> Result<()> {
        let target = match self.account {
            Some(account) => InviteTarget::Account(account),
            None if self.operator => InviteTarget::Operator,
            None => InviteTarget::Unchanged,
        };
        let admin = self.common.open().await?;
        if self.first && admin.has_operator().await? {
            bail!("there is an operator already");
        }
        let invite = admin.invite(&self.email, target, self.valid_for).await?;
        let base = self.url.as_str().trim_end_matches('/');
        let link = format!("{base}/dashboard/invite/{}", invite.token.expose());
        self.common.output.print(&InviteWithLink { invite, link }, |InviteWithLink { invite, link }| {
            format!("{link}\nThis link lets {} in once, until {}.", invite.email, invite.expires_at)
        })
    }
}

fn email(text: &str) -> Result<Email, InvalidEmail> {
    Email::parse(text)
}
