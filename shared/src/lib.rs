//! The wire contract of Platen: the job that an edge sends to a farm, the limits and formats of the
//! public API, the refusals of a farm, keys, ids, file names, templates, addresses and the database
//! schema.
//!
//! Invariant: no I/O, no clock, no randomness, no async. These come in as arguments, so that the same
//! code runs in a WebAssembly component, in the farm and in a test.

pub mod address;
pub mod email;
pub mod failure;
pub mod farm_address;
pub mod file_name;
pub mod format;
pub mod id;
pub mod job;
pub mod key;
pub mod limits;
pub mod name;
pub mod refusal;
pub mod schema;
mod secret;
pub mod template;
pub mod template_record;
mod text;
pub mod token;
pub mod url_rule;
pub mod wire;
