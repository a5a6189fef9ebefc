//! The responses of one case, and whether the records agree with them.

use std::{
    collections::BTreeMap,
    fmt,
    time::{Duration, Instant},
};

use anyhow::Result;
use platen_tests::{app::TestApp, operator::Account};

use crate::statistics::percentile_ms;

/// Longer than the edge waits for a database to record an attempt.
const MAX_RECORD_TIME: Duration = Duration::from_secs(75);

pub(super) struct Outcome {
    /// The number of responses by status.
    by_status: BTreeMap<String, u64>,
    /// Of the files.
    latencies: Vec<Duration>,
    longest: Duration,
}

impl Outcome {
    /// Status and latency of each response.
    pub(super) fn new(answers: impl IntoIterator<Item = (String, Duration)>) -> Self {
        let mut outcome = Self { by_status: BTreeMap::new(), latencies: Vec::new(), longest: Duration::ZERO };
        for (status, latency) in answers {
            if status == "200" {
                outcome.latencies.push(latency);
            }
            outcome.longest = outcome.longest.max(latency);
            *outcome.by_status.entry(status).or_default() += 1;
        }
        outcome
    }

    fn with(&self, statuses: &[&str]) -> u64 {
        statuses.iter().filter_map(|status| self.by_status.get(*status)).sum()
    }

    /// Compares recorded attempts and their rows with the responses, once they agree or have had time to.
    pub(super) async fn records(&self, app: &TestApp, account: &Account) -> Result<String> {
        let (files, counted) = (self.with(&["200"]), self.with(&["200", "422", "502", "504"]));
        let until = Instant::now() + MAX_RECORD_TIME;
        loop {
            let attempts = app.operator.attempts(&account.id).await?;
            let sql =
                format!("SELECT count(*) FROM attempts WHERE account_id = '{}' AND status = 200", account.id);
            let rows = app.execute(&sql).await?.and_then(|rows| u64::try_from(rows).ok()).unwrap_or_default();
            if (attempts, rows) == (counted, files) {
                return Ok("attempts and rows exact".to_owned());
            }
            if Instant::now() > until {
                return Ok(format!(
                    "{attempts} attempts for {counted} that count, {rows} rows of {files} files"
                ));
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let statuses: Vec<String> =
            self.by_status.iter().map(|(status, number)| format!("{number} × {status}")).collect();
        let p50 = percentile_ms(&self.latencies, 50).unwrap_or(f64::NAN);
        write!(f, "{}; p50 {p50:.0} ms, longest {:.1} s", statuses.join(", "), self.longest.as_secs_f64())
    }
}
