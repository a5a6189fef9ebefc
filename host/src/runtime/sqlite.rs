//! `spin:sqlite` for components.
//!
//! Invariant: a component reaches the database only under the name `default`, and only if the
//! manifest says so; a failed statement is told in the database's words, a failed connection in
//! ours. Left to others: running statements ([`crate::db`]).

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use tokio::sync::{mpsc, oneshot};
use wasmtime::{
    StoreContextMut,
    component::{
        Access, Accessor, Destination, FutureReader, HasData, Resource, StreamProducer, StreamReader,
        StreamResult, VecBuffer,
    },
};

use super::{
    bindings::spin::sqlite::sqlite::{
        Error, Host, HostConnection, HostConnectionWithStore, QueryResult, RowResult, Value as GuestValue,
    },
    state::State,
};
use crate::{
    db::{self, DbError, Value},
    manifest::DEFAULT_DATABASE,
};

/// An open connection of a component.
#[expect(unreachable_pub, reason = "the generated bindings export it again")]
pub struct Open(Arc<db::Connection>);

/// Marks this interface's part of the store: all of it.
pub(super) struct Sqlite;

impl HasData for Sqlite {
    type Data<'a> = &'a mut State;
}

impl Host for State {}
impl HostConnection for State {}

type Store = Accessor<State, Sqlite>;
type Opened = Result<Resource<Open>, Error>;
type Rows = (Vec<String>, StreamReader<RowResult>, FutureReader<Result<(), Error>>);

impl HostConnectionWithStore<State> for Sqlite {
    async fn drop(store: &Store, connection: Resource<Open>) -> wasmtime::Result<()> {
        store.with(|mut access| access.get().table.delete(connection))?;
        Ok(())
    }

    async fn open(mut access: Access<'_, State, Self>, database: String) -> wasmtime::Result<Opened> {
        open(access.get(), &database)
    }

    async fn open_async(store: &Store, database: String) -> wasmtime::Result<Opened> {
        store.with(|mut access| open(access.get(), &database))
    }

    async fn execute(
        mut access: Access<'_, State, Self>,
        connection: Resource<Open>,
        statement: String,
        parameters: Vec<GuestValue>,
    ) -> wasmtime::Result<Result<QueryResult, Error>> {
        let connection = get(access.get(), &connection)?;
        let answer = async {
            let mut answer =
                connection.execute(statement, parameters.into_iter().map(from_guest).collect()).await?;
            let columns = std::mem::take(&mut answer.columns);
            Ok(QueryResult { columns, rows: answer.collect().await?.into_iter().map(to_guest).collect() })
        };
        Ok(answer.await.map_err(|error| told(&error)))
    }

    async fn execute_async(
        store: &Store,
        connection: Resource<Open>,
        statement: String,
        parameters: Vec<GuestValue>,
    ) -> wasmtime::Result<Result<Rows, Error>> {
        let connection = store.with(|mut access| get(access.get(), &connection))?;
        let parameters = parameters.into_iter().map(from_guest).collect();
        let answer = match connection.execute(statement, parameters).await {
            Ok(answer) => answer,
            Err(error) => return Ok(Err(told(&error))),
        };
        let first: Vec<RowResult> = answer.rows.into_iter().map(to_guest).collect();
        store.with(|mut access| {
            let (rows, outcome) = match answer.rest {
                None => (
                    StreamReader::new(&mut access, first)?,
                    FutureReader::new(&mut access, async { wasmtime::error::Ok(Ok(())) })?,
                ),
                Some(rest) => {
                    let (outcome_tx, outcome_rx) = oneshot::channel();
                    let producer = Streamed { first, rest, outcome: Some(outcome_tx) };
                    (
                        StreamReader::new(&mut access, producer)?,
                        // A reader that stops early has no outcome to wait for.
                        FutureReader::new(&mut access, async {
                            wasmtime::error::Ok(outcome_rx.await.unwrap_or(Ok(())))
                        })?,
                    )
                }
            };
            Ok(Ok((answer.columns, rows, outcome)))
        })
    }

    async fn last_insert_rowid(
        mut access: Access<'_, State, Self>,
        connection: Resource<Open>,
    ) -> wasmtime::Result<i64> {
        Ok(get(access.get(), &connection)?.last_insert_rowid())
    }

    async fn last_insert_rowid_async(store: &Store, connection: Resource<Open>) -> wasmtime::Result<i64> {
        store.with(|mut access| Ok(get(access.get(), &connection)?.last_insert_rowid()))
    }

    async fn changes(
        mut access: Access<'_, State, Self>,
        connection: Resource<Open>,
    ) -> wasmtime::Result<u64> {
        Ok(get(access.get(), &connection)?.changes())
    }

    async fn changes_async(store: &Store, connection: Resource<Open>) -> wasmtime::Result<u64> {
        store.with(|mut access| Ok(get(access.get(), &connection)?.changes()))
    }
}

fn open(state: &mut State, database: &str) -> wasmtime::Result<Opened> {
    // As Spin tells it: a component that may not use a database does not learn whether it exists.
    let Some(found) = state.grants.database.as_ref().filter(|_| database == DEFAULT_DATABASE) else {
        return Ok(Err(Error::AccessDenied));
    };
    let connection = Open(Arc::new(found.connect()));
    Ok(Ok(state.table.push(connection)?))
}

fn get(state: &mut State, connection: &Resource<Open>) -> wasmtime::Result<Arc<db::Connection>> {
    Ok(Arc::clone(&state.table.get(connection)?.0))
}

fn told(error: &DbError) -> Error {
    match error {
        DbError::Statement { full: true, .. } => Error::DatabaseFull,
        DbError::Statement { .. } | DbError::TooLarge => Error::Io(error.to_string()),
        DbError::Missing(_) | DbError::Unreachable(_) | DbError::Unauthorized | DbError::Broken => {
            tracing::error!(error = error as &dyn std::error::Error, "the database failed");
            Error::Io("the database cannot be reached".to_owned())
        }
    }
}

fn to_guest(row: db::Row) -> RowResult {
    let values = row.into_iter().map(|value| match value {
        Value::Null => GuestValue::Null,
        Value::Integer(number) => GuestValue::Integer(number),
        Value::Real(number) => GuestValue::Real(number),
        Value::Text(text) => GuestValue::Text(text),
        Value::Blob(bytes) => GuestValue::Blob(bytes),
    });
    RowResult { values: values.collect() }
}

fn from_guest(value: GuestValue) -> Value {
    match value {
        GuestValue::Null => Value::Null,
        GuestValue::Integer(number) => Value::Integer(number),
        GuestValue::Real(number) => Value::Real(number),
        GuestValue::Text(text) => Value::Text(text),
        GuestValue::Blob(bytes) => Value::Blob(bytes),
    }
}

/// Rows that follow as they are read from the database.
struct Streamed {
    first: Vec<RowResult>,
    rest: mpsc::Receiver<Result<db::Row, DbError>>,
    outcome: Option<oneshot::Sender<Result<(), Error>>>,
}

impl StreamProducer<State> for Streamed {
    type Item = RowResult;
    type Buffer = VecBuffer<RowResult>;

    fn poll_produce<'a>(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        _: StoreContextMut<'a, State>,
        mut destination: Destination<'a, RowResult, Self::Buffer>,
        finish: bool,
    ) -> Poll<wasmtime::Result<StreamResult>> {
        if !self.first.is_empty() {
            destination.set_buffer(std::mem::take(&mut self.first).into());
            return Poll::Ready(Ok(StreamResult::Completed));
        }
        let outcome = match self.rest.poll_recv(context) {
            Poll::Ready(Some(Ok(row))) => {
                destination.set_buffer(vec![to_guest(row)].into());
                return Poll::Ready(Ok(StreamResult::Completed));
            }
            Poll::Ready(Some(Err(error))) => Err(told(&error)),
            Poll::Ready(None) => Ok(()),
            Poll::Pending if finish => return Poll::Ready(Ok(StreamResult::Cancelled)),
            Poll::Pending => return Poll::Pending,
        };
        if let Some(sender) = self.outcome.take() {
            // Nobody may be waiting for it.
            let _ = sender.send(outcome);
        }
        Poll::Ready(Ok(StreamResult::Dropped))
    }
}
