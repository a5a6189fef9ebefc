//! The handlers of all addresses: each parses its form, uses the store, and shows a page or redirects.

pub(super) mod assets;
pub(super) mod invites;
pub(super) mod keys;
pub(super) mod operator;
pub(super) mod people;
pub(super) mod playground;
pub(super) mod profile;
pub(super) mod requests;
pub(super) mod resume;
pub(super) mod retention;
pub(super) mod sign_in;
pub(super) mod templates;
pub(super) mod usage;
