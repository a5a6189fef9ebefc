//! The browsers: so many seats, each with a keeper that keeps a living browser in it.
//!
//! Invariant: a browser that died is replaced; one that took its number of jobs stays in its seat
//! until a fresh one takes over, and goes when its last job is done. Nothing is polled: a keeper
//! sleeps until its browser's pipe ends or its browser has served. Left to others: how many jobs
//! run at once (admission), what a job does to a browser (render).

mod regulars;
mod seated;
mod shelf;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use platen_shared::id::AccountId;
use tokio::{sync::watch, task::JoinSet};

pub(crate) use self::seated::Loan;
use self::{regulars::Regulars, seated::Seated};
use crate::{
    browser::{LaunchError, Launcher},
    metrics::{BrowserEnd, Metrics},
};

/// First pause after a start that failed; doubled each time.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// A machine that cannot start browsers is not helped by trying more often than this.
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

/// How a pool is laid out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    /// Browsers.
    pub(crate) browsers: usize,
    /// Jobs that may run at once in all of them.
    pub(crate) slots: usize,
    /// Jobs after which a browser is replaced.
    pub(crate) recycle_after: u32,
    /// Pages that a browser keeps for accounts.
    pub(crate) warm_pages: usize,
    /// Jobs after which a page is replaced.
    pub(crate) page_jobs: u32,
}

impl Layout {
    /// Pages to have ready in each browser: as many as may be asked for at once.
    fn spares(&self) -> usize {
        self.slots.div_ceil(self.browsers)
    }
}

/// The browsers of a farm.
#[derive(Debug)]
pub(crate) struct Pool {
    shared: Arc<Shared>,
    /// Aborted with the pool.
    keepers: Mutex<JoinSet<()>>,
}

#[derive(Debug)]
struct Shared {
    launcher: Launcher,
    layout: Layout,
    regulars: Arc<Regulars>,
    metrics: Arc<Metrics>,
    seats: Mutex<Vec<Seat>>,
    /// Every browser that may still run, so that the last of them can be ended.
    all: Mutex<Vec<Weak<Seated>>>,
    /// Bumped whenever a seat changes.
    changed: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct Seat {
    seated: Option<Arc<Seated>>,
    /// Why the latest start failed.
    failure: Option<LaunchError>,
}

impl Seat {
    /// The browser, unless it is dead and its keeper has yet to notice.
    fn usable(&self) -> Option<&Arc<Seated>> {
        self.seated.as_ref().filter(|seated| seated.is_usable())
    }
}

impl Pool {
    /// Starts the browsers and returns when the first is ready.
    ///
    /// # Errors
    /// Why one of them failed, when all did.
    pub(crate) async fn start(
        launcher: Launcher,
        layout: Layout,
        metrics: Arc<Metrics>,
    ) -> Result<Self, LaunchError> {
        let shared = Arc::new(Shared {
            launcher,
            layout,
            // An account that as many others have come after has lost its page anyway.
            regulars: Arc::new(Regulars::new(2 * layout.browsers * layout.warm_pages)),
            metrics,
            seats: Mutex::new((0..layout.browsers).map(|_| Seat::default()).collect()),
            all: Mutex::default(),
            changed: watch::Sender::default(),
        });
        let mut keepers = JoinSet::new();
        for seat in 0..layout.browsers {
            keepers.spawn(Arc::clone(&shared).keep(seat));
        }
        let pool = Self { shared, keepers: Mutex::new(keepers) };
        if pool.somebody().await {
            return Ok(pool);
        }
        let failure = pool.shared.seats().iter_mut().find_map(|seat| seat.failure.take());
        pool.close().await;
        Err(failure.expect("without a browser, every start has failed"))
    }

    /// Lends the browser that has a page of the account's, or else the one with the least to do,
    /// waiting for one while there is hope. `None` when there is no browser and none can be started.
    pub(crate) async fn lend(&self, account: &AccountId) -> Option<Loan> {
        loop {
            if let Some(loan) = self.shared.lend(account) {
                return Some(loan);
            }
            if !self.somebody().await {
                return None;
            }
        }
    }

    /// How many browsers are ready.
    pub(crate) fn ready(&self) -> usize {
        self.shared.seats().iter().filter(|seat| seat.usable().is_some()).count()
    }

    /// Name and version of the browsers.
    pub(crate) fn product(&self) -> String {
        let seats = self.shared.seats();
        let seated = seats.iter().find_map(|seat| seat.seated.as_ref());
        seated.map(|seated| seated.browser.product().to_owned()).unwrap_or_default()
    }

    /// Whether pictures are frames drawn on demand.
    pub(crate) fn draws_on_demand(&self) -> bool {
        let seats = self.shared.seats();
        seats.iter().filter_map(|seat| seat.seated.as_ref()).any(|seated| seated.browser.frames().is_some())
    }

    /// Ends every browser and returns when the last one's processes and home are gone.
    pub(crate) async fn close(&self) {
        let mut keepers = std::mem::take(&mut *self.keepers.lock().unwrap_or_else(PoisonError::into_inner));
        keepers.shutdown().await;
        self.shared.seats().iter_mut().for_each(|seat| seat.seated = None);
        let all = std::mem::take(&mut *self.shared.all.lock().unwrap_or_else(PoisonError::into_inner));
        for seated in all.iter().filter_map(Weak::upgrade) {
            seated.browser.kill();
        }
        self.shared.launcher.close().await;
    }

    /// Waits until there is a browser, or until every seat has failed to get one.
    async fn somebody(&self) -> bool {
        let mut changed = self.shared.changed.subscribe();
        loop {
            changed.borrow_and_update();
            {
                let seats = self.shared.seats();
                if seats.iter().any(|seat| seat.usable().is_some()) {
                    return true;
                }
                if seats.iter().all(|seat| seat.failure.is_some()) {
                    return false;
                }
            }
            if changed.changed().await.is_err() {
                return false;
            }
        }
    }
}

impl Shared {
    fn seats(&self) -> MutexGuard<'_, Vec<Seat>> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, seat: usize, change: impl FnOnce(&mut Seat)) {
        change(&mut self.seats()[seat]);
        self.changed.send_replace(());
    }

    fn lend(&self, account: &AccountId) -> Option<Loan> {
        let seats = self.seats();
        let best = seats.iter().filter_map(Seat::usable).min_by_key(|seated| seated.rank(account))?;
        Some(best.lend())
    }

    /// Keeps a browser in a seat, for ever.
    async fn keep(self: Arc<Self>, seat: usize) {
        let mut old: Option<Arc<Seated>> = None;
        let mut pause = Pause(FIRST_PAUSE);
        loop {
            let new = self.successor(seat, old.as_deref(), &mut pause).await;
            self.change(seat, |seat| *seat = Seat { seated: Some(Arc::clone(&new)), failure: None });
            new.refill();
            // The old one goes with its last job.
            drop(old.take());
            tokio::select! {
                () = new.browser.closed() => {
                    self.change(seat, |seat| seat.seated = None);
                    self.report(&new);
                    if new.taken() == 0 {
                        pause.rest().await;
                    } else {
                        pause = Pause(FIRST_PAUSE);
                    }
                }
                () = new.served() => {
                    self.metrics.browser_ended(BrowserEnd::Recycled);
                    old = Some(new);
                }
            }
        }
    }

    /// Starts the next browser for a seat, and takes the old one out should it die meanwhile.
    async fn successor(&self, seat: usize, old: Option<&Seated>, pause: &mut Pause) -> Arc<Seated> {
        let launching = self.launch(seat, pause);
        tokio::pin!(launching);
        tokio::select! {
            new = &mut launching => new,
            () = gone(old) => {
                self.change(seat, |seat| seat.seated = None);
                launching.await
            }
        }
    }

    /// Starts a browser, again and again until one is up.
    async fn launch(&self, seat: usize, pause: &mut Pause) -> Arc<Seated> {
        loop {
            match self.launcher.launch().await {
                Ok(browser) => {
                    self.metrics.browser_started();
                    tracing::debug!(product = browser.product(), "a browser is ready");
                    let seated = Arc::new(Seated::new(
                        browser,
                        self.layout,
                        Arc::clone(&self.regulars),
                        Arc::clone(&self.metrics),
                    ));
                    let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
                    all.retain(|seated| seated.strong_count() > 0);
                    all.push(Arc::downgrade(&seated));
                    return seated;
                }
                Err(error) => {
                    tracing::error!(error = &error as &dyn std::error::Error, "a browser did not start");
                    self.metrics.browser_ended(BrowserEnd::StartFailed);
                    self.change(seat, |seat| seat.failure = Some(error));
                }
            }
            pause.rest().await;
        }
    }

    fn report(&self, dead: &Seated) {
        if dead.is_condemned() {
            self.metrics.browser_ended(BrowserEnd::Condemned);
        } else {
            self.metrics.browser_ended(BrowserEnd::Died);
            tracing::warn!(
                jobs = dead.taken(),
                last_words = dead.browser.last_words(),
                "a browser died and is replaced"
            );
        }
    }
}

async fn gone(browser: Option<&Seated>) {
    match browser {
        Some(seated) => seated.browser.closed().await,
        None => std::future::pending().await,
    }
}

/// How long to wait before the next try.
struct Pause(Duration);

impl Pause {
    async fn rest(&mut self) {
        let pause = self.0;
        self.0 = (pause * 2).min(LONGEST_PAUSE);
        tokio::time::sleep(pause).await;
    }
}
