//! The dashboard, a Spin component: users manage API keys and templates and see their usage, and
//! operators manage accounts.
//!
//! Invariant: the component makes no outbound HTTP requests; a page calls the render API by its script, or by a picture. What
//! an account owns is read and changed only through `router::context::Account`, whose statements are bound to
//! the account of the session. The modules in this file are pure and are tested natively; HTTP and the
//! database are in `router`.

#![cfg_attr(
    not(target_family = "wasm"),
    expect(
        dead_code,
        reason = "natively, only the unit tests use the modules; the component's build reports dead code"
    )
)]

mod assets;
mod chart;
mod cookies;
mod csrf;
mod files;
mod filter;
mod form;
mod format;
mod known_browser;
mod link_programs;
mod next;
mod pages;
mod password;
mod playground;
mod search;
mod starter;
mod throttle;

#[cfg(target_family = "wasm")]
mod router;
