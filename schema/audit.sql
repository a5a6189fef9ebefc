CREATE TABLE audit (
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    actor TEXT NOT NULL,
    account_id TEXT,
    action TEXT NOT NULL,
    subject TEXT NOT NULL
) STRICT;

CREATE TRIGGER audit_pruned AFTER INSERT ON audit
BEGIN
    UPDATE retention SET pruned_at = new.at;
END;
