//! When a statement is sent again.
//!
//! Invariant: a statement that may not run twice is sent again only if the database has not run it.

use std::time::{Duration, Instant};

/// How long after its start a statement is sent again to a database that is busy or absent. One try may take 5 s more: a
/// file's lock and the turns of statements are waited for that long.
pub const RETRY_TIME: Duration = Duration::from_secs(10);
/// The pause before a statement is sent again; doubles each time, up to a twentieth of [`RETRY_TIME`].
const MIN_DELAY: Duration = Duration::from_millis(20);

/// What an error of a database says about its statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumString, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Outcome {
    /// The database is busy. The statement has not run.
    NotRun,
    /// The database was not reached, or cannot be opened. The statement has not run.
    Away,
    /// The response was lost. The statement may have run.
    Unknown,
    /// The database cannot work, which will not have changed a moment later: its disk is full or fails, its file must not be
    /// written, or it has been away for some time.
    Unable,
    /// The statement failed, its values do not match the schema, or the database is damaged.
    Failed,
}

/// Runs a statement until its result is final.
///
/// # Errors
/// The last error of `run`, or one of `random`.
pub async fn repeated<T, E>(
    may_run_twice: bool,
    outcome: impl Fn(&E) -> Outcome,
    sleep: impl AsyncFn(Duration),
    random: impl Fn() -> Result<[u8; 1], E>,
    run: impl AsyncFn() -> Result<T, E>,
) -> Result<T, E> {
    let (until, mut delay) = (Instant::now() + RETRY_TIME, MIN_DELAY);
    loop {
        let error = match run().await {
            Ok(result) => return Ok(result),
            Err(error) => error,
        };
        let is_repeated = match outcome(&error) {
            Outcome::NotRun | Outcome::Away => true,
            Outcome::Unknown => may_run_twice,
            Outcome::Unable | Outcome::Failed => false,
        };
        if !is_repeated || Instant::now() + delay > until {
            return Err(error);
        }
        // Half of it is fixed, so that callers that were refused together do not return together.
        let [part] = random()?;
        sleep(delay / 2 + delay * u32::from(part) / u32::from(u8::MAX)).await;
        delay = (delay * 2).min(RETRY_TIME / 20);
    }
}
