//! `platen template`.

mod files;
mod versions;

use std::{
    fs, io,
    io::{Read as _, Write as _},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};
use clap::{
    Args, Subcommand,
    builder::{PossibleValuesParser, TypedValueParser},
};
use platen_shared::{
    format::OutputFormat,
    id::{AccountId, TemplateId},
    name::Name,
    request::TemplateOptions,
    template::{self, Language},
    template_files::TemplateFiles,
    template_record::TemplateRecord,
};
use platen_statements::{
    OwnerScope,
    templates::{SaveOutcome, Template},
};
use serde::Serialize;

use super::{CommonArgs, Failure, ListArgs, table};
use crate::admin::{Admin, CommandBackend};

type Owned<'a> = OwnerScope<'a, CommandBackend>;

#[derive(Debug, Subcommand)]
pub(crate) enum TemplateCommand {
    /// Save a template: a new one, or with --id in place of an existing one
    Put(Put),
    /// List templates, without their markup
    List(ListArgs),
    /// Print a template's markup
    Show {
        /// Print its render options instead
        #[arg(long)]
        options: bool,
        #[command(flatten)]
        template: TemplateArgs,
    },
    /// List the earlier versions of a template that are kept
    Versions(TemplateArgs),
    /// Restore an earlier version of a template; the content that it replaces is kept as a version
    Restore {
        #[command(flatten)]
        template: TemplateArgs,
        /// The number of the version
        #[arg(value_name = "VERSION")]
        number: u32,
    },
    /// Delete a template with its versions and links; this cannot be undone
    Delete(TemplateArgs),
}

#[derive(Debug, Args)]
pub(crate) struct Put {
    /// The account's name or id
    #[arg(long, value_name = "NAME|ID")]
    account: String,
    /// The template's name, from which rendered files take theirs. Without it a template that is replaced keeps its name
    #[arg(long, required_unless_present = "id", value_parser = Name::parse)]
    name: Option<Name>,
    /// The id of the template to replace
    #[arg(long)]
    id: Option<String>,
    /// A JSON file with the render options of the template, or - for standard input. Without it a template that is
    /// replaced keeps its options
    #[arg(long, value_name = "FILE|-")]
    options: Option<PathBuf>,
    /// What the markup is written in. Without it a template that is replaced keeps its language, and a new one has
    /// placeholders
    #[arg(long, value_parser = languages())]
    language: Option<Language>,
    /// A folder with the template's files, such as pictures, fonts and style sheets: at most 50, 4 MiB in all. Hidden ones
    /// are left out. Without it a template that is replaced keeps its files
    #[arg(long, value_name = "DIR")]
    assets: Option<PathBuf>,
    /// The markup, or - for standard input
    file: PathBuf,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct TemplateArgs {
    /// The template's id
    id: String,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Serialize)]
struct TemplateWithMarkup {
    #[serde(flatten)]
    template: Template,
    html: String,
}

impl TemplateCommand {
    pub(crate) async fn run(self) -> Result<()> {
        match self {
            Self::Put(put) => put.run().await,
            Self::List(list) => {
                let (admin, account) = list.open().await?;
                let templates = admin.operator().templates(account.as_ref()).await?;
                list.common.output.print(&templates, |templates| templates_table(templates))
            }
            Self::Show { options, template: TemplateArgs { id, common } } => {
                let admin = common.open().await?;
                let account = owner(&admin, &id).await?;
                let found = admin.operator().account_scope(&account).template_content(&id).await?;
                let content = found.with_context(|| no_template(&id))?;
                if common.output.json {
                    let template = TemplateWithMarkup { template: content.template, html: content.html };
                    return common.output.print(&template, |_| String::new());
                }
                if options {
                    return Ok(io::stdout().write_all(content.template.options.lines().as_bytes())?);
                }
                // Without a newline, so that the output can be saved again unchanged.
                Ok(io::stdout().write_all(content.html.as_bytes())?)
            }
            Self::Versions(template) => versions::list(template).await,
            Self::Restore { template, number } => versions::restore(template, number).await,
            Self::Delete(TemplateArgs { id, common }) => {
                let admin = common.open().await?;
                let account = owner(&admin, &id).await?;
                let owned = admin.operator().account_scope(&account);
                let deleted = owned.template(&id).await?.with_context(|| no_template(&id))?;
                owned.delete_template(&id).await?;
                common.output.print(&deleted, |deleted| format!("deleted {} ({})", deleted.name, deleted.id))
            }
        }
    }
}

impl Put {
    async fn run(self) -> Result<()> {
        let Self { account, name, id, options, language, assets, file, common } = self;
        let input = || {
            let assets = assets.map(|folder| files::read(&folder)).transpose()?;
            anyhow::Ok((assets, read(&file)?, options.map(|file| read_options(&file)).transpose()?))
        };
        let (assets, html, options) = input().map_err(Failure::invalid)?;
        let admin = common.open().await?;
        let account = admin.account(&account).await?.id;
        let owned = admin.operator().account_scope(&account);
        let stored = match &id {
            Some(id) => Some(stored(&admin, &owned, id).await?),
            None => None,
        };
        let (of_stored, name_of_stored) =
            stored.map(|stored| ((stored.language, stored.options), Name::stored(stored.name))).unzip();
        let (of_stored, stored_options) = of_stored.unzip();
        let name = name.or(name_of_stored).context("--name is required")?;
        let language = language.or(of_stored).unwrap_or_default();
        if language == Language::Placeholders {
            warn_of_foreign_tags(&html);
        }
        let record = record(language, name, &html, options.or(stored_options).unwrap_or_default());
        let record = record.map_err(Failure::invalid)?;
        let (files, contents) = assets.unzip();
        for content in contents.into_iter().flatten() {
            owned.put_template_file(content).await?;
        }
        let saved = save(&owned, id.as_deref(), record, files.as_ref()).await?;
        let saved = saved.with_context(|| no_template(&id.unwrap_or_default()))?;
        print_saved(&common, &owned, &saved).await
    }
}

/// The template of this id, if it belongs to the account.
async fn stored(admin: &Admin, owned: &Owned<'_>, id: &str) -> Result<Template> {
    if let Some(template) = owned.template(id).await? {
        return Ok(template);
    }
    owner(admin, id).await?;
    bail!("the template {id:?} belongs to another account");
}

fn record(language: Language, name: Name, html: &str, options: TemplateOptions) -> Result<TemplateRecord> {
    Ok(match language {
        Language::Jinja => {
            let check = |text: &str| platen_jinja::check(text).map_err(|error| (error.line, error.message));
            TemplateRecord::jinja(name, html, options, check)?
        }
        Language::Placeholders => TemplateRecord::new(name, html, options)?,
    })
}

/// Saves a new template, or one in place of that with an id. `None` if there is none any more.
async fn save(
    owned: &Owned<'_>,
    id: Option<&str>,
    record: TemplateRecord,
    files: Option<&TemplateFiles>,
) -> Result<Option<TemplateId>> {
    let outcome = match id {
        None => owned.create_template(record, None, files).await?,
        // Without an expected revision there is no conflict.
        Some(id) => owned.save_template(id, record, None, files, None).await?,
    };
    match outcome {
        SaveOutcome::Saved(saved) => Ok(Some(saved)),
        SaveOutcome::FilesGone => bail!("a file was deleted meanwhile: try again"),
        SaveOutcome::Conflict(_) | SaveOutcome::NotFound => Ok(None),
    }
}

async fn print_saved(common: &CommonArgs, owned: &Owned<'_>, id: &TemplateId) -> Result<()> {
    let saved = owned.template(id.as_str()).await?.with_context(|| no_template(id.as_str()))?;
    common.output.print(&saved, |saved| {
        let names = saved.placeholders.join(", ");
        let about = match (saved.language, names.as_str()) {
            (Language::Jinja, _) => "Jinja",
            (Language::Placeholders, "") => "no placeholders",
            (Language::Placeholders, names) => names,
        };
        format!("saved {} as {}: {about}", saved.name, saved.id)
    })
}

fn languages() -> impl TypedValueParser<Value = Language> {
    PossibleValuesParser::new(Language::ALL.map(Language::name))
        .map(|name| name.parse::<Language>().unwrap_or_default())
}

fn warn_of_foreign_tags(html: &str) {
    let tags = template::foreign_tags(html);
    if !tags.is_empty() {
        let tags = tags.join(" ");
        eprintln!(
            "warning: tags of another template language stay as they are: {tags} (--language jinja for loops and conditions)"
        );
    }
}

async fn owner(admin: &Admin, id: &str) -> Result<AccountId> {
    admin.operator().owner_of_template(id).await?.with_context(|| no_template(id))
}

fn no_template(id: &str) -> String {
    format!("there is no template {id:?}: see `platen template list`")
}

/// The render options of a template, from a JSON file.
pub(super) fn read_options(file: &Path) -> Result<TemplateOptions> {
    let json = read(file)?;
    TemplateOptions::parse(json.as_bytes())
        .with_context(|| format!("{} does not have valid options", file.display()))
}

/// The text of a file, or of standard input for `-`.
pub(super) fn read(file: &Path) -> Result<String> {
    let mut bytes = Vec::new();
    if file == Path::new("-") {
        io::stdin().read_to_end(&mut bytes).context("standard input cannot be read")?;
    } else {
        bytes = fs::read(file).with_context(|| format!("{} cannot be read", file.display()))?;
    }
    String::from_utf8(bytes).with_context(|| format!("{} is not UTF-8 text", file.display()))
}

fn templates_table(templates: &[Template]) -> String {
    let rows = templates.iter().map(|template| {
        [
            template.id.to_string(),
            template.account_name.clone(),
            template.name.clone(),
            template.options.format().unwrap_or(OutputFormat::DEFAULT).extension().to_owned(),
            template.language.name().to_owned(),
            template.placeholders.join(" "),
            template.updated_at.to_string(),
        ]
    });
    table(["ID", "ACCOUNT", "NAME", "FORMAT", "LANGUAGE", "PLACEHOLDERS", "UPDATED"], rows)
}
