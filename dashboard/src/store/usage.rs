//! An account's attempts: this month's count, per day, and one by one.

use platen_component::database::{Row, Value, number_or_null};

use super::{StoreError, account::Account};
use crate::{
    chart::{Chart, Day},
    clock::{self, DAY, Timestamp},
    pages::usage::{Attempt, Cursor, MonthlyUsage},
    scoped::Scoped,
};

const MONTH: Scoped = Scoped::new(
    "SELECT quota, coalesce((SELECT attempts FROM usage WHERE account_id = ?1 AND month = ?2), 0) \
     FROM accounts WHERE id = ?1",
);
const DAYS: Scoped =
    Scoped::new("SELECT day, attempts, failures FROM usage_days WHERE account_id = ?1 AND day >= ?2");
const ATTEMPTS: Scoped = Scoped::new(
    "SELECT id, at, key_name, endpoint, format, status, counted, ms, bytes FROM attempts \
     WHERE account_id = ?1 AND at >= ?2 AND (at, id) < (?3, ?4) ORDER BY at DESC, id DESC LIMIT ?5",
);
// A text of its own, so that the index of failures is used.
const FAILURES: Scoped = Scoped::new(
    "SELECT id, at, key_name, endpoint, format, status, counted, ms, bytes FROM attempts \
     WHERE account_id = ?1 AND status >= 400 AND at >= ?2 AND (at, id) < (?3, ?4) \
     ORDER BY at DESC, id DESC LIMIT ?5",
);

/// Days that are kept and shown.
const DAYS_SHOWN: i64 = 30;

impl Account<'_> {
    /// Where the account stands this month.
    pub(crate) async fn month(&self) -> Result<MonthlyUsage, StoreError> {
        let now = Timestamp(self.now());
        let row = self.one_row(MONTH, [now.month().into()]).await?;
        let (quota, attempts) = match row {
            Some(row) => (row.optional_number(0)?, row.number(1)?),
            None => (Some(0), 0),
        };
        Ok(MonthlyUsage { now, quota, attempts })
    }

    /// The last days as bars.
    pub(crate) async fn days(&self) -> Result<Chart, StoreError> {
        let days = clock::last_days(self.now(), DAYS_SHOWN);
        let rows = self.rows(DAYS, [days[0].as_str().into()]).await?;
        let mut known = std::collections::HashMap::new();
        for row in rows {
            known.insert(row.text(0)?, (row.number(1)?, row.number(2)?));
        }
        let days = days.into_iter().map(|day| {
            let (attempts, failures) = known.get(&day).copied().unwrap_or_default();
            Day { date: day, attempts, failures }
        });
        Ok(Chart::new(days.collect()))
    }

    /// The attempts before a place in the list, the newest first.
    pub(crate) async fn attempts(
        &self,
        failures: bool,
        before: Option<Cursor>,
        most: u32,
    ) -> Result<Vec<Attempt>, StoreError> {
        let sql = if failures { FAILURES } else { ATTEMPTS };
        let before = before.unwrap_or(Cursor { at: i64::MAX, id: i64::MAX });
        let since = self.now() - DAYS_SHOWN * DAY;
        let values: [Value; 4] =
            [since.into(), before.at.into(), number_or_null(Some(before.id)), most.into()];
        self.rows(sql, values).await?.iter().map(read).collect()
    }
}

fn read(row: &Row) -> Result<Attempt, StoreError> {
    Ok(Attempt {
        id: row.number(0)?,
        at: Timestamp(row.number(1)?),
        key_name: row.optional_text(2)?,
        endpoint: row.text(3)?,
        format: row.text(4)?,
        status: row.number(5)?,
        counted: row.number(6)?,
        duration_ms: row.number(7)?,
        size_bytes: row.optional_number(8)?,
    })
}
