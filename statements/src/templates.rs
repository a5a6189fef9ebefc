//! Saved templates and their versions. A trigger of the schema keeps the version that a save replaces.

use std::collections::BTreeMap;

use platen_shared::{
    id::{AccountId, TemplateId},
    template,
    template_record::TemplateRecord,
};
use serde_json::json;

use crate::{
    AccountScope, Backend, DataError, Operator, Row, Timestamp,
    backend::{FromRow, Query as _, record, values},
    scoped::Scoped,
};

record! {
    /// A template without its markup.
    pub struct Template {
        pub id: TemplateId,
        pub account: AccountId,
        pub account_name: String,
        pub name: String,
        /// The placeholder names in the markup.
        pub placeholders: Vec<String>,
        pub created_at: Timestamp,
        pub updated_at: Timestamp,
    }
}

/// A template with its markup and what belongs to it.
#[derive(Debug, Clone)]
pub struct TemplateContent {
    /// The template without its markup.
    pub template: Template,
    /// The markup.
    pub html: String,
    /// Sample values by placeholder.
    pub samples: BTreeMap<String, String>,
    /// Number of earlier versions.
    pub versions: u32,
}

record! {
    /// An earlier version.
    pub struct Version {
        /// From 1, in the order of the saves.
        pub number: u32,
        pub name: String,
        pub saved_at: Timestamp,
    }
}

macro_rules! select_templates {
    ($columns:literal, $rest:literal) => {
        concat!(
            "SELECT t.id, account_id, a.name, t.name, placeholders, t.created_at, updated_at ",
            $columns,
            " FROM templates t JOIN accounts a ON a.id = account_id ",
            $rest
        )
    };
}

const EVERY: &str = select_templates!("", "ORDER BY t.rowid");
const OWNER: &str = "SELECT account_id FROM templates WHERE id = ?1";
const LIST: Scoped = Scoped::new(select_templates!("", "WHERE account_id = ?1 ORDER BY t.rowid"));
const SEARCH: Scoped = Scoped::new(select_templates!(
    "",
    "WHERE account_id = ?1 AND (?2 = '' OR instr(lower(t.name), lower(?2)) > 0 OR t.id = ?2) \
     ORDER BY updated_at DESC, t.rowid DESC LIMIT ?3"
));
const GET: Scoped = Scoped::new(select_templates!("", "WHERE account_id = ?1 AND t.id = ?2"));
const GET_CONTENT: Scoped = Scoped::new(select_templates!(
    ", packed_html, samples, \
     (SELECT count(*) FROM template_versions v WHERE v.account_id = ?1 AND v.template_id = t.id)",
    "WHERE account_id = ?1 AND t.id = ?2"
));
const INSERT: Scoped = Scoped::new(
    "INSERT INTO templates \
     (account_id, id, name, packed_html, placeholders, created_at, updated_at, samples, last_change) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, coalesce(?7, '{}'), ?8) RETURNING id",
);
const UPDATE: Scoped = Scoped::new(
    "UPDATE templates SET name = ?3, packed_html = ?4, placeholders = ?5, updated_at = ?6, \
     samples = coalesce(?7, samples), last_change = ?8 WHERE account_id = ?1 AND id = ?2 RETURNING id",
);
const DELETE: Scoped =
    Scoped::new("UPDATE templates SET last_change = ?3 WHERE account_id = ?1 AND id = ?2 RETURNING id");
const VERSIONS: Scoped = Scoped::new(
    "SELECT number, name, saved_at FROM template_versions WHERE account_id = ?1 AND template_id = ?2 \
     ORDER BY number DESC LIMIT ?3",
);
const VERSION: Scoped = Scoped::new(
    "SELECT number, name, saved_at, packed_html FROM template_versions \
     WHERE account_id = ?1 AND template_id = ?2 AND number = ?3",
);

/// Rows of a page's list.
const MAX_LISTED: i64 = 200;

impl<B: Backend> Operator<'_, B> {
    /// The templates of all accounts, the oldest first.
    pub async fn templates(&self) -> Result<Vec<Template>, B::Error> {
        self.store.backend.all(EVERY, values![]).await
    }

    /// The account that owns a template.
    pub async fn owner_of_template(&self, id: &str) -> Result<Option<AccountId>, B::Error> {
        Ok(self.store.backend.first(OWNER, values![id]).await?.map(|(account,)| account))
    }
}

impl<B: Backend> AccountScope<'_, B> {
    /// Every template, the oldest first.
    pub async fn templates(&self) -> Result<Vec<Template>, B::Error> {
        self.all(LIST, values![]).await
    }

    /// The last saved templates that have this id or whose names contain this text, the newest first.
    pub async fn search_templates(&self, text: &str) -> Result<Vec<Template>, B::Error> {
        self.all(SEARCH, values![text, MAX_LISTED]).await
    }

    /// One template.
    pub async fn template(&self, id: &str) -> Result<Option<Template>, B::Error> {
        self.first(GET, values![id]).await
    }

    /// One template with its markup.
    pub async fn template_content(&self, id: &str) -> Result<Option<TemplateContent>, B::Error> {
        self.first(GET_CONTENT, values![id]).await
    }

    /// Saves a template: a new one, or in place of `id`; `None` if the account has no template `id`.
    /// Without samples a template keeps its samples.
    pub async fn save_template(
        &self,
        id: Option<&str>,
        record: TemplateRecord,
        samples: Option<&BTreeMap<String, String>>,
    ) -> Result<Option<TemplateId>, B::Error> {
        let (sql, action, id) = match id {
            None => (INSERT, "created template", TemplateId::from_random(self.random()?)),
            Some(id) => (UPDATE, "saved template", TemplateId::from_text(id)),
        };
        let TemplateRecord { name, packed_html, placeholders } = record;
        let samples = samples.map(|samples| json!(samples).to_string());
        let (now, change) = (self.now(), self.change(action));
        let values = values![&id, name.as_str(), packed_html, placeholders, now, samples, change];
        Ok(self.run(sql, values).await?.then_some(id))
    }

    /// Deletes a template with its versions; `false` if there is no such template.
    pub async fn delete_template(&self, id: &str) -> Result<bool, B::Error> {
        self.run(DELETE, values![id, self.change("deleted template").deletes()]).await
    }

    /// The last earlier versions of a template, the newest first.
    pub async fn versions(&self, id: &str) -> Result<Vec<Version>, B::Error> {
        self.all(VERSIONS, values![id, MAX_LISTED]).await
    }

    /// One earlier version with its markup.
    pub async fn version(&self, id: &str, number: u32) -> Result<Option<(Version, String)>, B::Error> {
        self.first(VERSION, values![id, number]).await
    }
}

impl FromRow for TemplateContent {
    fn from_row(row: &mut Row) -> Result<Self, DataError> {
        let template = Template::from_row(row)?;
        let html = template::unpack(&row.next::<Vec<u8>>()?)?;
        Ok(Self { template, html, samples: row.next()?, versions: row.next()? })
    }
}

impl FromRow for (Version, String) {
    fn from_row(row: &mut Row) -> Result<Self, DataError> {
        Ok((Version::from_row(row)?, template::unpack(&row.next::<Vec<u8>>()?)?))
    }
}
