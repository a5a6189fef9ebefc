//! The earlier versions of a template.

use anyhow::{Context as _, Result};
use platen_shared::{name::Name, template_record::TemplateRecord};
use platen_statements::templates::{Version, VersionContent};

use super::{TemplateArgs, no_template, owner, print_saved, record, save};
use crate::cli::table;

/// Lists the versions that are kept, the newest first.
pub(super) async fn list(TemplateArgs { id, common }: TemplateArgs) -> Result<()> {
    let admin = common.open().await?;
    let account = owner(&admin, &id).await?;
    let versions = admin.operator().account_scope(&account).versions(&id).await?;
    common.output.print(&versions, |versions| versions_table(versions))
}

/// Saves the content of a version in place of the current one, which is then a version.
pub(super) async fn restore(TemplateArgs { id, common }: TemplateArgs, number: u32) -> Result<()> {
    let admin = common.open().await?;
    let account = owner(&admin, &id).await?;
    let owned = admin.operator().account_scope(&account);
    let none = || format!("the template has no version {number}: see `platen template versions {id}`");
    let VersionContent { version, language, options, files, html } =
        owned.version(&id, number).await?.with_context(none)?;
    let record: TemplateRecord = record(language, Name::stored(version.name), &html, options)?;
    let saved = save(&owned, Some(&id), record, Some(&files)).await?;
    let saved = saved.with_context(|| no_template(&id))?;
    print_saved(&common, &owned, &saved).await
}

fn versions_table(versions: &[Version]) -> String {
    let rows = versions.iter().map(|version| {
        let Version { number, name, saved_at, saved_by } = version;
        [number.to_string(), name.clone(), saved_at.to_string(), saved_by.clone()]
    });
    table(["VERSION", "NAME", "SAVED", "BY"], rows)
}
