//! Waiting until a page counts as loaded.

use std::time::Duration;

use platen_shared::{format::WaitUntil, job::WaitMs};
use tokio::{sync::watch, time};

use super::{attendant::Progress, load::reach};

/// How long no request may be under way for the network to count as idle.
const IDLE: Duration = Duration::from_millis(500);

/// Waits for the milestone, then for `wait`.
pub(super) async fn settle(progress: &mut watch::Receiver<Progress>, milestone: WaitUntil, wait: WaitMs) {
    match milestone {
        WaitUntil::DomContentLoaded => reach(progress, |progress| progress.parsed).await,
        WaitUntil::Load => reach(progress, |progress| progress.loaded).await,
        WaitUntil::NetworkIdle => network_idle(progress).await,
    }
    let wait = Duration::from_secs_f64(wait.get() / 1_000.0);
    if !wait.is_zero() {
        time::sleep(wait).await;
    }
}

async fn network_idle(progress: &mut watch::Receiver<Progress>) {
    loop {
        reach(progress, |progress| progress.loaded && progress.requests == 0).await;
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
        let quiet = Progress { documents: 1, parsed: true, loaded: true, requests: 0, since: start };
        let (sender, mut progress) = watch::channel(quiet);
        let settled = tokio::spawn(async move {
            settle(&mut progress, WaitUntil::NetworkIdle, WaitMs::try_from(100.0).unwrap()).await;
            Instant::now()
        });
        time::sleep(Duration::from_millis(400)).await;
        sender.send_replace(Progress { requests: 1, since: Instant::now(), ..quiet });
        time::sleep(Duration::from_millis(800)).await;
        sender.send_replace(Progress { requests: 0, since: Instant::now(), ..quiet });
        assert_eq!(settled.await.unwrap() - start, Duration::from_millis(1_200 + 500 + 100));
        drop(sender);
    }
}
