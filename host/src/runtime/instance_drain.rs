//! Waits for the work that instances of components do after their responses, such as writing rows of the attempt log.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use tokio::time::{Sleep, sleep, timeout};
use tokio_util::{
    sync::{CancellationToken, WaitForCancellationFutureOwned},
    task::{TaskTracker, task_tracker::TaskTrackerToken},
};
use wasmtime_wasi_http::handler::{WorkerExpiration, WorkerStatus};

/// As in Spin. A burst creates an instance for nearly every request, and requests go to idle instances in
/// turn, so with a long timeout steady traffic would keep all of them.
const IDLE_TIMEOUT: Duration = Duration::from_secs(1);
/// For a file of any size to a slow client; a stalled one is ended by its connection much earlier, and each request has
/// a timeout of its own until its response.
const BUSY_TIMEOUT: Duration = Duration::from_hours(1);

/// All instances; a cheap handle.
#[derive(Clone, Default)]
pub(crate) struct InstanceDrain {
    instances: TaskTracker,
    draining: CancellationToken,
}

impl InstanceDrain {
    /// Ends idle instances, and waits until the other ones are idle.
    pub(crate) async fn drain(&self, max_time: Duration) {
        self.draining.cancel();
        self.instances.close();
        if timeout(max_time, self.instances.wait()).await.is_err() {
            let instances = self.instances.len();
            tracing::warn!(
                instances,
                "component instances did not end in time; attempts may be missing in the log"
            );
        }
    }

    /// An instance exists until this is dropped.
    pub(super) fn instance(&self) -> TaskTrackerToken {
        self.instances.token()
    }

    pub(super) fn expiration(&self) -> Expiration {
        Expiration {
            sleep: Box::pin(sleep(IDLE_TIMEOUT)),
            draining: Box::pin(self.draining.clone().cancelled_owned()),
        }
    }
}

/// When an instance ends.
pub(super) struct Expiration {
    sleep: Pin<Box<Sleep>>,
    draining: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl WorkerExpiration for Expiration {
    fn poll(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        status: WorkerStatus,
        start: Instant,
    ) -> Poll<()> {
        // Polled in every state, because it wakes the instance.
        let is_draining = self.draining.as_mut().poll(context).is_ready();
        let timeout = match status {
            WorkerStatus::Idle if is_draining => return Poll::Ready(()),
            WorkerStatus::Idle => IDLE_TIMEOUT,
            WorkerStatus::Requests | WorkerStatus::PostReturn => BUSY_TIMEOUT,
        };
        let deadline = (start + timeout).into();
        if self.sleep.deadline() != deadline {
            self.sleep.as_mut().reset(deadline);
        }
        self.sleep.as_mut().poll(context)
    }
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt as _, future::poll_fn};

    use super::*;

    async fn ends(expiration: &mut Expiration, status: WorkerStatus) {
        let start = Instant::now();
        poll_fn(|context| Pin::new(&mut *expiration).poll(context, status, start)).await;
    }

    #[tokio::test]
    async fn a_drain_ends_idle_instances_and_waits_for_the_other_ones() {
        let drain = InstanceDrain::default();
        let (idle, busy) = (drain.instance(), drain.instance());
        let (mut of_idle, mut of_busy) = (drain.expiration(), drain.expiration());
        assert!(ends(&mut of_idle, WorkerStatus::Idle).now_or_never().is_none());
        let mut draining = std::pin::pin!(drain.drain(Duration::from_mins(1)));
        assert!((&mut draining).now_or_never().is_none());
        ends(&mut of_idle, WorkerStatus::Idle).now_or_never().unwrap();
        drop(idle);
        assert!((&mut draining).now_or_never().is_none());
        assert!(ends(&mut of_busy, WorkerStatus::PostReturn).now_or_never().is_none());
        ends(&mut of_busy, WorkerStatus::Idle).now_or_never().unwrap();
        drop(busy);
        draining.await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_drain_ends_after_its_time() {
        let drain = InstanceDrain::default();
        let _busy = drain.instance();
        let began = tokio::time::Instant::now();
        drain.drain(Duration::from_secs(3)).await;
        assert_eq!(began.elapsed().as_secs(), 3);
    }
}
