//! `platen template`.

use std::{
    fs, io,
    io::{Read as _, Write as _},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use clap::Subcommand;

use super::{Common, table};
use crate::admin::{self, templates::Template as Record};

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Template {
    /// Save a template: a new one, or with --id in place of one that is there
    Put {
        /// The account's name or id
        #[arg(long, value_name = "NAME|ID")]
        account: String,
        /// The template's name, which files rendered from it are named after
        #[arg(long)]
        name: String,
        /// The template to replace
        #[arg(long)]
        id: Option<String>,
        /// The markup, or - for standard input
        file: PathBuf,
        #[command(flatten)]
        common: Common,
    },
    /// List templates, without their markup
    List {
        /// Only this account's: its name or id
        #[arg(long, value_name = "NAME|ID")]
        account: Option<String>,
        #[command(flatten)]
        common: Common,
    },
    /// Print a template's markup
    Show {
        /// The template's id
        id: String,
        #[command(flatten)]
        common: Common,
    },
    /// Delete a template
    Delete {
        /// The template's id
        id: String,
        #[command(flatten)]
        common: Common,
    },
}

impl Template {
    /// Runs the command.
    pub(crate) async fn run(self) -> Result<()> {
        match self {
            Self::Put { account, name, id, file, common } => {
                let html = read(&file)?;
                let database = common.open().await?;
                let saved = admin::templates::put(&database, &account, &name, &html, id.as_deref()).await?;
                common.form.print(&saved, |saved| {
                    let names = saved.placeholders.join(", ");
                    let placeholders = if names.is_empty() { "no placeholders" } else { &names };
                    format!("saved {} as {}: {placeholders}", saved.name, saved.id)
                })
            }
            Self::List { account, common } => {
                let list = admin::templates::list(&common.open().await?, account.as_deref()).await?;
                common.form.print(&list, |list| listed(list))
            }
            Self::Show { id, common } => {
                let shown = admin::templates::show(&common.open().await?, &id).await?;
                if common.form.json {
                    return common.form.print(&shown, |_| String::new());
                }
                // Byte for byte, so that it can be put again as it is.
                Ok(io::stdout().write_all(shown.html.as_bytes())?)
            }
            Self::Delete { id, common } => {
                let deleted = admin::templates::delete(&common.open().await?, &id).await?;
                common.form.print(&deleted, |deleted| format!("deleted {} ({})", deleted.name, deleted.id))
            }
        }
    }
}

/// A file's text, or standard input's.
pub(super) fn read(file: &Path) -> Result<String> {
    let mut bytes = Vec::new();
    if file == Path::new("-") {
        io::stdin().read_to_end(&mut bytes).context("standard input cannot be read")?;
    } else {
        bytes = fs::read(file).with_context(|| format!("{} cannot be read", file.display()))?;
    }
    String::from_utf8(bytes).with_context(|| format!("{} is not UTF-8 text", file.display()))
}

fn listed(list: &[Record]) -> String {
    let rows = list.iter().map(|template| {
        [
            template.id.to_string(),
            template.account_name.clone(),
            template.name.clone(),
            template.placeholders.join(" "),
            template.updated_at.clone(),
        ]
    });
    table(["ID", "ACCOUNT", "NAME", "PLACEHOLDERS", "UPDATED"], rows)
}
