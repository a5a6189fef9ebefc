//! `platen link`.

use std::path::PathBuf;

use anyhow::{Context as _, Result, anyhow};
use clap::{Args, Subcommand};
use platen_shared::{
    id::TemplateId,
    limits,
    link::{LinkFile, LinkFormats, LinkId, LinkSecret},
    name::Name,
};
use platen_statements::{
    OwnerScope,
    links::{Link, LinkSettings},
};
use secrecy::ExposeSecret as _;
use serde::Serialize;
use url::Url;

use super::{CommonArgs, Failure, Limit, ListArgs, OutputArgs, table};
use crate::admin::CommandBackend;

/// The server's URL without another one.
pub(super) const DEFAULT_URL: &str = "http://127.0.0.1:3000";

#[derive(Debug, Subcommand)]
pub(crate) enum LinkCommand {
    /// Create a link for a template, and print its id and its secret, only now
    Create {
        /// The account's name or id
        #[arg(long, value_name = "NAME|ID")]
        account: String,
        /// The template's id
        #[arg(long, value_name = "ID")]
        template: String,
        /// A name, to distinguish links
        #[arg(long, default_value = "link", value_parser = Name::parse)]
        name: Name,
        /// The formats of its files, with commas between them
        #[arg(long = "format", value_name = "FORMATS", default_value = "png")]
        formats: LinkFormats,
        /// Seconds for which caches may keep a file
        #[arg(long, value_name = "SECONDS", default_value_t = limits::DEFAULT_LINK_MAX_AGE,
            value_parser = clap::value_parser!(u32).range(0..=i64::from(limits::MAX_LINK_MAX_AGE)))]
        max_age: u32,
        /// Attempts in a day (UTC), or "unlimited" for as many as the account has
        #[arg(long, value_name = "NUMBER|unlimited", default_value = "1000", value_parser = daily_limit)]
        daily_limit: Limit,
        #[command(flatten)]
        common: CommonArgs,
    },
    /// List links, without their secrets
    List(ListArgs),
    /// Give a link a new secret and print it, only now; the other one is good for some time
    Roll {
        #[command(flatten)]
        of: LinkArgs,
        /// Hours for which addresses that are signed with the other secret are good
        #[arg(long, value_name = "HOURS", default_value_t = 24, value_parser = clap::value_parser!(u32).range(0..=8_760))]
        grace: u32,
    },
    /// Refuse the addresses of a link; caches keep what they have
    Disable(LinkArgs),
    /// Accept the addresses of a link again
    Enable(LinkArgs),
    /// Delete a link; this cannot be undone
    Delete(LinkArgs),
    Sign(Sign),
}

#[derive(Debug, Args)]
pub(crate) struct LinkArgs {
    /// The link's id
    id: String,
    #[command(flatten)]
    common: CommonArgs,
}

/// Print an address of a link, signed with its secret
///
/// The secret is read from --secret-file or the environment variable `PLATEN_LINK_SECRET`. Neither a server nor a database is
/// needed.
#[derive(Debug, Args)]
pub(crate) struct Sign {
    /// The link's id
    #[arg(value_name = "LINK", value_parser = link_id)]
    link: LinkId,
    /// Values of the template
    #[arg(value_name = "NAME=VALUE", value_parser = name_and_value)]
    values: Vec<(String, String)>,
    /// The name of the file: 1 to 80 of a-z, 0-9 and -, then the extension of one of the link's formats
    #[arg(long, value_name = "NAME.EXTENSION", default_value = "card.png")]
    file: String,
    /// File that holds the link's secret; /dev/stdin is standard input
    #[arg(long, env = "PLATEN_LINK_SECRET_FILE", value_name = "FILE")]
    secret_file: Option<PathBuf>,
    /// The server's URL in users' browsers
    #[arg(long, env = "PLATEN_URL", value_name = "URL", default_value = DEFAULT_URL)]
    url: Url,
    #[command(flatten)]
    output: OutputArgs,
}

fn daily_limit(text: &str) -> Result<Limit, String> {
    Limit::parse(text, 1, "unlimited")
}

fn link_id(text: &str) -> Result<LinkId, &'static str> {
    LinkId::parse(text).ok_or("it is no id of a link")
}

fn name_and_value(text: &str) -> Result<(String, String), &'static str> {
    let (name, value) = text.split_once('=').ok_or("it must be NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Signs addresses of a link on a server.
pub(super) struct Signer {
    pub(super) url: Url,
    pub(super) secret: LinkSecret,
}

impl Signer {
    /// The URL of a file.
    pub(super) fn sign(&self, file: LinkFile) -> String {
        let address = file.signed(&self.secret);
        format!("{}{}", self.url.as_str().trim_end_matches('/'), address.spelling())
    }
}

/// The secret of a link, from the variable `PLATEN_LINK_SECRET` or a file; `None` without both.
pub(super) fn secret(file: Option<&std::path::Path>) -> Result<Option<LinkSecret>> {
    let text = platen_program::secret("PLATEN_LINK_SECRET", file)?;
    let secret = text.map(|text| {
        LinkSecret::parse(text.expose_secret())
            .context("PLATEN_LINK_SECRET is no secret of a link: see `platen link create`")
    });
    secret.transpose()
}

/// A link with a secret that is new.
#[derive(Serialize)]
struct WithSecret {
    #[serde(flatten)]
    link: Link,
    secret: String,
}

#[derive(Serialize)]
struct Signed {
    url: String,
}

impl LinkCommand {
    pub(crate) async fn run(self) -> Result<()> {
        match self {
            Self::Create { account, template, name, formats, max_age, daily_limit, common } => {
                let admin = common.open().await?;
                let account = admin.account(&account).await?;
                let owned = admin.operator().account_scope(&account.id);
                let settings = LinkSettings { formats, max_age, daily_limit: daily_limit.0 };
                let created = owned.create_link(&TemplateId::from_text(&template), &name, &settings).await?;
                let (id, secret) =
                    created.with_context(|| format!("the account has no template {template:?}"))?;
                print_secret(&common, &owned, id.as_str(), &secret).await
            }
            Self::List(list) => {
                let (admin, account) = list.open().await?;
                let links = admin.operator().links(account.as_ref()).await?;
                list.common.output.print(&links, |links| links_table(links))
            }
            Self::Roll { of: LinkArgs { id, common }, grace } => {
                let no_link = || no_link(&id);
                let admin = common.open().await?;
                let account = admin.operator().owner_of_link(&id).await?.with_context(no_link)?;
                let owned = admin.operator().account_scope(&account);
                let until = admin.now() + 60 * 60 * i64::from(grace);
                let secret = owned.roll_link(&id, until).await?.with_context(no_link)?;
                print_secret(&common, &owned, &id, &secret).await
            }
            Self::Disable(of) => {
                change(of, "disabled", async |owned, id| owned.set_link_disabled(id, true).await).await
            }
            Self::Enable(of) => {
                change(of, "enabled", async |owned, id| owned.set_link_disabled(id, false).await).await
            }
            Self::Delete(of) => change(of, "deleted", async |owned, id| owned.delete_link(id).await).await,
            Self::Sign(sign) => sign.run(),
        }
    }
}

impl Sign {
    fn run(self) -> Result<()> {
        let secret = secret(self.secret_file.as_deref()).map_err(Failure::invalid)?.ok_or_else(|| {
            Failure::invalid(anyhow!("the secret is missing: set PLATEN_LINK_SECRET or --secret-file"))
        })?;
        let file = LinkFile::new(self.link, &self.file, self.values).map_err(Failure::invalid)?;
        let url = Signer { url: self.url, secret }.sign(file);
        self.output.print(&Signed { url }, |signed| signed.url.clone())
    }
}

async fn print_secret(
    common: &CommonArgs,
    owned: &OwnerScope<'_, CommandBackend>,
    id: &str,
    secret: &LinkSecret,
) -> Result<()> {
    let link = owned.link(id).await?.with_context(|| no_link(id))?;
    let created = WithSecret { link, secret: secret.expose().to_owned() };
    common.output.print(&created, |WithSecret { link, secret }| {
        format!(
            "{secret}\nThis is the secret of link {} of {}; it is shown this once.",
            link.id, link.account_name
        )
    })
}

fn no_link(id: &str) -> String {
    format!("there is no link {id:?}: see `platen link list`")
}

/// Changes a link, and prints what it is then, or was before it was deleted.
async fn change(
    LinkArgs { id, common }: LinkArgs,
    state: &str,
    change: impl AsyncFnOnce(OwnerScope<'_, CommandBackend>, &str) -> Result<bool>,
) -> Result<()> {
    let no_link = || no_link(&id);
    let admin = common.open().await?;
    let account = admin.operator().owner_of_link(&id).await?.with_context(no_link)?;
    let owned = || admin.operator().account_scope(&account);
    let found = owned().link(&id).await?.with_context(no_link)?;
    change(owned(), &id).await?;
    let link = owned().link(&id).await?.unwrap_or(found);
    common.output.print(&link, |link| format!("{} ({}) is {state}", link.id, link.name))
}

fn links_table(links: &[Link]) -> String {
    let rows = links.iter().map(|link| {
        [
            link.id.to_string(),
            link.account_name.clone(),
            link.name.clone(),
            link.template_name.clone(),
            link.formats.to_string(),
            if link.disabled { "disabled" } else { "active" }.to_owned(),
            link.daily_limit.map_or_else(
                || link.attempts_today.to_string(),
                |limit| format!("{} of {limit}", link.attempts_today),
            ),
        ]
    });
    table(["ID", "ACCOUNT", "NAME", "TEMPLATE", "FORMATS", "STATE", "TODAY"], rows)
}
