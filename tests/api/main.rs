//! The black-box suite: checks every promise of the contract over HTTP, on servers that it starts or on an external
//! one.
//!
//! `cargo test -p platen-tests --test api -- [FILTER] [--test-threads N]`; its environment variables are in
//! `src/settings.rs`.
//!
//! Invariant: all servers have been stopped when this process ends, after a failure or a signal too.

mod account_limits;
mod album;
mod auth;
mod claims_ahead;
mod clients;
mod connections;
mod crash;
mod dashboard;
mod database;
mod database_faults;
mod documents;
mod egress;
mod examples;
mod farm_outages;
mod farms;
mod faults;
mod file_names;
mod fill;
mod golden;
mod headers;
mod images;
mod internet;
mod jinja;
mod limits;
mod links;
mod logs;
mod matrix;
mod mcp;
mod openapi;
mod option_pictures;
mod order;
mod overload;
mod own_pages;
mod pages;
mod pdf;
mod quota;
mod relay;
mod round_trips;
mod shutdown;
mod snippets;
mod statements;
mod template;
mod template_files;
mod trace;
mod uploads;

/// What most cases use.
mod prelude {
    pub(crate) use std::{
        sync::Arc,
        time::{Duration, Instant},
    };

    pub(crate) use anyhow::{Context as _, Result, ensure};
    pub(crate) use platen_harness::{
        app::{FARM_TOKEN, Options, TestApp},
        browser::{Browser, Page},
        case::Case,
        client::{Answer, RENDER, TEMPLATE, Target},
        farm::{Behaviour, StandInFarm},
        image_file::{GREEN, Picture},
        latch::Latch,
        operator::{Account, Quota},
        pdf_file::Pdf,
        procfs,
        service::Service,
        suite::{Stage, StandIn},
        wait,
    };
    pub(crate) use platen_shared::{refusal::Refusal, wire};
    pub(crate) use serde_json::{Value, json};
}

use std::{process::ExitCode, sync::Arc};

use libtest_mimic::Arguments;
use platen_harness::{case, settings::Settings, suite::Suite, tls};
use tokio::{
    runtime::Runtime,
    signal::unix::{SignalKind, signal},
};

fn main() -> anyhow::Result<ExitCode> {
    tls::use_ring();
    let mut arguments = Arguments::from_args();
    // Cases mostly wait: for commands, starts and renders.
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    arguments.test_threads.get_or_insert(3 * cores);
    let runtime = Runtime::new()?;
    let suite = Suite::new(Settings::from_env()?)?;
    // The kernel signals the servers when this process ends, but does not delete their files.
    let directory = suite.directory().to_owned();
    runtime.spawn(async move {
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = tokio::signal::ctrl_c() => {}
            }
            let _ = std::fs::remove_dir_all(directory);
            std::process::exit(130);
        }
    });

    let cases: Vec<case::Case> = [
        golden::cases()?,
        auth::cases(),
        clients::cases(suite.settings()),
        mcp::cases(suite.settings()),
        option_pictures::cases(),
        examples::cases(),
        order::cases(),
        own_pages::cases(),
        documents::cases(),
        snippets::cases(),
        headers::cases(),
        statements::cases(),
        quota::cases(),
        account_limits::cases(),
        claims_ahead::cases(),
        links::cases(),
        file_names::cases(),
        template::cases(),
        template_files::cases(),
        images::cases(),
        internet::cases(),
        fill::cases(),
        jinja::cases(),
        pdf::cases(),
        pages::cases(),
        farms::cases(),
        farm_outages::cases(),
        faults::cases(),
        database::cases(),
        database_faults::cases(),
        round_trips::cases(),
        overload::cases(),
        uploads::cases(),
        connections::cases(),
        egress::cases(),
        crash::cases(),
        limits::cases(),
        shutdown::cases(),
        relay::cases(),
        trace::cases(),
        logs::cases(),
        openapi::cases(),
        dashboard::cases(),
    ]
    .concat();
    let trials = case::trials(&suite, &cases, matrix::MATRIX, runtime.handle());
    let conclusion = libtest_mimic::run(&arguments, trials);
    debug_assert_eq!(Arc::strong_count(&suite), 1, "a case holds the suite");
    let context = runtime.enter();
    drop(suite);
    drop(context);
    Ok(conclusion.exit_code())
}
