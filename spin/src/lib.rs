//! The Spin platform as both components use it: settings, request bodies, buffered responses, the database connection, the
//! farm, the log, randomness and the clock.
//!
//! Nearly everything needs the imports of a component, so natively this crate is nearly empty.

pub mod media_type;
pub mod outcome;
pub mod statement_queue;

#[cfg(target_family = "wasm")]
pub mod background;
#[cfg(target_family = "wasm")]
pub mod body;
#[cfg(target_family = "wasm")]
pub mod database;
#[cfg(target_family = "wasm")]
pub mod farm;
#[cfg(target_family = "wasm")]
pub mod key_value;
#[cfg(target_family = "wasm")]
pub mod platform;
