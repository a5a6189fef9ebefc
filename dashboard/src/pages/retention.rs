//! The operator's page of the retention settings.

use askama::Template;
use platen_statements::retention::Due;

use super::Layout;
use crate::form::Field;

#[derive(Debug, Template)]
#[template(path = "retention.html")]
pub(crate) struct RetentionPage {
    pub(crate) layout: Layout,
    /// What the stored settings have not deleted yet.
    pub(crate) due: Due,
    /// Versions, audit log, attempts.
    pub(crate) fields: [Field; 3],
}

/// What settings would delete, before they are saved.
#[derive(Debug, Template)]
#[template(path = "retention_confirm.html")]
pub(crate) struct ConfirmRetentionPage {
    pub(crate) layout: Layout,
    pub(crate) due: Due,
    /// Versions, audit log, attempts.
    pub(crate) fields: [Field; 3],
}
