//! Contents of the files of templates, each once for an account. The schema's triggers count their uses, and delete those
//! that have had none for a day.

use std::collections::BTreeMap;

use platen_shared::{
    id::AccountId,
    job::{ContentHash, DamagedFile},
};
use serde_json::json;

use crate::{
    AccountScope, Backend, DataError, Row,
    backend::{FromRow, Query as _, values},
    scope::Scoped,
};

/// A content that was put again is as new: the save that it is for comes next.
const PUT: Scoped = Scoped::new(
    "INSERT INTO template_files (account_id, hash, put_at, content) VALUES (?1, ?2, ?3, ?4) \
     ON CONFLICT (account_id, hash) DO UPDATE SET put_at = excluded.put_at, content = excluded.content",
);
const SIZES: Scoped = Scoped::new(
    "SELECT hash, length(content) FROM template_files \
     WHERE account_id = ?1 AND hash IN (SELECT value FROM json_each(?2))",
);
const CONTENTS: Scoped = Scoped::new(
    "SELECT hash, content FROM template_files \
     WHERE account_id = ?1 AND hash IN (SELECT value FROM json_each(?2))",
);

/// A content that has its hash.
struct Content(ContentHash, Vec<u8>);

impl FromRow for Content {
    fn from_row(row: &mut Row) -> Result<Self, DataError> {
        let (hash, content): (ContentHash, Vec<u8>) = FromRow::from_row(row)?;
        if ContentHash::of(&content) == hash { Ok(Self(hash, content)) } else { Err(DamagedFile.into()) }
    }
}

impl<B: Backend> AccountScope<'_, B> {
    /// Stores a content for a save within a day, and returns its hash.
    pub async fn put_template_file(&self, content: Vec<u8>) -> Result<ContentHash, B::Error> {
        let hash = ContentHash::of(&content);
        self.repeat(PUT, values![&hash, self.now(), content]).await?;
        Ok(hash)
    }

    /// The sizes in bytes of the contents that are stored.
    pub async fn template_file_sizes(
        &self,
        hashes: &[ContentHash],
    ) -> Result<BTreeMap<ContentHash, u64>, B::Error> {
        Ok(self.all(SIZES, values![json!(hashes).to_string()]).await?.into_iter().collect())
    }

    /// The contents that are stored.
    pub async fn template_file_contents(
        &self,
        hashes: &[ContentHash],
    ) -> Result<BTreeMap<ContentHash, Vec<u8>>, B::Error> {
        let contents: Vec<Content> = self.all(CONTENTS, values![json!(hashes).to_string()]).await?;
        Ok(contents.into_iter().map(|Content(hash, content)| (hash, content)).collect())
    }
}

/// The contents that an account has stored, for a job of one of its templates.
pub async fn contents<B: Backend>(
    backend: &B,
    account: &AccountId,
    hashes: &[ContentHash],
) -> Result<BTreeMap<ContentHash, Vec<u8>>, B::Error> {
    let values = values![account, json!(hashes).to_string()];
    let contents: Vec<Content> = backend.all(CONTENTS.sql(), values).await?;
    Ok(contents.into_iter().map(|Content(hash, content)| (hash, content)).collect())
}
