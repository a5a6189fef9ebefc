//! The farm with a real Chromium. Tests share one farm unless they need another configuration.
//!
//! Invariant: after the last test, no process and no directory of the farm is left.

#![allow(clippy::unwrap_used, reason = "all functions are tests or parts of tests")]

/// The tests of a module: a name and an async function of [`Shared`] each.
macro_rules! tests {
    ($($name:expr => $test:path),+ $(,)?) => {
        pub(crate) const TESTS: &[crate::Test] = &[$(($name, |shared| Box::pin($test(shared)))),+];
    };
}

mod address_leaks;
mod address_probes;
mod animations;
mod assets;
mod deadlines;
mod determinism;
mod egress;
mod failed_requests;
mod fonts;
mod frames;
mod full_page;
mod hostile;
mod http;
mod kept_addresses;
mod killed;
mod leaks;
mod lifecycle;
mod loading;
mod markup_address;
mod names;
mod navigations;
mod neighbours;
mod options;
mod page_options;
mod page_report;
mod page_time;
mod pdf_attachments;
mod pdf_documents;
mod pdf_headers;
mod pdf_metadata;
mod pdf_options;
mod pdf_pages;
mod pdf_reading;
mod pdf_standards;
mod pdf_width;
mod reader;
mod scrolling;
mod shown;
mod support;
mod templates;
mod virtual_time;

use std::{pin::Pin, process::ExitCode, sync::Arc};

use libtest_mimic::{Arguments, Trial};

use platen_harness::procfs;
use support::Shared;

type Test = (&'static str, fn(Arc<Shared>) -> Pin<Box<dyn Future<Output = ()>>>);

fn main() -> ExitCode {
    platen_farm::fill_template_if_asked();
    platen_harness::tls::use_ring();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let mut arguments = Arguments::from_args();
    // Most tests wait for the time of their pages, and for farms to start and to end. With more at once, a job with tens of megabytes
    // of text has missed its deadline of 180 s.
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    arguments.test_threads.get_or_insert(2 * cores);
    let shared = Arc::new(runtime.block_on(Shared::start(arguments.test_threads)));
    let tests = [
        address_leaks::TESTS,
        address_probes::TESTS,
        animations::TESTS,
        assets::TESTS,
        deadlines::TESTS,
        determinism::TESTS,
        egress::TESTS,
        failed_requests::TESTS,
        frames::TESTS,
        full_page::TESTS,
        hostile::TESTS,
        http::TESTS,
        kept_addresses::TESTS,
        killed::TESTS,
        leaks::TESTS,
        lifecycle::TESTS,
        loading::TESTS,
        markup_address::TESTS,
        names::TESTS,
        navigations::TESTS,
        neighbours::TESTS,
        fonts::TESTS,
        options::TESTS,
        page_options::TESTS,
        page_report::TESTS,
        page_time::TESTS,
        pdf_attachments::TESTS,
        pdf_documents::TESTS,
        pdf_headers::TESTS,
        pdf_metadata::TESTS,
        pdf_options::TESTS,
        pdf_pages::TESTS,
        pdf_reading::TESTS,
        pdf_width::TESTS,
        pdf_standards::TESTS,
        reader::TESTS,
        scrolling::TESTS,
        shown::TESTS,
        templates::TESTS,
        virtual_time::TESTS,
    ]
    .concat();
    let trials = tests
        .into_iter()
        .map(|(name, test)| {
            let (shared, handle) = (Arc::clone(&shared), runtime.handle().clone());
            let trial = Trial::test(name, move || {
                handle.block_on(test(shared));
                Ok(())
            });
            match lifecycle::ignored(name) {
                Some(reason) => trial.with_kind(reason).with_ignored_flag(true),
                None => trial,
            }
        })
        .collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    let own = std::process::id();
    let workspaces: Vec<_> =
        procfs::browsers(own).iter().filter_map(|browser| browser.browser_workspace().ok()).collect();
    runtime.block_on(shared.shutdown());
    let leftovers = procfs::leftovers(own, &workspaces);
    if leftovers.is_empty() {
        conclusion.exit_code()
    } else {
        eprintln!("leftovers: {leftovers:#?}");
        ExitCode::FAILURE
    }
}
