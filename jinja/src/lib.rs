//! Templates in Jinja: checked when they are saved, filled for a job.
//!
//! Invariant: the check of a template ends the process of no program: tokens are counted before the parser runs, because it recurses
//! ([`check`]). The steps and the text of a [`Filler`] are bounded, for all of its texts together, with the same result each time.
//! That does not bound the time, the memory and the stack: `minijinja` counts what it prints, joins and compares after it has walked
//! it, and a list that holds another one twice, sixty levels deep (`{% set x = [x, x] %}`), is walked 2^60 times. So a program that
//! fills the templates of others does it in a process with limits of its own.

mod decimal;
mod environment;
mod error;
mod fill;
mod filters;
mod syntax;
mod values;

pub use error::{FillError, SyntaxError};
pub use fill::{Filler, MAX_STEPS};
pub use syntax::check;
