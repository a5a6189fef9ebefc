//! The render farm of Platen: a pool of headless Chromium, as a library and as an HTTP service.
//!
//! Steps of a job: `admit → lease → load → settle → capture → reset`, see [`Farm::render`].
//!
//! Invariant: a job cannot read data of another job, and its slot is free again after the job's deadline,
//! whatever its page does.

#![forbid(unsafe_code)]

mod begin_frames;
mod browser;
mod cgroup;
pub mod check;
pub mod cli;
mod config;
mod egress;
mod error;
mod farm;
mod http;
mod job_progress;
mod metrics;
mod page;
mod phases;
mod pool;
mod render;
mod token;

pub use cgroup::separate_browsers;
pub use config::{
    Config, EgressConfig, HostPattern, InvalidHostPattern, InvalidPorts, InvalidResolve, InvalidUpstream,
    NameServer, Ports, Resolve,
};
pub use error::{LaunchError, StartError};
pub use farm::{Farm, Readiness, Rendered};
pub use platen_cdp::CdpError;
pub use token::{EmptyToken, FarmToken};
