//! Saved templates.
//!
//! Invariant: a template is saved as [`platen_shared::template_record`] makes it, as the dashboard does too.

use platen_shared::{
    id::{AccountId, TemplateId},
    name::Name,
    template,
    template_record::{self, TemplateRecord},
};
use serde::Serialize;

use super::{AdminError, Columns, accounts, audit, now, random};
use crate::db::{Database, Row, Value};

/// A template without its markup.
#[derive(Debug, Serialize)]
pub(crate) struct Template {
    /// Its id.
    pub(crate) id: TemplateId,
    /// Its account.
    pub(crate) account: AccountId,
    /// Its account's name.
    pub(crate) account_name: String,
    /// Its name.
    pub(crate) name: String,
    /// The names its markup uses.
    pub(crate) placeholders: Vec<String>,
    /// ISO 8601, UTC.
    pub(crate) created_at: String,
    /// ISO 8601, UTC.
    pub(crate) updated_at: String,
}

/// A template with its markup.
#[derive(Debug, Serialize)]
pub(crate) struct Shown {
    #[serde(flatten)]
    template: Template,
    /// The markup.
    pub(crate) html: String,
}

const COLUMNS: &str = "templates.id, account_id, accounts.name, templates.name, placeholders, \
    strftime('%Y-%m-%dT%H:%M:%SZ', templates.created_at, 'unixepoch'), \
    strftime('%Y-%m-%dT%H:%M:%SZ', templates.updated_at, 'unixepoch')";
const TABLES: &str = "templates JOIN accounts ON accounts.id = account_id";

/// Saves a template: a new one, or in place of `id`.
pub(crate) async fn put(
    database: &Database,
    account: &str,
    name: &str,
    html: &str,
    id: Option<&str>,
) -> Result<Template, AdminError> {
    let columns = TemplateRecord::new(Name::parse(name)?, html)?;
    let account = accounts::find(database, account).await?;
    let new_id = TemplateId::from_random(random()?);
    let (sql, action, id) = match id {
        None => (template_record::INSERT, "created template", new_id.as_str()),
        Some(id) => (template_record::UPDATE, "saved template", id),
    };
    let parameters = vec![
        account.id.as_str().into(),
        id.into(),
        columns.name.as_str().into(),
        columns.packed_html.into(),
        columns.placeholders.into(),
        now().into(),
        Value::Null,
    ];
    let saved = database.connect().query(sql, parameters).await?;
    let template = find(database, id).await?;
    if saved.is_empty() {
        return Err(AdminError::ForeignTemplate(id.to_owned()));
    }
    audit(&database.connect(), Some(&template.account), action, &template.name).await?;
    Ok(template)
}

/// Every template, or those of one account; the oldest first.
pub(crate) async fn list(database: &Database, account: Option<&str>) -> Result<Vec<Template>, AdminError> {
    let account = match account {
        Some(account) => Some(accounts::find(database, account).await?.id.as_str().to_owned()),
        None => None,
    };
    let sql = format!(
        "SELECT {COLUMNS} FROM {TABLES} WHERE ?1 IS NULL OR account_id = ?1 \
            ORDER BY templates.rowid"
    );
    let rows = database.connect().query(&sql, vec![account.into()]).await?;
    rows.into_iter().map(|row| read(&mut Columns::of(row))).collect()
}

/// One template with its markup.
pub(crate) async fn show(database: &Database, id: &str) -> Result<Shown, AdminError> {
    let sql = format!("SELECT {COLUMNS}, packed_html FROM {TABLES} WHERE templates.id = ?1");
    let mut columns = first(database.connect().query(&sql, vec![id.into()]).await?, id)?;
    Ok(Shown {
        template: read(&mut columns)?,
        html: template::unpack(&columns.blob()?).map_err(|_| AdminError::Unexpected)?,
    })
}

/// Deletes a template and returns what it was.
pub(crate) async fn delete(database: &Database, id: &str) -> Result<Template, AdminError> {
    let template = find(database, id).await?;
    database.connect().query("DELETE FROM templates WHERE id = ?1 RETURNING id", vec![id.into()]).await?;
    audit(&database.connect(), Some(&template.account), "deleted template", &template.name).await?;
    Ok(template)
}

async fn find(database: &Database, id: &str) -> Result<Template, AdminError> {
    let sql = format!("SELECT {COLUMNS} FROM {TABLES} WHERE templates.id = ?1");
    read(&mut first(database.connect().query(&sql, vec![id.into()]).await?, id)?)
}

fn first(rows: Vec<Row>, id: &str) -> Result<Columns, AdminError> {
    rows.into_iter().next().map(Columns::of).ok_or_else(|| AdminError::NoTemplate(id.to_owned()))
}

fn read(columns: &mut Columns) -> Result<Template, AdminError> {
    Ok(Template {
        id: TemplateId::from_text(columns.text()?),
        account: AccountId::from_text(columns.text()?),
        account_name: columns.text()?,
        name: columns.text()?,
        placeholders: serde_json::from_str(&columns.text()?).map_err(|_| AdminError::Unexpected)?,
        created_at: columns.text()?,
        updated_at: columns.text()?,
    })
}
