//! Waiting until a page counts as loaded, and then for as long as the job says.
//!
//! Invariant: on a page that is drawn on demand, waiting takes time only where something outside of
//! the page's clock goes on: a request, a worker, a socket. Then it is real time, for as long as that
//! lasts; a page that never goes quiet waits as long as it would in any browser. Left to others: what
//! passes the time (pump).

use std::time::Duration;

use platen_shared::{format::WaitUntil, job::WaitMs};
use tokio::{sync::watch, time};

use super::{JobError, attendant::Progress, load::reach, pump::Pump};
use crate::metrics::Waiting;

/// How long no request may be under way for the network to count as idle.
const IDLE: Duration = Duration::from_millis(500);

/// What a page is waited for after its document has come.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    pub(super) milestone: WaitUntil,
    pub(super) wait: WaitMs,
}

/// Waits for the event that the milestone begins with.
pub(super) async fn event(progress: &mut watch::Receiver<Progress>, milestone: WaitUntil) {
    match milestone {
        WaitUntil::DomContentLoaded => reach(progress, |progress| progress.parsed).await,
        WaitUntil::Load | WaitUntil::NetworkIdle => reach(progress, |progress| progress.loaded).await,
    }
}

/// Waits for the network, if that is the milestone, and then for the job's own time. Returns how,
/// if there was anything to wait for.
pub(super) async fn settle(
    progress: &mut watch::Receiver<Progress>,
    pump: &mut Pump<'_>,
    patience: Patience,
) -> Result<Option<Waiting>, JobError> {
    let wait = patience.wait.get();
    let for_network = patience.milestone == WaitUntil::NetworkIdle;
    if !for_network && wait <= 0.0 {
        return Ok(None);
    }
    if !pump.draws() {
        if for_network {
            network_idle(progress).await;
        }
        time::sleep(Duration::from_secs_f64(wait / 1_000.0)).await;
        return Ok(Some(Waiting::RealTime));
    }
    let mut waited = Waited { total: 0.0, in_real_time: 0.0 };
    if for_network {
        waited.for_idle_network(progress, pump).await?;
    }
    waited.for_time(progress, pump, wait).await?;
    Ok(Some(if waited.in_real_time * 2.0 > waited.total { Waiting::RealTime } else { Waiting::VirtualTime }))
}

/// How long a page has been waited for, in milliseconds of its own.
struct Waited {
    total: f64,
    in_real_time: f64,
}

impl Waited {
    async fn for_idle_network(
        &mut self,
        progress: &mut watch::Receiver<Progress>,
        pump: &mut Pump<'_>,
    ) -> Result<(), JobError> {
        let all = IDLE.as_secs_f64() * 1_000.0;
        let (mut left, mut since) = (all, progress.borrow().since);
        while left > 0.0 {
            let passed = self.pass(progress, pump, left).await?;
            let now = *progress.borrow();
            // Any change starts the wait anew.
            left = if now.is_quiet() && now.since == since { left - passed } else { all };
            since = now.since;
        }
        Ok(())
    }

    async fn for_time(
        &mut self,
        progress: &watch::Receiver<Progress>,
        pump: &mut Pump<'_>,
        mut left: f64,
    ) -> Result<(), JobError> {
        while left > 0.0 {
            left -= self.pass(progress, pump, left).await?;
        }
        Ok(())
    }

    async fn pass(
        &mut self,
        progress: &watch::Receiver<Progress>,
        pump: &mut Pump<'_>,
        most: f64,
    ) -> Result<f64, JobError> {
        let now = *progress.borrow();
        let passed = pump.pass(most, now.requests > 0 || now.has_company).await?;
        self.total += passed.milliseconds;
        if passed.in_real_time {
            self.in_real_time += passed.milliseconds;
        }
        Ok(passed.milliseconds)
    }
}

async fn network_idle(progress: &mut watch::Receiver<Progress>) {
    loop {
        reach(progress, Progress::is_quiet).await;
        let since = progress.borrow_and_update().since;
        // Any change starts the wait anew.
        if time::timeout_at(since + IDLE, progress.changed()).await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_network_is_idle_half_a_second_after_the_last_request() {
        let start = Instant::now();
        let quiet = Progress { documents: 1, ..Progress::new(start) };
        let (sender, mut progress) = watch::channel(quiet);
        let idle = tokio::spawn(async move {
            network_idle(&mut progress).await;
            Instant::now()
        });
        time::sleep(Duration::from_millis(400)).await;
        sender.send_replace(Progress { requests: 1, since: Instant::now(), ..quiet });
        time::sleep(Duration::from_millis(800)).await;
        sender.send_replace(Progress { requests: 0, since: Instant::now(), ..quiet });
        assert_eq!(idle.await.unwrap() - start, Duration::from_millis(1_200 + 500));
        drop(sender);
    }
}
