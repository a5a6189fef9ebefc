//! `platen mcp`: a server of the Model Context Protocol on standard input and output.
//!
//! Invariant: standard output has messages of the protocol only, and no message or log line has the key. When standard
//! input ends, no browser and no temporary file is left.

mod picture;
mod renderer;
mod schema;
mod tools;

use std::{path::PathBuf, sync::Arc};

use anyhow::{Context as _, Result, bail, ensure};
use clap::Args;
use platen_program::startup;
use platen_shared::key::ApiKey;
use rmcp::{ServiceExt as _, service::ServerInitializeError, transport::stdio};
use secrecy::ExposeSecret as _;
use url::Url;

use self::{
    renderer::{Renderer, SavedTemplates},
    tools::Tools,
};
use super::{DatabaseArgs, Failure, link, link::Signer};
use crate::db::Location;

/// Serve tools that render to a program with a language model: the Model Context Protocol over stdio
///
/// A server renders with --url and a key in the environment variable `PLATEN_KEY`. Otherwise this process renders, as
/// `platen render` does. The tools know the templates of a database.
#[derive(Debug, Args)]
pub(crate) struct McpCommand {
    /// The server that renders, whose API key is read from --key-file or the environment variable `PLATEN_KEY`.
    /// Without it this process renders
    #[arg(long, env = "PLATEN_URL", value_name = "URL")]
    url: Option<String>,

    /// File that holds the API key
    #[arg(long, env = "PLATEN_KEY_FILE", value_name = "FILE")]
    key_file: Option<PathBuf>,

    /// File that holds the secret of a link, with which a tool signs addresses; instead of the environment variable
    /// `PLATEN_LINK_SECRET`
    #[arg(long, env = "PLATEN_LINK_SECRET_FILE", value_name = "FILE")]
    link_secret_file: Option<PathBuf>,

    /// The directory in which tools may write files, and read pages with the files of their folders
    #[arg(long, value_name = "DIR", default_value = ".")]
    directory: PathBuf,

    #[command(flatten)]
    database: DatabaseArgs,

    #[command(flatten)]
    farm: platen_farm::Config,
}

impl McpCommand {
    pub(crate) async fn run(self) -> Result<()> {
        let directory = self.directory.canonicalize().with_context(|| {
            format!("the directory {} of --directory cannot be used", self.directory.display())
        });
        let directory = directory.map_err(Failure::invalid)?;
        let server = self.server().map_err(Failure::invalid)?;
        let templates = self.templates(server.as_ref().map(|(_, key)| key)).await?;
        let signer = self.signer(server.as_ref().map(|(url, _)| url)).map_err(Failure::invalid)?;
        let renderer = match server {
            Some((url, key)) => Renderer::server(&url, key)?,
            None => Renderer::local(self.farm),
        };
        let tools = Arc::new(Tools::new(renderer, templates, signer, directory));
        let stop = startup::stop_signal()?;
        match Arc::clone(&tools).serve_with_ct(stdio(), stop).await {
            Ok(service) => {
                service.waiting().await?;
            }
            Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => {}
            // Its message shows what the client has sent.
            Err(ServerInitializeError::ExpectedInitializeRequest(_)) => {
                bail!("the client did not begin with a request to initialize")
            }
            Err(error) => return Err(error.into()),
        }
        tools.close().await;
        Ok(())
    }

    /// The server that renders, and the key.
    fn server(&self) -> Result<Option<(Url, ApiKey)>> {
        let key = platen_program::secret("PLATEN_KEY", self.key_file.as_deref())?;
        let Some(url) = &self.url else {
            ensure!(
                key.is_none(),
                "PLATEN_KEY is set and PLATEN_URL is not: set the server's URL, or unset the key to render in this process"
            );
            return Ok(None);
        };
        let parsed = Url::parse(url).ok().filter(|url| {
            matches!(url.scheme(), "http" | "https")
                && url.username().is_empty()
                && url.password().is_none()
                && url.query().is_none()
                && url.fragment().is_none()
        });
        let url = parsed.context(
            "PLATEN_URL or --url must be an http or https URL without a user, such as http://127.0.0.1:3000",
        )?;
        let key = key.context(
            "PLATEN_URL is set and PLATEN_KEY is not: set an API key, or unset the URL to render in this process",
        )?;
        let key = ApiKey::parse(key.expose_secret())
            .context("PLATEN_KEY is not an API key: see `platen key create`")?;
        Ok(Some((url, key)))
    }

    /// What signs addresses of a link, if there is its secret.
    fn signer(&self, url: Option<&Url>) -> Result<Option<Signer>> {
        let Some(secret) = link::secret(self.link_secret_file.as_deref())? else { return Ok(None) };
        let url = url.cloned().map_or_else(|| Url::parse(link::DEFAULT_URL), Ok)?;
        Ok(Some(Signer { url, secret }))
    }

    /// The templates of the database, if there is one; where a server renders, those of the key's account.
    async fn templates(&self, key: Option<&ApiKey>) -> Result<Option<SavedTemplates>> {
        if let (None, Location::File(path)) = (&self.database.db, self.database.location())
            && !path.exists()
        {
            tracing::info!(path = %path.display(), "there is no database, so templates are not listed");
            return Ok(None);
        }
        let admin = self.database.admin().await?;
        let Some(key) = key else { return Ok(Some(SavedTemplates { admin, account: None })) };
        let account = admin.operator().account_of_key(key).await?;
        if account.is_none() {
            tracing::warn!("the database does not have the key of PLATEN_KEY, so templates are not listed");
        }
        Ok(account.map(|account| SavedTemplates { admin, account: Some(account) }))
    }
}
