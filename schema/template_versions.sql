-- What a save of a template has replaced.
CREATE TABLE template_versions (
    template_id TEXT NOT NULL,
    number INTEGER NOT NULL,
    account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    packed_html BLOB NOT NULL,
    placeholders TEXT NOT NULL,
    saved_at INTEGER NOT NULL,
    saved_by TEXT,
    PRIMARY KEY (template_id, number)
) STRICT;

CREATE TRIGGER template_versions_pruned AFTER INSERT ON template_versions
WHEN (SELECT versions FROM retention) IS NOT NULL
BEGIN
    DELETE FROM template_versions WHERE template_id = new.template_id AND number IN
        (SELECT number FROM template_versions v
        WHERE v.template_id = new.template_id AND v.number <= new.number - (SELECT versions FROM retention)
        ORDER BY v.number LIMIT 20);
END;
