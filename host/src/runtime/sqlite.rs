//! `spin:sqlite` for components.
//!
//! Invariant: a component reaches the database only under the name `default`. The text of an error begins with the name of an [`Outcome`](platen_statements::Outcome). The error of a
//! statement has SQLite's message; that of a connection has no details.

use platen_program::{
    RepeatedWarning, error_chain,
    telemetry::{self, OpenTelemetrySpanExt as _},
};
use tracing::{Span, info_span};
use wasmtime::{
    AsContextMut as _,
    component::{Accessor, FutureReader, HasSelf, Resource, StreamReader},
};

use super::{
    RequestContext,
    bindings::spin::sqlite::sqlite::{
        Error, Host, HostConnection, HostConnectionWithStore, RowResult, Value as GuestValue,
    },
    state::State,
};
use crate::db::{self, Database, DbError, Value};

/// The name of the database.
const DEFAULT_DATABASE: &str = "default";

impl Host for State {}
impl HostConnection for State {}

type Store = Accessor<State, HasSelf<State>>;
type Rows = (Vec<String>, StreamReader<RowResult>, FutureReader<Result<(), Error>>);

impl HostConnectionWithStore<State> for HasSelf<State> {
    async fn drop(store: &Store, connection: Resource<Database>) -> wasmtime::Result<()> {
        store.with(|mut access| access.get().table.delete(connection))?;
        Ok(())
    }

    async fn open_async(
        store: &Store,
        database: String,
    ) -> wasmtime::Result<Result<Resource<Database>, Error>> {
        store.with(|mut access| {
            let state = access.get();
            // As on Spin: a component does not learn whether a database exists that it may not use.
            let Some(granted) = state.grants.database.as_ref().filter(|_| database == DEFAULT_DATABASE)
            else {
                return Ok(Err(Error::AccessDenied));
            };
            let connection = granted.clone();
            Ok(Ok(state.table.push(connection)?))
        })
    }

    /// Leaves out the names of the columns, which no component reads.
    async fn execute_async(
        store: &Store,
        connection: Resource<Database>,
        statement: String,
        parameters: Vec<GuestValue>,
    ) -> wasmtime::Result<Result<Rows, Error>> {
        let (database, request) = store.with(|mut access| {
            let database = access.get().table.get(&connection)?.clone();
            wasmtime::error::Ok((database, State::request_of(access.as_context_mut())?))
        })?;
        let rows = match execute(&database, request, statement, parameters).await {
            Ok(rows) => rows,
            Err(error) => return Ok(Err(error)),
        };
        store.with(|mut access| {
            let rows = StreamReader::new(&mut access, rows)?;
            let outcome = FutureReader::new(&mut access, async { wasmtime::error::Ok(Ok(())) })?;
            Ok(Ok((Vec::new(), rows, outcome)))
        })
    }
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
    database: &Database,
    request: RequestContext,
    statement: String,
    parameters: Vec<GuestValue>,
) -> Result<Vec<RowResult>, Error> {
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
    let result = database.execute(request.flow, statement, parameters).await;
    if result.is_err() {
        span.set_attribute("error.type", "statement");
    }
    drop(span);
    let rows = result.map_err(|error| map_error(&error))?;
    Ok(rows.into_iter().map(to_guest).collect())
}

fn map_error(error: &DbError) -> Error {
    static FAILED: RepeatedWarning = RepeatedWarning::new();
    let is_of_statement = matches!(
        error,
        DbError::Statement { .. } | DbError::Kind | DbError::TooLarge | DbError::Busy | DbError::Outage
    );
    if !is_of_statement && let Some(count) = FAILED.record() {
        tracing::error!(error = error_chain(error), count, "the database failed");
    }
    let text = match error {
        DbError::Missing(_) | DbError::Unauthorized | DbError::Panicked => "the database failed".to_owned(),
        _ => error.to_string(),
    };
    Error::Io(format!("{}: {text}", <&str>::from(error.outcome())))
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
