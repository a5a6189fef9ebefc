//! Templates in Jinja: checked when they are saved, filled for a job.
//!
//! Invariant: no template ends the process. Tokens are counted before the parser runs, because it recurses
//! ([`check`]); steps and text of a [`Filler`] are bounded, for all of its texts together; and what recurses over
//! values that a template has nested runs on a stack that is large enough for all that the steps can nest ([`fill_all`]).
//!
//! Not bounded yet: `minijinja` counts what it prints, joins and compares after it has walked it, and a list that holds another one
//! twice, sixty levels deep (`{% set x = [x, x] %}`), is walked 2^60 times. Until that is solved, no program may fill the templates
//! of strangers with this crate.

mod decimal;
mod environment;
mod error;
mod fill;
mod filters;
mod syntax;
mod values;

pub use error::{FillError, Limit, SyntaxError};
pub use fill::{Filler, MAX_STEPS, fill_all};
pub use syntax::check;
pub use values::{InvalidData, MAX_DATA_BYTES, MAX_DATA_LEVELS, Values};
