//! The harness of the black-box suite: real servers on ports of their own, stand-ins for what a
//! fault needs, and decoders for what comes back. The cases are in `api/`, their data in `golden/`
//! and `fixtures/`.
//!
//! Invariant: whatever is started here is bound to 127.0.0.1 (canaries to every address that is not public), is stopped and reaped when its
//! handle is dropped, and does not outlive the test process. Left to others: building what is
//! tested, and installing `sqld`, poppler and Chromium (scripts).

#![forbid(unsafe_code)]

pub mod app;
pub mod browser;
pub mod canary;
pub mod case;
pub mod client;
pub mod database;
pub mod dns;
pub mod farm;
pub mod golden;
pub mod image_file;
pub mod jwt;
pub mod loopback;
pub mod operator;
pub mod pdf_file;
pub mod process;
pub mod procfs;
pub mod settings;
pub mod site;
pub mod suite;
