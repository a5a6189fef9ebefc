//! Compares the outcomes of the load with the faults, the recorded attempts and the resources.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use platen_harness::{
    app::TestApp,
    operator::{Account, Quota},
};
use tokio::time::sleep;

use super::{faults::Fault, plan::Verdict, senders::Outcome};
use crate::{
    checks::Checks,
    statistics::{Tally, count, milliseconds, percentiles_ms},
};

/// The time within which a fault is noticed.
const DETECTION_TIME: Duration = Duration::from_secs(3);
/// Beyond the deadline of a request, as its client measures it.
const DEADLINE_TOLERANCE: Duration = Duration::from_secs(1);
/// Longer than the edge waits for a database to record an attempt.
const MAX_RECORD_TIME: Duration = Duration::from_secs(75);
/// Statuses of answers that count.
const COUNTED: [u16; 4] = [200, 422, 502, 504];
/// Different wrong answers that are printed.
const MAX_PRINTED: usize = 20;

pub(super) struct Ledger {
    pub(super) outcomes: Vec<Outcome>,
    pub(super) faults: Vec<Fault>,
    pub(super) duration: Duration,
}

impl Ledger {
    /// Checks the answers.
    pub(super) fn check(&self, checks: &mut Checks, deadline: Duration) {
        let number =
            |is: &dyn Fn(&Verdict) -> bool| self.outcomes.iter().filter(|it| is(&it.verdict)).count();
        let right = number(&|it| matches!(it, Verdict::Right(_)));
        let verdicts = self.outcomes.iter().map(|outcome| match &outcome.verdict {
            Verdict::Wrong(_) => "wrong".to_owned(),
            verdict => format!("{verdict:?}"),
        });
        checks.figure("outcomes", &verdicts.collect::<Tally<_>>().to_string());
        self.check_wrong(checks, "requests without one right answer");

        let (attributed, unattributed) = self.attribute();
        let faults: Tally<_> = self.faults.iter().map(|fault| &fault.name).collect();
        checks.figure("faults", &faults.to_string());
        let explained: usize = attributed.0.values().sum();
        let text = format!("{explained} of {}: {attributed}", explained + unattributed.len());
        checks.figure("renders that failed because of a fault", &text);
        let accepted = count(right + unattributed.len()).max(1.0);
        let statuses: Vec<String> = unattributed
            .iter()
            .map(|it| format!("{:?} after {:.1} s", it.verdict, it.latency().as_secs_f64()))
            .take(MAX_PRINTED)
            .collect();
        let text = format!(
            "{:.3} %; {} failed without a fault: {statuses:?}",
            100.0 * count(right) / accepted,
            unattributed.len()
        );
        checks.check_time(
            "accepted renders that are right",
            "≥ 99.9 %",
            &text,
            count(right) / accepted >= 0.999,
        );

        let answered = || self.outcomes.iter().filter(|it| !matches!(it.verdict, Verdict::HungUp));
        let late: Vec<_> = answered()
            .filter(|it| it.latency() > deadline + DEADLINE_TOLERANCE)
            .map(|it| (it.latency(), &it.verdict))
            .collect();
        let longest = answered().map(Outcome::latency).max().unwrap_or_default().as_secs_f64();
        let text = format!("{}; longest {longest:.1} s", late.len());
        checks.check_time("answers more than 1 s after the deadline", "0", &text, late.is_empty());
        let files: Vec<_> = self
            .outcomes
            .iter()
            .filter(|it| matches!(it.verdict, Verdict::Right(_)))
            .map(Outcome::latency)
            .collect();
        let [p50, p95] = percentiles_ms(&files, [50, 95]);
        let goodput = count(right) / self.duration.as_secs_f64();
        checks.figure("goodput", &format!("{goodput:.1}/s; p50 {p50:.0} ms, p95 {p95:.0} ms"));
    }

    fn check_wrong(&self, checks: &mut Checks, name: &str) {
        let wrong: Vec<_> = self
            .outcomes
            .iter()
            .filter_map(|it| match &it.verdict {
                Verdict::Wrong(text) => Some((text, it.latency())),
                _ => None,
            })
            .collect();
        for (text, latency) in wrong.iter().take(MAX_PRINTED) {
            eprintln!("after {:.0} ms: {text}", milliseconds(*latency));
        }
        checks.check(name, "0", &wrong.len().to_string(), wrong.is_empty());
    }

    /// The failed renders by the fault that explains them, and those that no fault explains.
    fn attribute(&self) -> (Tally<&str>, Vec<&Outcome>) {
        let mut failed: Vec<_> =
            self.outcomes.iter().filter(|it| matches!(it.verdict, Verdict::Failed(_))).collect();
        failed.sort_by_key(|it| it.ended);
        let mut left: Vec<(usize, &Fault)> = self.faults.iter().map(|it| (it.jobs, it)).collect();
        let (mut attributed, mut unattributed) = (Tally::default(), Vec::new());
        for outcome in failed {
            let explains = |fault: &Fault| {
                fault.from <= outcome.ended && fault.until + DETECTION_TIME >= outcome.started
            };
            match left.iter_mut().find(|(jobs, fault)| *jobs > 0 && explains(fault)) {
                Some((jobs, fault)) => {
                    *jobs -= 1;
                    attributed.add(&*fault.name);
                }
                None => unattributed.push(outcome),
            }
        }
        (attributed, unattributed)
    }

    /// Compares the counter of each account with its rows, and its rows with the answers.
    pub(super) async fn check_records(
        &self,
        app: &TestApp,
        accounts: &[Account],
        quotas: &[Quota],
        checks: &mut Checks,
    ) -> Result<()> {
        for (caller, (account, quota)) in accounts.iter().zip(quotas).enumerate() {
            let until = Instant::now() + MAX_RECORD_TIME;
            let records = loop {
                let records = self.records(app, account, caller).await?;
                if records.are_exact(*quota) || Instant::now() > until {
                    break records;
                }
                sleep(Duration::from_secs(1)).await;
            };
            let name = format!("counter of account {caller} ({quota:?})");
            checks.check(&name, "answers that count", &records.text(), records.are_exact(*quota));
        }
        Ok(())
    }

    async fn records(&self, app: &TestApp, account: &Account, caller: usize) -> Result<Records> {
        let of = |is: &dyn Fn(&Verdict) -> bool| {
            self.outcomes.iter().filter(|it| it.caller == caller && is(&it.verdict)).count() as u64
        };
        let rows = async |condition: &str| -> Result<u64> {
            let sql =
                format!("SELECT count(*) FROM attempts WHERE account_id = '{}' AND {condition}", account.id);
            Ok(u64::try_from(app.execute(&sql).await?.context("no count")?)?)
        };
        let mut statuses = Vec::new();
        for status in COUNTED {
            let answers = of(&|it| matches!(it, Verdict::Right(it) | Verdict::Failed(it) if *it == status));
            statuses.push((status, answers, rows(&format!("counted = 1 AND status = {status}")).await?));
        }
        Ok(Records {
            attempts: app.operator.attempts(&account.id).await?,
            rows: rows("counted = 1").await?,
            statuses,
            hang_ups: of(&|it| *it == Verdict::HungUp),
            unclear: of(&|it| matches!(it, Verdict::Wrong(_))),
        })
    }
}

/// The records of one account beside the answers to its requests.
struct Records {
    /// The counter of this month.
    attempts: u64,
    /// Rows of attempts that count.
    rows: u64,
    /// Status, answers, rows.
    statuses: Vec<(u16, u64, u64)>,
    hang_ups: u64,
    /// Requests with a wrong answer or none.
    unclear: u64,
}

impl Records {
    /// Every answer that counts has its row, further rows are those of clients that disconnected, and the counter
    /// is the number of rows.
    fn are_exact(&self, quota: Quota) -> bool {
        let answers: u64 = self.statuses.iter().map(|(_, answers, _)| answers).sum();
        let has_rows = self.statuses.iter().all(|(_, answers, rows)| rows >= answers);
        let is_within = match quota {
            Quota::Of(quota) => self.attempts <= quota,
            Quota::Unlimited => true,
        };
        is_within
            && has_rows
            && self.attempts == self.rows
            && self.rows - answers <= self.hang_ups + self.unclear
    }

    fn text(&self) -> String {
        let Self { attempts, rows, statuses, hang_ups, unclear } = self;
        let statuses: Vec<_> = statuses
            .iter()
            .map(|(status, answers, rows)| format!("{status}: {answers} answers, {rows} rows"))
            .collect();
        format!(
            "{attempts} attempts, {rows} rows that count; {}; {hang_ups} hang-ups, {unclear} unclear",
            statuses.join("; ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_attributed_to_a_fault_of_its_time_and_to_no_more_than_one() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let failed = |from, until| Outcome {
            caller: 0,
            started: at(from),
            ended: at(until),
            verdict: Verdict::Failed(502),
        };
        let fault = Fault { name: "browser killed".to_owned(), from: at(10), until: at(10), jobs: 1 };
        // Before the fault, during it twice, and long after it.
        let outcomes = vec![failed(1, 9), failed(8, 12), failed(9, 11), failed(20, 21)];
        let ledger = Ledger { outcomes, faults: vec![fault], duration: Duration::from_mins(1) };
        let (attributed, unattributed) = ledger.attribute();
        assert_eq!(attributed.to_string(), "1 × browser killed");
        let ends: Vec<_> = unattributed.iter().map(|it| it.ended).collect();
        assert_eq!(ends, [at(9), at(12), at(21)]);
    }

    #[test]
    fn rows_without_an_answer_are_those_of_clients_that_disconnected() {
        let records = |attempts, rows, hang_ups| Records {
            attempts,
            rows,
            statuses: vec![(200, 5, 5), (504, 1, 1)],
            hang_ups,
            unclear: 0,
        };
        assert!(records(6, 6, 0).are_exact(Quota::Of(6)));
        assert!(!records(6, 6, 0).are_exact(Quota::Of(5)));
        assert!(records(7, 7, 1).are_exact(Quota::Unlimited));
        assert!(!records(7, 7, 0).are_exact(Quota::Unlimited));
        assert!(!records(7, 6, 1).are_exact(Quota::Unlimited));
    }
}
