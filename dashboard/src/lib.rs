//! The dashboard: a Spin component with which account holders make keys and templates and see their
//! usage, and operators make accounts.
//!
//! Invariant: it has no way out: no outbound host, and a render is asked for by the page's own
//! script. What an account owns is read and changed only through `store::account::Account`, whose
//! statements are all bound to the account of the session. The modules in this file are plain code,
//! tested natively; all contact with the outside (HTTP, database, clock) is in `component` and
//! `store`.

pub mod assets;
pub mod chart;
pub mod clock;
pub mod cookies;
pub mod csv;
pub mod form;
pub mod guard;
pub mod hex;
pub mod notice;
pub mod pages;
pub mod password;
pub mod throttle;

#[cfg(target_family = "wasm")]
mod component;
#[cfg(target_family = "wasm")]
mod store;
