//! Saved templates and their versions. A trigger of the schema keeps the version that a save replaces.

use std::collections::{BTreeMap, BTreeSet};

use platen_shared::{
    id::{AccountId, TemplateId},
    request::TemplateOptions,
    template::{self, Language},
    template_files::TemplateFiles,
    template_record::TemplateRecord,
};
use serde_json::json;

use crate::{
    AccountScope, Backend, DataError, Operator, OwnerScope, Row, Timestamp, Value,
    backend::{FromRow, Query as _, record, values},
    scope::Scoped,
};

record! {
    /// A template without its markup.
    pub struct Template {
        pub id: TemplateId,
        pub account: AccountId,
        pub account_name: String,
        pub name: String,
        /// The placeholder names in the markup and the options.
        pub placeholders: Vec<String>,
        pub language: Language,
        pub options: TemplateOptions,
        pub files: TemplateFiles,
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
    /// Sample values: a JSON object, of a template with placeholders one of texts.
    pub samples: String,
    /// Number of earlier versions.
    pub versions: u32,
    /// The number from 1; each save adds 1.
    pub revision: u32,
    /// Who saved it last: an e-mail address, or `command line`.
    pub saved_by: String,
    /// The names that values may have; see [`TemplateRecord`].
    pub names: BTreeSet<String>,
}

impl TemplateContent {
    /// The sample values by placeholder.
    #[must_use]
    pub fn sample_texts(&self) -> BTreeMap<String, String> {
        serde_json::from_str(&self.samples).unwrap_or_default()
    }
}

/// The outcome of a save.
#[derive(Debug)]
pub enum SaveOutcome {
    /// The template is saved.
    Saved(TemplateId),
    /// Nothing is saved: the stored template, given here, has another revision than the expected one.
    Conflict(Box<TemplateContent>),
    /// The account has no such template.
    NotFound,
    /// Nothing is saved: a content of the files is not stored any more.
    FilesGone,
}

record! {
    /// An earlier version.
    pub struct Version {
        /// The number from 1, in the order of the saves.
        pub number: u32,
        pub name: String,
        pub saved_at: Timestamp,
        /// An e-mail address, or `command line`.
        pub saved_by: String,
    }
}

/// An earlier version with its content.
#[derive(Debug, Clone)]
pub struct VersionContent {
    /// The version without its content.
    pub version: Version,
    /// What it is written in.
    pub language: Language,
    /// The options.
    pub options: TemplateOptions,
    /// The files.
    pub files: TemplateFiles,
    /// The markup.
    pub html: String,
}

/// The condition that the contents of the files `?12` are stored.
macro_rules! has_files {
    () => {
        "NOT EXISTS (SELECT 1 FROM json_each(?12) f WHERE NOT EXISTS (SELECT 1 FROM template_files c \
         WHERE c.account_id = ?1 AND c.hash = f.value ->> 'hash'))"
    };
}

macro_rules! select_templates {
    ($columns:literal, $rest:literal) => {
        concat!(
            "SELECT t.id, account_id, a.name, t.name, \
             (SELECT json_group_array(value) FROM (SELECT DISTINCT p.value FROM json_each(placeholders) f, \
             json_each(f.value) p ORDER BY 1)), language, options, files, t.created_at, updated_at ",
            $columns,
            " FROM templates t JOIN accounts a ON a.id = account_id ",
            $rest
        )
    };
}

const EVERY: &str = select_templates!("", "WHERE ?1 IS NULL OR account_id = ?1 ORDER BY t.rowid");
const OWNER: &str = "SELECT account_id FROM templates WHERE id = ?1";
const COUNT: Scoped = Scoped::new("SELECT count(*) FROM templates WHERE account_id = ?1");
const NAMES: Scoped = Scoped::new(
    "SELECT id, name FROM templates WHERE account_id = ?1 ORDER BY updated_at DESC, rowid DESC LIMIT ?2 OFFSET ?3",
);
const SOME: Scoped = Scoped::new(select_templates!(
    "",
    "WHERE account_id = ?1 AND t.id IN (SELECT value FROM json_each(?2)) ORDER BY updated_at DESC, t.rowid DESC"
));
const GET: Scoped = Scoped::new(select_templates!("", "WHERE account_id = ?1 AND t.id = ?2"));
const GET_CONTENT: Scoped = Scoped::new(select_templates!(
    ", packed_html, samples, \
     (SELECT count(*) FROM template_versions v WHERE v.account_id = ?1 AND v.template_id = t.id), \
     revision, saved_by, names",
    "WHERE account_id = ?1 AND t.id = ?2"
));
const INSERT: Scoped = Scoped::new(concat!(
    "INSERT INTO templates \
     (account_id, id, name, packed_html, placeholders, options, created_at, updated_at, samples, last_change, saved_by, \
     language, files, names) \
     SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7, coalesce(?8, '{}'), ?9, ?10, ?11, coalesce(?12, '{}'), ?13 WHERE ",
    has_files!(),
    " RETURNING id"
));
const UPDATE: Scoped = Scoped::new(concat!(
    "UPDATE templates SET name = ?3, packed_html = ?4, placeholders = ?5, options = ?6, updated_at = ?7, \
     samples = coalesce(?8, samples), last_change = ?9, saved_by = ?10, language = ?11, files = coalesce(?12, files), \
     names = ?13, revision = revision + 1 WHERE account_id = ?1 AND id = ?2 AND revision = coalesce(?14, revision) AND ",
    has_files!(),
    " RETURNING id"
));
const DELETE: Scoped =
    Scoped::new("UPDATE templates SET last_change = ?3 WHERE account_id = ?1 AND id = ?2 RETURNING id");
const VERSIONS: Scoped = Scoped::new(
    "SELECT number, name, saved_at, saved_by FROM template_versions WHERE account_id = ?1 AND template_id = ?2 \
     ORDER BY number DESC LIMIT ?3",
);
const VERSION: Scoped = Scoped::new(
    "SELECT number, name, saved_at, saved_by, language, options, files, packed_html FROM template_versions \
     WHERE account_id = ?1 AND template_id = ?2 AND number = ?3",
);
/// Rows of a page's list.
const MAX_LISTED: i64 = 200;

impl<B: Backend> Operator<'_, B> {
    /// The templates of all accounts or of one, the oldest first.
    pub async fn templates(&self, account: Option<&AccountId>) -> Result<Vec<Template>, B::Error> {
        self.store.backend.all(EVERY, values![account]).await
    }

    /// The account that owns a template.
    pub async fn owner_of_template(&self, id: &str) -> Result<Option<AccountId>, B::Error> {
        Ok(self.store.backend.first(OWNER, values![id]).await?.map(|(account,)| account))
    }
}

impl<B: Backend> AccountScope<'_, B> {
    /// The number of templates.
    pub async fn count_templates(&self) -> Result<u64, B::Error> {
        Ok(self.first(COUNT, values![]).await?.map_or(0, |(count,)| count))
    }

    /// Ids and names of templates, the last saved first: at most `limit`, after the first `offset`.
    pub async fn template_names(
        &self,
        limit: u64,
        offset: u64,
    ) -> Result<Vec<(TemplateId, String)>, B::Error> {
        self.all(NAMES, values![limit, offset]).await
    }

    /// The templates with these ids, the last saved first.
    pub async fn templates_of(&self, ids: &[TemplateId]) -> Result<Vec<Template>, B::Error> {
        self.all(SOME, values![json!(ids).to_string()]).await
    }

    /// One template.
    pub async fn template(&self, id: &str) -> Result<Option<Template>, B::Error> {
        self.first(GET, values![id]).await
    }

    /// One template with its markup.
    pub async fn template_content(&self, id: &str) -> Result<Option<TemplateContent>, B::Error> {
        self.first(GET_CONTENT, values![id]).await
    }

    /// Creates a template. Samples are a JSON object.
    pub async fn create_template(
        &self,
        record: TemplateRecord,
        samples: Option<&str>,
        files: Option<&TemplateFiles>,
    ) -> Result<SaveOutcome, B::Error> {
        let id = TemplateId::from_random(self.random()?);
        let values = self.saved_values(&id, record, samples, files, "created template");
        let is_created = self.run(INSERT, values).await?;
        Ok(if is_created { SaveOutcome::Saved(id) } else { SaveOutcome::FilesGone })
    }

    /// Saves a template in place of the stored one, which keeps its samples without new ones, and its files;
    /// with an expected revision, only in place of that one.
    pub async fn save_template(
        &self,
        id: &str,
        record: TemplateRecord,
        samples: Option<&str>,
        files: Option<&TemplateFiles>,
        expected: Option<u32>,
    ) -> Result<SaveOutcome, B::Error> {
        let id = TemplateId::from_text(id);
        let mut values = self.saved_values(&id, record.clone(), samples, files, "saved template");
        values.push(expected.into());
        if self.run(UPDATE, values).await? {
            return Ok(SaveOutcome::Saved(id));
        }
        let Some(stored) = self.template_content(id.as_str()).await? else {
            return Ok(SaveOutcome::NotFound);
        };
        // A statement is repeated when its result was lost; the repetition finds its own revision.
        let is_same = stored.template.name == record.name.as_str()
            && template::unpack(&record.packed_html).is_ok_and(|html| html == stored.html)
            && record.options == stored.template.options
            && record.language == stored.template.language
            && samples.is_none_or(|samples| *samples == stored.samples)
            && files.is_none_or(|files| *files == stored.template.files);
        Ok(if is_same {
            SaveOutcome::Saved(id)
        } else if expected.is_none_or(|expected| expected == stored.revision) {
            SaveOutcome::FilesGone
        } else {
            SaveOutcome::Conflict(Box::new(stored))
        })
    }

    /// The values of [`INSERT`] and the first of [`UPDATE`].
    fn saved_values(
        &self,
        id: &TemplateId,
        record: TemplateRecord,
        samples: Option<&str>,
        files: Option<&TemplateFiles>,
        action: &str,
    ) -> Vec<Value> {
        let TemplateRecord { name, packed_html, language, options, placeholders, names } = record;
        let (samples, files) = (samples.map(str::to_owned), files.map(TemplateFiles::as_json));
        let (now, change) = (self.now(), self.change(action));
        let options = options.as_json();
        let actor = self.actor();
        values![
            id,
            name.as_str(),
            packed_html,
            placeholders,
            options,
            now,
            samples,
            change,
            actor,
            language,
            files,
            json!(names).to_string()
        ]
    }

    /// The last earlier versions of a template, the newest first.
    pub async fn versions(&self, id: &str) -> Result<Vec<Version>, B::Error> {
        self.all(VERSIONS, values![id, MAX_LISTED]).await
    }

    /// One earlier version with its content.
    pub async fn version(&self, id: &str, number: u32) -> Result<Option<VersionContent>, B::Error> {
        self.first(VERSION, values![id, number]).await
    }
}

impl<B: Backend> OwnerScope<'_, B> {
    /// Deletes a template with its versions; `false` if there is no such template.
    pub async fn delete_template(&self, id: &str) -> Result<bool, B::Error> {
        self.run(DELETE, values![id, self.change("deleted template").deletes()]).await
    }
}

impl FromRow for TemplateContent {
    fn from_row(row: &mut Row) -> Result<Self, DataError> {
        let template = Template::from_row(row)?;
        let html = template::unpack(&row.next::<Vec<u8>>()?)?;
        Ok(Self {
            template,
            html,
            samples: row.next()?,
            versions: row.next()?,
            revision: row.next()?,
            saved_by: row.next()?,
            names: row.next()?,
        })
    }
}

impl FromRow for VersionContent {
    fn from_row(row: &mut Row) -> Result<Self, DataError> {
        let (version, language, options) = (Version::from_row(row)?, row.next()?, row.next()?);
        let (files, packed_html) = (row.next()?, row.next::<Vec<u8>>()?);
        Ok(Self { version, language, options, files, html: template::unpack(&packed_html)? })
    }
}
