//! Steps that are the same for each audited table.

/// Adds the column that holds the last change of a row as a JSON object: `at`, `actor`, `action` and,
/// where they apply, `account` and `subject`. A statement that changes a row sets the column, and
/// a trigger copies it to the audit log in the same transaction.
macro_rules! add_last_change {
    ($number:literal, $table:literal) => {
        step(
            $number,
            concat!($table, ": last change"),
            concat!("ALTER TABLE ", $table, " ADD COLUMN last_change TEXT"),
        )
    };
}

/// A trigger that writes the audit entry of an insert or update. The subject is a column of
/// the row unless the change has one. `$then` are further statements of the trigger.
macro_rules! audit_trigger {
    ($number:literal, $table:literal, $suffix:literal, $event:literal, $subject:literal, $($then:literal),*) => {
        step(
            $number,
            concat!("audit: ", $table, " ", $suffix),
            concat!(
                "CREATE TRIGGER ", $table, "_", $suffix, " AFTER ", $event, " ON ", $table,
                " WHEN new.last_change IS NOT NULL BEGIN \
                INSERT INTO audit (at, actor, account_id, action, subject) \
                SELECT json_extract(new.last_change, '$.at'), json_extract(new.last_change, '$.actor'), \
                json_extract(new.last_change, '$.account'), json_extract(new.last_change, '$.action'), \
                coalesce(json_extract(new.last_change, '$.subject'), new.", $subject, ");",
                $(" ", $then, ";",)*
                " END"
            ),
        )
    };
}
