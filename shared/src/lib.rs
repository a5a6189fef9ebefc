//! The contract of Platen: the requests, limits and formats of the public API, the job that an edge sends to a farm, the refusals
//! of a farm, keys, ids, file names, templates and addresses.
//!
//! Invariant: no I/O, no clock, no randomness, no async. These come in as arguments, so that the same
//! code runs in a WebAssembly component, in the farm and in a test.

/// Adds `as_str` and `Display` to a type that holds a text.
macro_rules! text {
    ($name:ident) => {
        impl $name {
            /// The text as it is stored.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

pub mod address;
pub mod dashboard_path;
pub mod email;
pub mod endpoint;
pub mod farm_address;
pub mod file_name;
pub mod format;
pub mod host_names;
pub mod id;
pub mod job;
pub mod key;
pub mod length;
pub mod limits;
pub mod link;
pub mod locale;
pub mod log_line;
pub mod name;
pub mod openapi;
pub mod page_ranges;
pub mod page_report;
pub mod reason;
pub mod refusal;
pub mod request;
pub mod template;
pub mod template_files;
pub mod template_record;
pub mod text;
pub mod token;
pub mod url_rule;
pub mod wire;
