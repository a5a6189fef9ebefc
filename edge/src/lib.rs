//! The edge: a Spin component that authenticates a render request, validates it strictly, claims
//! one attempt of its account's quota, forwards one complete job to a farm and relays the file.
//!
//! Invariant: nothing leaves for a farm before one SQL statement has recorded the attempt, and the
//! file is never held here. The modules in this file are plain code, tested natively; all contact
//! with the outside (HTTP, database, variables, clock) is in `component`.

pub mod api_error;
pub mod credentials;
pub mod quota;
pub mod request;

#[cfg(target_family = "wasm")]
mod component;
