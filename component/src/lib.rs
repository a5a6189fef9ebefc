//! What the Spin components share: settings, request bodies, answers that are whole, database rows,
//! and randomness and the clock.
//!
//! Invariant: nothing here knows what a request means. Everything needs the component's imports,
//! so natively this crate is empty. Left to others: statements and their meaning (edge, dashboard).

#[cfg(target_family = "wasm")]
pub mod body;
#[cfg(target_family = "wasm")]
pub mod database;
#[cfg(target_family = "wasm")]
pub mod platform;
#[cfg(target_family = "wasm")]
pub mod reply;
#[cfg(target_family = "wasm")]
pub mod settings;
