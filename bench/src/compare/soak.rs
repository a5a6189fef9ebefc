//! The farm's memory over many jobs.
//!
//! Invariant: PDF and PNG jobs alternate, and memory is read while no job is in progress.

use std::{fmt::Write as _, sync::Arc, time::Duration};

use anyhow::Result;
use platen_tests::site::Site;

use super::{
    load::{LoadLimits, closed_loop},
    markdown::mebibytes,
    page,
    prepared_request::PreparedRequest,
    target::{Environment, Kind, Target},
};
use crate::http_client;

/// Number of memory readings.
const READINGS: usize = 20;

/// Runs the jobs and returns the section of `RESULTS.md`.
pub(super) async fn run(environment: &Environment, site: &Site, jobs: usize) -> Result<String> {
    let target = Target::start(Kind::Farm, environment).await?;
    let http = http_client::client()?;
    let request = |name| anyhow::Ok(Arc::new(PreparedRequest::new(&target, &page::named(site, name)?)?));
    let requests = [request("invoice-pdf")?, request("invoice-png")?];
    let concurrency = environment.concurrency;
    let limits = LoadLimits { jobs: (jobs / READINGS / 2).max(1), time: Duration::MAX, concurrency };

    let mut readings = Vec::new();
    let (mut done, mut errors) = (0, 0);
    for _ in 0..READINGS {
        for request in &requests {
            let result = closed_loop(&http, request, limits).await;
            done += result.latencies.len();
            errors += result.errors.len();
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
        let memory = mebibytes(target.processes.memory_bytes());
        eprintln!("{done} jobs, {errors} errors, {memory:.0} MiB");
        readings.push((done, memory));
    }
    let mut text = format!(
        "`bench/run --soak`: {done} jobs of one account on the farm alone, alternating between PDF and PNG of the \
         invoice, {concurrency} concurrent jobs; {errors} failed. PSS of the whole process tree between jobs.\n\n\
         | jobs | PSS MiB |\n| --- | --- |\n"
    );
    for (done, memory) in &readings {
        writeln!(text, "| {done} | {memory:.0} |")?;
    }
    let (first, second) = readings.split_at(READINGS / 2);
    let maximum = |half: &[(usize, f64)]| half.iter().map(|(_, memory)| *memory).fold(0.0, f64::max);
    let (first, second) = (maximum(first), maximum(second));
    write!(text, "\nMaximum in the first half: {first:.0} MiB, in the second half: {second:.0} MiB.\n")?;
    Ok(text)
}
