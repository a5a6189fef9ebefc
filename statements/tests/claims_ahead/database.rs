//! An embedded database in memory, with the tables of `schema/`.

use std::{cell::RefCell, collections::HashMap, rc::Rc, time::Duration};

use platen_statements::{Backend, DataError, Outcome, Row, Value};

const SCHEMA: &str = concat!(
    include_str!("../../../schema/accounts.sql"),
    include_str!("../../../schema/api_keys.sql"),
    include_str!("../../../schema/templates.sql"),
    include_str!("../../../schema/template_files.sql"),
    include_str!("../../../schema/usage.sql"),
    include_str!("../../../schema/claims_ahead.sql"),
    include_str!("../../../schema/attempts.sql"),
    include_str!("../../../schema/links.sql"),
    include_str!("../../../schema/users.sql"),
    include_str!("../../../schema/invites.sql"),
    include_str!("../../../schema/audit.sql"),
    include_str!("../../../schema/retention.sql"),
);
/// An embedded database in memory, with its prepared statements.
#[derive(Clone)]
pub(crate) struct Database(pub(crate) libsql::Connection, Rc<RefCell<HashMap<String, libsql::Statement>>>);

impl Database {
    /// A database with the tables.
    pub(crate) async fn open() -> Self {
        let database = libsql::Builder::new_local(":memory:").build().await.unwrap();
        let connection = database.connect().unwrap();
        connection.execute_batch(SCHEMA).await.unwrap();
        connection.execute_batch("PRAGMA foreign_keys = ON").await.unwrap();
        Self(connection, Rc::default())
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Database(#[from] libsql::Error),
    #[error(transparent)]
    Data(#[from] DataError),
}

impl Backend for Database {
    type Error = Failure;

    async fn execute(&self, sql: &str, values: &[Value]) -> Result<Vec<Row>, Failure> {
        let values: Vec<libsql::Value> = values.iter().map(to_libsql).collect();
        let prepared = self.1.borrow_mut().remove(sql);
        let statement = match prepared {
            Some(statement) => statement,
            None => self.0.prepare(sql).await?,
        };
        let mut rows = statement.query(values).await?;
        let mut found = Vec::new();
        while let Some(row) = rows.next().await? {
            let columns = (0..row.column_count()).map(|index| Ok(from_libsql(row.get_value(index)?)));
            found.push(Row::new(columns.collect::<Result<_, libsql::Error>>()?));
        }
        statement.reset();
        self.1.borrow_mut().insert(sql.to_owned(), statement);
        Ok(found)
    }

    fn outcome(_: &Failure) -> Outcome {
        Outcome::Failed
    }

    async fn sleep(&self, _: Duration) {}

    fn random<const N: usize>(&self) -> Result<[u8; N], Failure> {
        Ok([0; N])
    }
}

fn to_libsql(value: &Value) -> libsql::Value {
    match value {
        Value::Null => libsql::Value::Null,
        Value::Integer(number) => (*number).into(),
        Value::Real(number) => (*number).into(),
        Value::Text(text) => text.clone().into(),
        Value::Blob(bytes) => bytes.clone().into(),
    }
}

fn from_libsql(value: libsql::Value) -> Value {
    match value {
        libsql::Value::Null => Value::Null,
        libsql::Value::Integer(number) => Value::Integer(number),
        libsql::Value::Real(number) => Value::Real(number),
        libsql::Value::Text(text) => Value::Text(text),
        libsql::Value::Blob(bytes) => Value::Blob(bytes),
    }
}
