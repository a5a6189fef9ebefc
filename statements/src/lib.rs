//! The SQL statements of Platen and the records they return: for the operator's commands, the
//! dashboard and the edge.
//!
//! Invariant: without I/O, clock or randomness of its own; a [`Backend`] provides the connection and the
//! random bytes, and [`Store`] holds the time. What an account owns is reached through
//! [`AccountScope`] only, and what operators may do through [`Operator`] only.

#![allow(clippy::missing_errors_doc, reason = "every error is one of the backend")]

pub mod accounts;
pub mod attempts;
pub mod audit;
mod backend;
mod change;
pub mod invites;
pub mod keys;
mod scope;
pub mod scoped;
pub mod sessions;
pub mod sign_in;
pub mod templates;
pub mod usage;
pub mod users;

pub use backend::{Backend, DataError, Row, Value};
pub use scope::{AccountScope, Operator, Store};
