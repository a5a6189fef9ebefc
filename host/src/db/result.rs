//! What a statement returns and changes.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use super::Value;

/// Limit of a result, so that one statement cannot exhaust the memory: some hundred thousand short rows.
pub(super) const MAX_RESULT_BYTES: usize = 64 * 1024 * 1024;

/// The values of one row, in the order of the columns.
pub(crate) type Row = Vec<Value>;

#[derive(Debug, Default)]
pub(crate) struct QueryResult {
    /// Names of the columns.
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Row>,
}

/// The effects of a connection's last statement that wrote, as SQLite counts them.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    changes: AtomicU64,
    last_insert_rowid: AtomicI64,
}

impl Effects {
    pub(super) fn store(&self, changes: u64, last_insert_rowid: i64) {
        self.changes.store(changes, Ordering::Relaxed);
        self.last_insert_rowid.store(last_insert_rowid, Ordering::Relaxed);
    }

    /// Rows changed.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }

    /// The row id of the last `INSERT`, 0 before the first.
    pub(crate) fn last_insert_rowid(&self) -> i64 {
        self.last_insert_rowid.load(Ordering::Relaxed)
    }
}
