//! The contract of Platen: the requests, limits and formats of the public API, the job that an edge sends to a farm, the refusals of a farm, keys, ids, file names, templates, addresses and the database
//! schema.
//!
//! Invariant: no I/O, no clock, no randomness, no async. These come in as arguments, so that the same
//! code runs in a WebAssembly component, in the farm and in a test.

pub mod address;
pub mod email;
pub mod endpoint;
pub mod error_code;
pub mod farm_address;
pub mod file_name;
pub mod format;
pub mod id;
pub mod job;
pub mod key;
pub mod length;
pub mod limits;
pub mod locale;
pub mod log_line;
pub mod name;
pub mod openapi;
pub mod page_ranges;
pub mod reason;
pub mod refusal;
pub mod request;
mod secret;
pub mod template;
pub mod template_record;
mod text;
pub mod time_zone;
pub mod token;
pub mod url_rule;
pub mod wire;
