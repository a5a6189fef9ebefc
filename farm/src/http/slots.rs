//! Slots for jobs that are sent once they have one. A job that waits in a farm is lost with it, and counts, because its page
//! may have run. A wait for a slot can be repeated at another farm.

use std::{collections::HashMap, sync::Arc, time::Duration};

use axum::{
    extract::{Request, State},
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use parking_lot::Mutex;
use platen_shared::{job::SlotRequest, refusal::Refusal, wire};
use tokio::{
    task::AbortHandle,
    time::{sleep, timeout_at},
};

use super::{App, Authorized, RunningJob, job_id, read, time_left};
use crate::{error::Refused, farm::ReadySlot};

/// How long a slot is kept for its job, which is sent at once: a round trip on any network, with lost packets.
const KEPT_TIME: Duration = Duration::from_secs(5);

/// Slots that are kept, by the id of their job.
#[derive(Debug, Clone, Default)]
pub(super) struct KeptSlots(Arc<Mutex<HashMap<String, Kept>>>);

#[derive(Debug)]
struct Kept {
    slot: ReadySlot,
    expiry: AbortHandle,
}

impl KeptSlots {
    fn keep(&self, id: &str, slot: ReadySlot) {
        let (kept, own_id) = (self.clone(), id.to_owned());
        let mut slots = self.0.lock();
        let expiry = tokio::spawn(async move {
            sleep(KEPT_TIME).await;
            let expired = kept.0.lock().remove(&own_id);
            drop(expired);
        });
        let replaced = slots.insert(id.to_owned(), Kept { slot, expiry: expiry.abort_handle() });
        drop(slots);
        if let Some(replaced) = replaced {
            replaced.expiry.abort();
        }
    }

    /// The slot of the job with this id, if it is still kept.
    pub(super) fn take(&self, id: &str) -> Option<ReadySlot> {
        let kept = self.0.lock().remove(id)?;
        kept.expiry.abort();
        Some(kept.slot)
    }
}

pub(super) async fn wait(
    _: Authorized,
    running: RunningJob,
    State(app): State<App>,
    headers: HeaderMap,
    request: Request,
) -> Response {
    let deadline = running.arrived + time_left(&headers);
    let read = timeout_at(deadline, read::<SlotRequest>(request, &app));
    let (Some(id), Ok(Ok(request))) = (job_id(&headers), read.await) else {
        return Refused::from(Refusal::InvalidJob).into_response();
    };
    let waited = running.run(app.farm.wait_for_slot(&request.account, deadline)).await;
    let cancelled = || Err(Refusal::Cancelled { page_ran: false }.into());
    let (outcome, response) = match waited.unwrap_or_else(cancelled) {
        Ok(slot) => {
            app.kept_slots.keep(id, slot);
            ("kept", StatusCode::NO_CONTENT.into_response())
        }
        Err(refused) => (refused.refusal.code(), refused.into_response()),
    };
    let request_id = headers.get(wire::REQUEST_ID).and_then(|id| id.to_str().ok());
    tracing::info!(
        request_id = request_id.filter(|id| wire::is_request_id(id)).unwrap_or_default(),
        account = request.account.as_str(),
        outcome,
        status = response.status().as_u16(),
        waited_ms = u64::try_from(running.arrived.elapsed().as_millis()).unwrap_or(u64::MAX),
        "slot"
    );
    response
}

/// Adds the name of the farm to a response.
pub(super) async fn identify(State(app): State<App>, mut response: Response) -> Response {
    if let Some(id) = app.id {
        response.headers_mut().insert(wire::FARM_ID, id);
    }
    response
}
