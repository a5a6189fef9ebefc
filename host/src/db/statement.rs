//! What a statement does, as far as its first word says.

/// What a statement may do, by its first word; [`StatementKind::Other`] may do anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StatementKind {
    Read,
    Write,
    Other,
}

impl StatementKind {
    pub(super) fn of(sql: &str) -> Self {
        match first_word(sql).as_str() {
            "SELECT" | "VALUES" => Self::Read,
            // `WITH` may begin a reading statement as well.
            "INSERT" | "UPDATE" | "DELETE" | "REPLACE" | "WITH" => Self::Write,
            _ => Self::Other,
        }
    }
}

/// The first word in upper case.
pub(super) fn first_word(sql: &str) -> String {
    sql.trim_start().chars().take_while(char::is_ascii_alphabetic).collect::<String>().to_ascii_uppercase()
}

#[cfg(test)]
mod tests {
    use super::{
        StatementKind::{Other, Read, Write},
        *,
    };

    #[test]
    fn the_kind_of_a_statement_follows_from_its_first_word() {
        for (sql, kind) in [
            ("SELECT 1", Read),
            (" \n select 1", Read),
            ("VALUES (1)", Read),
            ("INSERT INTO t VALUES (1)", Write),
            ("with a as (select 1) insert into t select * from a", Write),
            ("UPDATE t SET a = 1", Write),
            ("PRAGMA foreign_keys = OFF", Other),
            ("BEGIN", Other),
            ("-- a comment\nSELECT 1", Other),
            ("", Other),
        ] {
            assert_eq!(StatementKind::of(sql), kind, "{sql:?}");
        }
    }
}
