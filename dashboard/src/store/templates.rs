//! An account's templates and their versions.
//!
//! Invariant: a template is saved as [`platen_shared::saved`] makes it; the version before a save
//! is kept by the database itself.

use platen_component::{
    database::{Row, Value, text_or_null},
    platform,
};
use platen_shared::{
    id::TemplateId,
    name::Name,
    template,
    template_record::{self, BadMarkup, TemplateRecord},
};

use super::{StoreError, account::Account};
use crate::{
    clock::Timestamp,
    pages::templates::{Samples, Template, TemplateSummary, Version},
    scoped::Scoped,
};

const LIST: Scoped = Scoped::new(
    "SELECT id, name, placeholders, updated_at FROM templates WHERE account_id = ?1 \
     AND (?2 = '' OR instr(lower(name), lower(?2)) > 0 OR id = ?2) ORDER BY updated_at DESC, rowid DESC LIMIT ?3",
);
const GET: Scoped = Scoped::new(
    "SELECT id, name, packed_html, samples, updated_at, \
     (SELECT count(*) FROM template_versions v WHERE v.account_id = ?1 AND v.template_id = templates.id) \
     FROM templates WHERE account_id = ?1 AND id = ?2",
);
const INSERT: Scoped = Scoped::new(template_record::INSERT);
const UPDATE: Scoped = Scoped::new(template_record::UPDATE);
const DELETE: Scoped = Scoped::new("DELETE FROM templates WHERE account_id = ?1 AND id = ?2 RETURNING name");
const VERSIONS: Scoped = Scoped::new(
    "SELECT number, name, saved_at FROM template_versions WHERE account_id = ?1 AND template_id = ?2 \
     ORDER BY number DESC LIMIT ?3",
);
const VERSION: Scoped = Scoped::new(
    "SELECT number, name, saved_at, packed_html FROM template_versions \
     WHERE account_id = ?1 AND template_id = ?2 AND number = ?3",
);

/// Most rows of a list.
const LISTED: i64 = 200;

/// What came of a save.
pub(crate) enum Save {
    Done(TemplateId),
    NoSuchTemplate,
    BadMarkup(BadMarkup),
}

impl Account<'_> {
    /// The templates whose names hold this text, the last changed first.
    pub(crate) async fn templates(&self, search: &str) -> Result<Vec<TemplateSummary>, StoreError> {
        let rows = self.rows(LIST, [search.into(), LISTED.into()]).await?;
        let read = |row: &Row| -> Result<TemplateSummary, StoreError> {
            Ok(TemplateSummary {
                id: row.text(0)?,
                name: row.text(1)?,
                placeholders: serde_json::from_str(&row.text(2)?)?,
                updated: Timestamp(row.number(3)?),
            })
        };
        rows.iter().map(read).collect()
    }

    /// One template.
    pub(crate) async fn template(&self, id: &str) -> Result<Option<Template>, StoreError> {
        let Some(row) = self.one_row(GET, [id.into()]).await? else { return Ok(None) };
        Ok(Some(Template {
            id: TemplateId::from_text(row.text(0)?),
            name: row.text(1)?,
            html: template::unpack(row.bytes(2)?)?,
            samples: serde_json::from_str(&row.text(3)?)?,
            updated: Timestamp(row.number(4)?),
            versions: row.number(5)?,
        }))
    }

    /// Saves a template: a new one, or in place of `id`. Samples stay if they are not given.
    pub(crate) async fn save_template(
        &self,
        id: Option<&str>,
        name: Name,
        html: &str,
        samples: Option<&Samples>,
    ) -> Result<Save, StoreError> {
        let columns = match TemplateRecord::new(name, html) {
            Ok(columns) => columns,
            Err(error) => return Ok(Save::BadMarkup(error)),
        };
        let samples = samples.map(serde_json::to_string).transpose()?;
        let new_id = TemplateId::from_random(platform::random());
        let (sql, action, id) = match id {
            None => (INSERT, "created template", new_id),
            Some(id) => (UPDATE, "saved template", TemplateId::from_text(id)),
        };
        let name = columns.name.to_string();
        let values = [
            id.as_str().into(),
            name.as_str().into(),
            Value::Blob(columns.packed_html),
            columns.placeholders.into(),
            self.now().into(),
            text_or_null(samples.as_deref()),
        ];
        if self.one_row(sql, values).await?.is_none() {
            return Ok(Save::NoSuchTemplate);
        }
        self.audit(action, &name).await?;
        Ok(Save::Done(id))
    }

    /// Deletes a template with its versions; `false` if there is none.
    pub(crate) async fn delete_template(&self, id: &str) -> Result<bool, StoreError> {
        let Some(row) = self.one_row(DELETE, [id.into()]).await? else { return Ok(false) };
        self.audit("deleted template", &row.text(0)?).await?;
        Ok(true)
    }

    /// The earlier versions of a template, the newest first.
    pub(crate) async fn versions(&self, id: &str) -> Result<Vec<Version>, StoreError> {
        let rows = self.rows(VERSIONS, [id.into(), LISTED.into()]).await?;
        rows.iter().map(|row| read_version(row, String::new())).collect()
    }

    /// One earlier version.
    pub(crate) async fn version(&self, id: &str, number: u32) -> Result<Option<Version>, StoreError> {
        let Some(row) = self.one_row(VERSION, [id.into(), number.into()]).await? else { return Ok(None) };
        let html = template::unpack(row.bytes(3)?)?;
        read_version(&row, html).map(Some)
    }
}

fn read_version(row: &Row, html: String) -> Result<Version, StoreError> {
    Ok(Version { number: row.number(0)?, name: row.text(1)?, saved: Timestamp(row.number(2)?), html })
}
