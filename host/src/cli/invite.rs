//! `platen invite`.

use anyhow::{Result, bail};
use clap::Args;
use platen_shared::email::{Email, InvalidEmail};
use serde::Serialize;
use url::Url;

use super::Common;
use crate::admin::invites::{self, Place};

/// Flags of `platen invite`.
#[derive(Debug, Args)]
pub(crate) struct Invite {
    /// The person's e-mail address, with which they will sign in; nothing is sent there
    #[arg(value_parser = email)]
    email: Email,

    /// Into this account: its name or id
    #[arg(long, value_name = "NAME|ID", conflicts_with = "operator")]
    account: Option<String>,

    /// As an operator, who creates accounts and invites people. Without this and without --account
    /// the link is a new one for somebody who is there already, such as for a forgotten password
    #[arg(long)]
    operator: bool,

    /// Only if there is no operator yet
    #[arg(long, requires = "operator")]
    first: bool,

    /// Where people reach the server
    #[arg(long, env = "PLATEN_URL", value_name = "URL", default_value = "http://127.0.0.1:3000")]
    url: Url,

    /// How long the link is good, in seconds: at most a day
    #[arg(long, value_name = "SECONDS", default_value_t = DAY, value_parser = clap::value_parser!(u32).range(1..=i64::from(DAY)))]
    valid_for: u32,

    #[command(flatten)]
    common: Common,
}

const DAY: u32 = 86_400;

#[derive(Serialize)]
struct Printed {
    #[serde(flatten)]
    invite: invites::Invite,
    link: String,
}

impl Invite {
    /// Makes the invite and prints its link.
    pub(crate) async fn run(self) -> Result<()> {
        let place = match self.account {
            Some(account) => Place::Account(account),
            None if self.operator => Place::Operator,
            None => Place::Same,
        };
        let database = self.common.open().await?;
        if self.first && invites::has_operator(&database).await? {
            bail!("there is an operator already");
        }
        let invite = invites::create(&database, &self.email, place, self.valid_for).await?;
        let base = self.url.as_str().trim_end_matches('/');
        let link = format!("{base}/dashboard/invite/{}", invite.token.expose());
        self.common.form.print(&Printed { invite, link }, |Printed { invite, link }| {
            format!("{link}\nThis link lets {} in once, until {}.", invite.email, invite.expires_at)
        })
    }
}

fn email(text: &str) -> Result<Email, InvalidEmail> {
    Email::parse(text)
}
