//! The farm from outside, with a real Chromium: one farm for all tests that do not need their own.
//!
//! Invariant: when the last test is done, no process and no directory of the farm's is left.

#![allow(clippy::unwrap_used, reason = "every function here is a test or a part of one")]

mod determinism;
mod egress;
mod formats;
mod hostile;
mod http;
mod leaks;
mod lifecycle;
mod neighbours;
mod patience;
mod support;
mod time;
mod urls;

use std::{process::ExitCode, sync::Arc};

use libtest_mimic::{Arguments, Trial};

use support::{Shared, leftovers};

type Test = (&'static str, fn(Arc<Shared>) -> support::Outcome);

fn main() -> ExitCode {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let arguments = Arguments::from_args();
    let shared = Arc::new(runtime.block_on(Shared::start()));
    let tests = [
        determinism::TESTS,
        egress::TESTS,
        formats::TESTS,
        hostile::TESTS,
        http::TESTS,
        leaks::TESTS,
        lifecycle::TESTS,
        neighbours::TESTS,
        patience::TESTS,
        time::TESTS,
        urls::TESTS,
    ]
    .concat();
    let trials = tests
        .into_iter()
        .map(|(name, test)| {
            let (shared, handle) = (Arc::clone(&shared), runtime.handle().clone());
            Trial::test(name, move || {
                handle.block_on(test(shared));
                Ok(())
            })
        })
        .collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    let homes = leftovers::homes();
    runtime.block_on(shared.farm.shutdown());
    let left = leftovers::of(std::process::id(), &homes);
    if left.is_empty() {
        conclusion.exit_code()
    } else {
        eprintln!("left behind: {left:#?}");
        ExitCode::FAILURE
    }
}
