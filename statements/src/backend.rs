//! What the statements need of a platform, and values and rows with typed columns.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use platen_shared::{
    id::{AccountId, InviteId, KeyId, SessionId, TemplateId, UserId},
    job::{ContentHash, DamagedFile},
    request::TemplateOptions,
    template::{DamagedTemplate, Language},
    template_files::TemplateFiles,
};

use crate::{
    Timestamp,
    retry::{Outcome, repeated},
};

/// A database connection, a timer and a source of randomness.
pub trait Backend {
    /// A failed statement, or a row that does not match the schema.
    type Error: From<DataError>;

    /// Sends one statement once and returns all its rows.
    fn execute(&self, sql: &str, values: &[Value]) -> impl Future<Output = Result<Vec<Row>, Self::Error>>;

    /// What the error says about the statement.
    fn outcome(error: &Self::Error) -> Outcome;

    /// Completes after this time.
    fn sleep(&self, time: Duration) -> impl Future<Output = ()>;

    /// Bytes of a cryptographic random generator.
    ///
    /// # Errors
    /// When the platform provides no randomness.
    fn random<const N: usize>(&self) -> Result<[u8; N], Self::Error>;
}

/// A value of one of SQLite's five types.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// NULL
    Null,
    /// INTEGER
    Integer(i64),
    /// REAL
    Real(f64),
    /// TEXT
    Text(String),
    /// BLOB
    Blob(Vec<u8>),
}

/// A stored value that does not match the schema.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// A column is missing, has another type or holds invalid JSON.
    #[error("the database returned a row that does not match the schema")]
    Row,
    /// A template's markup cannot be unpacked.
    #[error(transparent)]
    Template(#[from] DamagedTemplate),
    /// A file of a template does not have its hash.
    #[error(transparent)]
    File(#[from] DamagedFile),
}

/// A row, whose columns are read from left to right.
#[derive(Debug)]
pub struct Row(std::vec::IntoIter<Value>);

impl Row {
    /// A row with these columns.
    #[must_use]
    pub fn new(columns: Vec<Value>) -> Self {
        Self(columns.into_iter())
    }

    /// The columns that have not been read.
    pub(crate) fn into_columns(self) -> Vec<Value> {
        self.0.collect()
    }

    /// Reads the next column.
    pub(crate) fn next<T: FromValue>(&mut self) -> Result<T, DataError> {
        self.0.next().and_then(T::from_value).ok_or(DataError::Row)
    }
}

/// A type that a column can be read as.
pub(crate) trait FromValue: Sized {
    /// `None` for a value of another type or out of range.
    fn from_value(value: Value) -> Option<Self>;
}

/// A record that a row can be read as.
pub(crate) trait FromRow: Sized {
    fn from_row(row: &mut Row) -> Result<Self, DataError>;
}

impl<A: FromValue> FromRow for (A,) {
    fn from_row(row: &mut Row) -> Result<Self, DataError> {
        Ok((row.next()?,))
    }
}

impl<A: FromValue, B: FromValue> FromRow for (A, B) {
    fn from_row(row: &mut Row) -> Result<Self, DataError> {
        Ok((row.next()?, row.next()?))
    }
}

impl<A: FromValue, B: FromValue, C: FromValue> FromRow for (A, B, C) {
    fn from_row(row: &mut Row) -> Result<Self, DataError> {
        Ok((row.next()?, row.next()?, row.next()?))
    }
}

/// Statements with typed results. Each is sent again while the database is busy or absent. After a lost response those are
/// sent again that may run twice: the ones that only read, and [`Query::repeat`].
pub(crate) trait Query: Backend {
    /// Every row of a statement that only reads.
    async fn all<T: FromRow>(&self, sql: &str, values: Vec<Value>) -> Result<Vec<T>, Self::Error> {
        let rows = self.read(sql, &values).await?.into_iter();
        Ok(rows.map(|mut row| T::from_row(&mut row)).collect::<Result<_, _>>()?)
    }

    /// The first row, if any, of a statement that only reads.
    async fn first<T: FromRow>(&self, sql: &str, values: Vec<Value>) -> Result<Option<T>, Self::Error> {
        first(self.read(sql, &values).await?)
    }

    /// Whether a statement that only reads returns a row.
    async fn exists(&self, sql: &str, values: Vec<Value>) -> Result<bool, Self::Error> {
        Ok(!self.read(sql, &values).await?.is_empty())
    }

    /// Runs a change, and says whether it returned a row: one with `RETURNING` returns those that it changed.
    async fn run(&self, sql: &str, values: Vec<Value>) -> Result<bool, Self::Error> {
        Ok(!self.change(sql, &values).await?.is_empty())
    }

    /// Runs a change, and returns its first row, if any.
    async fn run_returning<T: FromRow>(
        &self,
        sql: &str,
        values: Vec<Value>,
    ) -> Result<Option<T>, Self::Error> {
        first(self.change(sql, &values).await?)
    }

    /// Runs a change that has no effect if it has been made before.
    async fn repeat(&self, sql: &str, values: Vec<Value>) -> Result<(), Self::Error> {
        rows(self, sql, &values, true).await.map(drop)
    }

    /// The rows that a change returns.
    async fn change(&self, sql: &str, values: &[Value]) -> Result<Vec<Row>, Self::Error> {
        rows(self, sql, values, false).await
    }

    /// The rows of a statement that only reads.
    async fn read(&self, sql: &str, values: &[Value]) -> Result<Vec<Row>, Self::Error> {
        debug_assert!(sql.starts_with("SELECT"), "{sql}");
        rows(self, sql, values, true).await
    }
}

fn first<T: FromRow, E: From<DataError>>(rows: Vec<Row>) -> Result<Option<T>, E> {
    Ok(rows.into_iter().next().map(|mut row| T::from_row(&mut row)).transpose()?)
}

async fn rows<B: Backend + ?Sized>(
    backend: &B,
    sql: &str,
    values: &[Value],
    may_run_twice: bool,
) -> Result<Vec<Row>, B::Error> {
    let (sleep, random) = (|time| backend.sleep(time), || backend.random());
    repeated(may_run_twice, B::outcome, sleep, random, || backend.execute(sql, values)).await
}

impl<B: Backend> Query for B {}

/// The values of a statement, in order.
macro_rules! values {
    ($($value:expr),* $(,)?) => { vec![$($crate::backend::Value::from($value)),*] };
}
pub(crate) use values;

/// A record whose fields are read from the columns of a row, in order.
macro_rules! record {
    ($(#[$doc:meta])* pub struct $name:ident { $($(#[$field_doc:meta])* $visible:vis $field:ident: $type:ty,)* }) => {
        #[derive(Debug, Clone, serde::Serialize)]
        $(#[$doc])*
        #[allow(missing_docs, reason = "the schema describes the columns")]
        pub struct $name { $($(#[$field_doc])* $visible $field: $type,)* }

        impl $crate::backend::FromRow for $name {
            fn from_row(row: &mut $crate::Row) -> Result<Self, $crate::DataError> {
                Ok(Self { $($field: row.next()?,)* })
            }
        }
    };
}
pub(crate) use record;

macro_rules! columns {
    ($($type:ty: $variant:ident),*) => { $(
        impl FromValue for $type {
            fn from_value(value: Value) -> Option<Self> {
                if let Value::$variant(value) = value { value.try_into().ok() } else { None }
            }
        }

        impl From<$type> for Value {
            fn from(value: $type) -> Self {
                Self::$variant(value.into())
            }
        }
    )* };
}
columns!(String: Text, Vec<u8>: Blob, i64: Integer, u32: Integer, u16: Integer);

/// Columns that hold JSON.
macro_rules! json_columns {
    ($($type:ty),*) => { $(impl FromValue for $type {
        fn from_value(value: Value) -> Option<Self> {
            serde_json::from_str(&String::from_value(value)?).ok()
        }
    })* };
}
json_columns!(Vec<String>, BTreeMap<String, Vec<String>>, BTreeSet<String>, TemplateFiles);

impl FromValue for ContentHash {
    fn from_value(value: Value) -> Option<Self> {
        String::from_value(value)?.try_into().ok()
    }
}

impl From<&ContentHash> for Value {
    fn from(hash: &ContentHash) -> Self {
        hash.as_str().into()
    }
}

impl FromValue for Language {
    fn from_value(value: Value) -> Option<Self> {
        String::from_value(value)?.parse().ok()
    }
}

impl From<Language> for Value {
    fn from(language: Language) -> Self {
        language.name().into()
    }
}

impl FromValue for TemplateOptions {
    fn from_value(value: Value) -> Option<Self> {
        Self::stored(String::from_value(value)?)
    }
}

impl<T: FromValue> FromValue for Option<T> {
    fn from_value(value: Value) -> Option<Self> {
        if value == Value::Null { Some(None) } else { T::from_value(value).map(Some) }
    }
}

impl<T: Into<Self>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl FromValue for bool {
    fn from_value(value: Value) -> Option<Self> {
        i64::from_value(value).map(|number| number != 0)
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Self::Integer(flag.into())
    }
}

impl FromValue for u64 {
    fn from_value(value: Value) -> Option<Self> {
        i64::from_value(value)?.try_into().ok()
    }
}

/// SQLite's integers are signed; a larger number is stored as the largest one.
impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Integer(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl FromValue for Timestamp {
    fn from_value(value: Value) -> Option<Self> {
        i64::from_value(value).map(Self)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

macro_rules! ids {
    ($($id:ty),*) => { $(
        impl FromValue for $id {
            fn from_value(value: Value) -> Option<Self> {
                String::from_value(value).map(Self::from_text)
            }
        }

        impl From<&$id> for Value {
            fn from(id: &$id) -> Self {
                id.as_str().into()
            }
        }
    )* };
}
ids!(AccountId, InviteId, KeyId, SessionId, TemplateId, UserId);
