//! The edge: a Spin component that authenticates a render request, validates it strictly, claims one
//! attempt of its account's quota, forwards one complete job to a farm and relays the file.
//!
//! Invariant: no job is sent to a farm before one SQL statement has recorded the attempt, and the file is
//! relayed as it arrives. The modules of this file are tested natively; `request` does all I/O (HTTP,
//! database, variables, clock).

pub mod api_error;
pub mod deadline;
pub mod quota;
pub mod recent_keys;
pub mod recent_links;
pub mod renewal;
pub mod row_buffer;
pub mod trace;

#[cfg(target_family = "wasm")]
mod request;
