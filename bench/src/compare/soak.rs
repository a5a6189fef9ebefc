//! Memory of the farm over many jobs.
//!
//! Invariant: PDF and PNG take turns, as an account would mix them; memory is read while nothing is
//! under way.

use std::{fmt::Write as _, sync::Arc, time::Duration};

use anyhow::{Context as _, Result};
use platen_tests::site::Site;

use super::{
    call::Call,
    drive::{Limits, closed},
    page, report, say,
    target::{Kind, Surroundings, Target},
};

/// Readings over the whole.
const STEPS: usize = 20;

/// Runs the jobs and gives the section of the report.
pub(super) async fn run(around: &Surroundings, site: &Site, jobs: usize) -> Result<String> {
    let target = Target::start(Kind::Farm, around).await?;
    let http = reqwest::Client::builder().no_proxy().build()?;
    let pages = page::all(site)?;
    let call = |name: &str| -> Result<Arc<Call>> {
        let page = pages.iter().find(|page| page.name == name).context("a page")?;
        Ok(Arc::new(Call::new(&target.speech, target.address, page)?))
    };
    let calls = [call("invoice-pdf")?, call("invoice-png")?];
    let concurrency = around.concurrency;
    let half = Limits { jobs: (jobs / STEPS / 2).max(1), time: Duration::MAX, concurrency };

    let mut readings = Vec::new();
    let (mut done, mut errors) = (0, 0);
    for _ in 0..STEPS {
        for call in &calls {
            let seen = closed(&http, call, half).await;
            done += seen.latencies.len();
            errors += seen.errors.len();
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
        let memory = target.meter.memory();
        say(&format!("{done} jobs, {errors} errors, {:.0} MiB", report::mebibytes(memory)));
        readings.push((done, memory));
    }
    let mut text = format!(
        "`bench/run --soak`: {done} jobs of one account on the farm alone, PDF and PNG of the invoice in turns, \
         {concurrency} at once; {errors} failed. PSS of the whole process tree between jobs.\n\n\
         | jobs | PSS MiB |\n| --- | --- |\n"
    );
    for (done, memory) in &readings {
        writeln!(text, "| {done} | {:.0} |", report::mebibytes(*memory))?;
    }
    let (first, second) = readings.split_at(STEPS / 2);
    let highest =
        |half: &[(usize, u64)]| half.iter().map(|(_, memory)| report::mebibytes(*memory)).fold(0.0, f64::max);
    let (first, second) = (highest(first), highest(second));
    write!(text, "\nHighest in the first half: {first:.0} MiB, in the second half: {second:.0} MiB.\n")?;
    Ok(text)
}
