//! `spin:sqlite` for components.
//!
//! Invariant: a component reaches the database only under the name `default`, and only if the manifest
//! names it. The text of an error begins with the name of an [`Outcome`](platen_statements::Outcome). The error of a
//! statement has SQLite's message; that of a connection has no details.

use platen_program::{
    RepeatedWarning, error_chain,
    telemetry::{self, OpenTelemetrySpanExt as _},
};
use tracing::{Span, info_span};
use wasmtime::{
    AsContextMut as _,
    component::{Access, Accessor, FutureReader, HasSelf, Resource, StreamReader},
};

use super::{
    RequestContext,
    bindings::spin::sqlite::sqlite::{
        Error, Host, HostConnection, HostConnectionWithStore, QueryResult, RowResult, Value as GuestValue,
    },
    state::State,
};
use crate::{
    db::{self, Connection, DbError, Value},
    manifest::DEFAULT_DATABASE,
};

impl Host for State {}
impl HostConnection for State {}

type Store = Accessor<State, HasSelf<State>>;
type Opened = Result<Resource<Connection>, Error>;
type Rows = (Vec<String>, StreamReader<RowResult>, FutureReader<Result<(), Error>>);

impl HostConnectionWithStore<State> for HasSelf<State> {
    async fn drop(store: &Store, connection: Resource<Connection>) -> wasmtime::Result<()> {
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
        connection: Resource<Connection>,
        statement: String,
        parameters: Vec<GuestValue>,
    ) -> wasmtime::Result<Result<QueryResult, Error>> {
        let (connection, request) = (get(access.get(), &connection)?, request(&mut access)?);
        let result = execute(&connection, request, statement, parameters).await;
        Ok(result.map(|(columns, rows)| QueryResult { columns, rows }))
    }

    async fn execute_async(
        store: &Store,
        connection: Resource<Connection>,
        statement: String,
        parameters: Vec<GuestValue>,
    ) -> wasmtime::Result<Result<Rows, Error>> {
        let (connection, request) = store.with(|mut access| {
            wasmtime::error::Ok((get(access.get(), &connection)?, request(&mut access)?))
        })?;
        let (columns, rows) = match execute(&connection, request, statement, parameters).await {
            Ok(result) => result,
            Err(error) => return Ok(Err(error)),
        };
        store.with(|mut access| {
            let rows = StreamReader::new(&mut access, rows)?;
            let outcome = FutureReader::new(&mut access, async { wasmtime::error::Ok(Ok(())) })?;
            Ok(Ok((columns, rows, outcome)))
        })
    }

    async fn last_insert_rowid(
        mut access: Access<'_, State, Self>,
        connection: Resource<Connection>,
    ) -> wasmtime::Result<i64> {
        Ok(get(access.get(), &connection)?.effects.last_insert_rowid())
    }

    async fn last_insert_rowid_async(
        store: &Store,
        connection: Resource<Connection>,
    ) -> wasmtime::Result<i64> {
        store.with(|mut access| Ok(get(access.get(), &connection)?.effects.last_insert_rowid()))
    }

    async fn changes(
        mut access: Access<'_, State, Self>,
        connection: Resource<Connection>,
    ) -> wasmtime::Result<u64> {
        Ok(get(access.get(), &connection)?.effects.changes())
    }

    async fn changes_async(store: &Store, connection: Resource<Connection>) -> wasmtime::Result<u64> {
        store.with(|mut access| Ok(get(access.get(), &connection)?.effects.changes()))
    }
}

fn open(state: &mut State, database: &str) -> wasmtime::Result<Opened> {
    // As on Spin: a component that may not use a database does not learn whether it exists.
    let Some(granted) = state.grants.database.as_ref().filter(|_| database == DEFAULT_DATABASE) else {
        return Ok(Err(Error::AccessDenied));
    };
    let connection = granted.connect();
    Ok(Ok(state.table.push(connection)?))
}

/// A handle to the connection, which can be used while the store is not borrowed.
fn get(state: &mut State, connection: &Resource<Connection>) -> wasmtime::Result<Connection> {
    Ok(state.table.get(connection)?.clone())
}

/// The context of the request on whose behalf the statement runs.
fn request(access: &mut Access<'_, State, HasSelf<State>>) -> wasmtime::Result<RequestContext> {
    let mut context = access.as_context_mut();
    // The last one is the task of the export that handles the incoming request.
    let task = context.async_call_stack()?.last();
    Ok(context.data_mut().request_of(task))
}

/// The kind of a statement, by its first word.
fn operation(statement: &str) -> &'static str {
    let word = statement.split_whitespace().next().unwrap_or_default();
    ["SELECT", "INSERT", "UPDATE", "DELETE", "WITH"]
        .into_iter()
        .find(|known| known.eq_ignore_ascii_case(word))
        .unwrap_or("statement")
}

async fn execute(
    connection: &Connection,
    request: RequestContext,
    statement: String,
    parameters: Vec<GuestValue>,
) -> Result<(Vec<String>, Vec<RowResult>), Error> {
    let parameters = parameters.into_iter().map(from_guest).collect();
    let span = request.trace.as_ref().map_or_else(Span::none, |trace| {
        let operation = operation(&statement);
        let span = info_span!(
            target: telemetry::TARGET,
            "statement",
            otel.name = operation,
            db.system.name = "sqlite",
            db.operation.name = operation,
        );
        telemetry::part_of(trace, span)
    });
    let result = connection.execute(request.flow, statement, parameters).await;
    if result.is_err() {
        span.set_attribute("error.type", "statement");
    }
    drop(span);
    let result = result.map_err(|error| map_error(&error))?;
    Ok((result.columns, result.rows.into_iter().map(to_guest).collect()))
}

fn map_error(error: &DbError) -> Error {
    let outcome = error.outcome();
    let text = match error {
        DbError::Statement { .. } | DbError::TooLarge | DbError::Busy => error.to_string(),
        DbError::Unopened(_) | DbError::Absent(_) | DbError::Unreachable(_) => {
            log(error);
            error.to_string()
        }
        DbError::Missing(_) | DbError::Unauthorized | DbError::Panicked => {
            log(error);
            "the database failed".to_owned()
        }
    };
    Error::Io(format!("{}: {text}", <&str>::from(outcome)))
}

fn log(error: &DbError) {
    static FAILED: RepeatedWarning = RepeatedWarning::new();
    if let Some(count) = FAILED.record() {
        tracing::error!(error = error_chain(error), count, "the database failed");
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
