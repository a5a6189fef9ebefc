//! The limit of rows of requests that are refused before an attempt is recorded. Such a request costs no quota, so a client
//! can repeat it without end.
//!
//! Invariant: an instance adds at most [`MAX_REJECTED_ROWS`] rows for an account and minute. A trigger of the schema applies
//! the same limit to the rows of all instances.

use std::collections::HashMap;

use platen_shared::{id::AccountId, limits::MAX_REJECTED_ROWS};

/// The rows of the current minute.
#[derive(Debug, Default)]
pub struct RejectedRows {
    /// Minutes since 1970.
    minute: u64,
    rows: HashMap<AccountId, u32>,
}

impl RejectedRows {
    /// Counts a row of an account at a time in whole seconds since 1970; `false` if it is over the limit.
    pub fn accept(&mut self, account: &AccountId, at: u64) -> bool {
        if self.minute != at / 60 {
            self.minute = at / 60;
            self.rows.clear();
        }
        let rows = self.rows.entry(account.clone()).or_default();
        *rows += 1;
        *rows <= MAX_REJECTED_ROWS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_account_has_a_limit_for_each_minute() {
        let mut rows = RejectedRows::default();
        let [one, other] = ["one", "other"].map(AccountId::from_text);
        let accepted =
            |rows: &mut RejectedRows, account, at| (0..100).filter(|_| rows.accept(account, at)).count();
        assert_eq!(accepted(&mut rows, &one, 120), 30);
        assert_eq!(accepted(&mut rows, &one, 179), 0);
        assert_eq!(accepted(&mut rows, &other, 179), 30);
        assert_eq!(accepted(&mut rows, &one, 180), 30);
    }
}
