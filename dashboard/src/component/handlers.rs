//! What each address does: reads the form, asks the store, shows a page or leads to one.

pub(super) mod entry;
pub(super) mod files;
pub(super) mod keys;
pub(super) mod operator;
pub(super) mod person;
pub(super) mod templates;
pub(super) mod usage;
