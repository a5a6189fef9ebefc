//! The wire contract of Platen and nothing else: the job an edge hands to a farm, the limits and
//! formats of the public API, the refusals a farm answers with, keys, ids, file names, templates,
//! addresses and the database schema.
//!
//! Invariant: pure. No I/O, no clock, no randomness, no async: whatever is needed comes in as an
//! argument, so that the same code runs in a WebAssembly component, in the farm and in a test.
//! Left to others: reading HTTP bodies (edge), running SQL (edge, host), rendering (farm).

pub mod address;
pub mod email;
pub mod failure;
pub mod file_name;
pub mod format;
pub mod id;
pub mod job;
pub mod key;
pub mod limits;
pub mod name;
pub mod refusal;
pub mod schema;
pub mod template;
pub mod template_record;
pub mod token;
pub mod url_rule;
pub mod wire;
