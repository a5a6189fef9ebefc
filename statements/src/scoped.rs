//! Statements about what an account owns.
//!
//! Invariant: the text of a [`Scoped`] statement contains `account_id = ?1`, or inserts `account_id`
//! as its first column from `?1`. In a constant, a statement without it is a compile error.
//! [`AccountScope`](crate::AccountScope) binds its account as `?1`.

/// A statement of an account.
#[derive(Debug, Clone, Copy)]
pub struct Scoped(&'static str);

impl Scoped {
    /// Takes a statement.
    ///
    /// # Panics
    /// When the statement is not bound to an account; in a constant this is a compile error.
    #[must_use]
    pub const fn new(sql: &'static str) -> Self {
        let reads = contains(sql, "account_id = ?1");
        let inserts = contains(sql, "INSERT INTO")
            && contains(sql, "(account_id, ")
            && (contains(sql, "VALUES (?1, ") || contains(sql, "SELECT ?1, "));
        assert!(reads || inserts, "a statement of an account must be bound to it by account_id = ?1");
        Self(sql)
    }

    /// The statement's text.
    #[must_use]
    pub const fn sql(self) -> &'static str {
        self.0
    }
}

const fn contains(text: &str, part: &str) -> bool {
    let (text, part) = (text.as_bytes(), part.as_bytes());
    let mut start = 0;
    while start + part.len() <= text.len() {
        let mut length = 0;
        while length < part.len() && text[start + length] == part[length] {
            length += 1;
        }
        // `?10` does not count as `?1`.
        let after = start + length;
        if length == part.len() && (after == text.len() || !text[after].is_ascii_digit()) {
            return true;
        }
        start += 1;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_statements_bound_to_an_account_are_accepted() {
        for good in [
            "SELECT 1 FROM t WHERE account_id = ?1",
            "DELETE FROM t WHERE id = ?2 AND account_id = ?1 RETURNING id",
            "INSERT INTO t (account_id, id) VALUES (?1, ?2)",
            "INSERT INTO t (account_id, id) SELECT ?1, ?2",
        ] {
            assert_eq!(Scoped::new(good).sql(), good);
        }
        for bad in [
            "SELECT 1 FROM t WHERE id = ?1",
            "SELECT 1 FROM t WHERE account_id = ?10",
            "INSERT INTO t (id, account_id) VALUES (?1, ?2)",
            "",
        ] {
            assert!(std::panic::catch_unwind(|| Scoped::new(bad)).is_err(), "{bad}");
        }
    }
}
