//! The SQL statements of Platen and the records they return: for the operator's commands, the
//! dashboard and the edge.
//!
//! Invariant: this crate does no I/O and reads no clock. A [`Backend`] provides the connection and the
//! random bytes, [`Store::new`] takes the time. What an account owns is reached through
//! [`AccountScope`] only, what its owners may do besides through [`OwnerScope`], and what operators may do through
//! [`Operator`].

#![allow(clippy::missing_errors_doc, reason = "every error is one of the backend")]

pub mod accounts;
pub mod attempts;
pub mod audit;
mod backend;
mod change;
mod claim_sql;
pub mod claims_ahead;
mod current_user;
pub mod invites;
pub mod keys;
pub mod limits;
pub mod links;
pub mod members;
mod outage;
pub mod requests;
pub mod retention;
mod retry;
mod role;
mod scope;
pub mod sessions;
mod sqlite_code;
pub mod template_files;
pub mod templates;
mod timestamp;
pub mod usage;
pub mod users;

pub use accounts::NameTaken;
pub use backend::{Backend, DataError, Row, Value};
pub use current_user::{CurrentUser, Membership};
pub use outage::{Outage, Verdict};
pub use retry::{Outcome, RETRY_TIME, repeated};
pub use scope::{AccountScope, Operator, OwnerScope, Store};
pub use timestamp::Timestamp;
