//! The render farm of Platen: a pool of headless Chromium, as a library and behind HTTP.
//!
//! ```no_run
//! # async fn example(job: platen_shared::job::RenderJob) -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//! use platen_farm::{Config, Farm, FarmToken};
//!
//! let farm = Farm::start(Config::default()).await?;
//! let file = farm.render(&job, Duration::from_secs(30)).await?;
//!
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:3001").await?;
//! let token = FarmToken::new("a long random text")?;
//! farm.serve(listener, token, async { tokio::signal::ctrl_c().await.ok(); }).await?;
//! # Ok(()) }
//! ```
//!
//! The way of one job: `admit → lease → load → settle → capture → clean`, see [`Farm::render`].
//!
//! Invariant: a job never sees anything of another job, and whatever a page does, its slot is
//! usable again after the job's deadline. Left to others: keys, quotas and public field names
//! (edge).

#![forbid(unsafe_code)]

mod admission;
mod begin_frames;
mod browser;
mod cancellation;
mod cdp;
mod config;
mod egress;
mod error;
mod farm;
mod http;
mod metrics;
mod metrics_registry;
mod page;
mod pool;
mod render;
pub mod startup;
mod token;

pub use cdp::CdpError;
pub use config::{Config, InvalidResolve, Resolve};
pub use egress::{
    EgressConfig, HostPattern, InvalidHostPattern, InvalidPorts, InvalidUpstream, NameServer, Ports,
};
pub use error::{LaunchError, StartError};
pub use farm::{Farm, Rendered};
pub use metrics_registry::MetricsRegistry;
pub use token::{EmptyToken, FarmToken};
