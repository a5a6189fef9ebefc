//! A latch on which the replies of test servers wait.

use tokio::sync::watch;

/// Holds replies back until it is opened or dropped.
#[derive(Debug)]
pub struct Latch(watch::Sender<bool>);

/// What waits for a [`Latch`].
#[derive(Debug, Clone)]
pub struct LatchWaiter(watch::Receiver<bool>);

impl Latch {
    pub fn closed() -> Self {
        Self(watch::channel(false).0)
    }

    /// Lets everything go that waits for the latch, now and later.
    pub fn open(&self) {
        self.0.send_replace(true);
    }

    pub fn waiter(&self) -> LatchWaiter {
        LatchWaiter(self.0.subscribe())
    }
}

impl LatchWaiter {
    /// A waiter whose latch is open.
    pub fn ready() -> Self {
        Self(watch::channel(true).1)
    }

    /// Returns once the latch is open or dropped.
    pub async fn opened(mut self) {
        let _ = self.0.wait_for(|open| *open).await;
    }
}
