//! The render farm of Platen: a pool of headless Chromium, as a library and as an HTTP service.
//!
//! Steps of a job: `fill → admit → lease → load → settle → capture → reset`, see [`Farm::render`].
//!
//! Invariant: a job cannot read data of another job, and its slot is free again after the job's deadline,
//! whatever its page does.

#![forbid(unsafe_code)]

mod begin_frames;
mod browser;
mod cgroup;
pub mod check;
mod config;
mod egress;
mod egress_config;
mod error;
mod farm;
mod fill;
mod folder;
mod http;
mod job_progress;
mod metrics;
mod page;
mod pool;
mod render;

pub use cgroup::separate_browsers;
pub use config::{CheckArgs, Cli, Config, InvalidResolve, Resolve};
pub use egress_config::{
    EgressConfig, HostPattern, InvalidHostPattern, InvalidPorts, InvalidUpstream, NameServer, Ports,
};
pub use error::{LaunchError, StartError};
pub use farm::{Farm, Readiness};
pub use fill::fill_template_if_asked;
pub use folder::{Folder, Missing};
pub use http::{EmptyToken, FarmToken};
pub use platen_cdp::CdpError;
pub use render::Rendered;
