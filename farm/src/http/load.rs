//! The load of the farm, by which an edge with several farms chooses one.

use std::{sync::Arc, time::Duration};

use axum::{
    extract::State,
    http::{
        HeaderMap, StatusCode,
        header::{CONNECTION, HeaderValue},
    },
    response::{IntoResponse, Response},
};
use parking_lot::Mutex;
use platen_shared::{
    refusal::{RETRY_AFTER_SECONDS, Refusal},
    wire,
};
use tokio::time::Instant;

use super::{App, Authorized};
use crate::error::Refused;

/// How long after its last statement a farm that drains answers requests. A job is sent within milliseconds after the
/// load was stated, or later by an edge without free CPUs; it must find a refusal, and not a connection that is being
/// closed.
const LINGER_TIME: Duration = Duration::from_secs(2);

/// When the farm last stated its load.
#[derive(Debug, Clone, Default)]
pub(super) struct LastStatement(Arc<Mutex<Option<Instant>>>);

impl LastStatement {
    /// Completes when no job can be on its way because of a stated load.
    pub(super) async fn linger(&self) {
        let last = *self.0.lock();
        if let Some(last) = last {
            tokio::time::sleep_until(last + LINGER_TIME).await;
        }
    }
}

/// The load at which a job has to wait for a slot.
const FULL_PERCENT: usize = 100;

pub(super) async fn load(_: Authorized, State(app): State<App>) -> Response {
    if app.farm.is_draining() {
        return Refused::from(Refusal::Draining).into_response();
    }
    if !app.farm.is_ready() {
        return Refused::from(Refusal::NoBrowser).into_response();
    }
    *app.last_statement.0.lock() = Some(Instant::now());
    (StatusCode::NO_CONTENT, [(wire::LOAD_PERCENT, app.farm.load_percent().to_string())]).into_response()
}

/// The refusal of a job that would have to wait and must not. The job has been read by then: a client that is still
/// sending would not see the response. A farm that ends together with its edge queues such a job: nothing is gained
/// if it is sent again.
pub(super) fn refuse_to_queue(app: &App, headers: &HeaderMap) -> Option<Refusal> {
    let must_wait = headers.contains_key(wire::NO_QUEUE)
        && app.id.is_some()
        && !app.farm.is_draining()
        && app.farm.load_percent() >= FULL_PERCENT;
    must_wait.then_some(Refusal::QueueFull { retry_after: RETRY_AFTER_SECONDS })
}

pub(super) async fn end_connection_while_draining(
    State(app): State<App>,
    mut response: Response,
) -> Response {
    if app.farm.is_draining() {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}
