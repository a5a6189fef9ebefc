//! The harness of tests and benchmarks: servers under test, stand-ins for what they talk to, and decoders for their
//! output.
//!
//! Invariant: everything that is started here listens on 127.0.0.1 (canaries on every address that is not public),
//! is stopped and reaped when its value is dropped, and does not outlive the test process.

#![forbid(unsafe_code)]
#![allow(
    missing_docs,
    clippy::missing_errors_doc,
    clippy::must_use_candidate,
    clippy::return_self_not_must_use,
    reason = "it is used by tests only: an error fails the test, and its message names the cause"
)]

pub mod api_reference;
pub mod app;
mod behaviour;
pub mod browser;
pub mod busy_loops;
pub mod canary;
pub mod case;
pub mod client;
pub mod database;
pub mod delay_proxy;
pub mod deployment;
pub mod dns;
pub mod documents;
pub mod farm;
pub mod farm_process;
pub mod golden;
pub mod haproxy;
pub mod http_proxy;
pub mod image_file;
pub mod latch;
pub mod loopback;
pub mod metrics;
pub mod nginx;
pub mod operator;
pub mod option_examples;
pub mod pdf_file;
pub mod process;
pub mod procfs;
pub mod rate_limit;
pub mod raw_connection;
pub mod service;
pub mod settings;
pub mod settings_reference;
pub mod site;
pub mod suite;
pub mod tls;
pub mod wait;
