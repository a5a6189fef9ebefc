-- One row. NULL is no limit. An update of `pruned_at` deletes what is due at that time, in a bounded step.
CREATE TABLE retention (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    versions INTEGER CHECK (versions > 0),
    audit_days INTEGER CHECK (audit_days > 0),
    attempt_days INTEGER NOT NULL CHECK (attempt_days > 0),
    pruned_at INTEGER NOT NULL,
    last_change TEXT
) STRICT;

INSERT INTO retention (id, attempt_days, pruned_at) VALUES (1, 30, 0);

CREATE TRIGGER retention_pruned AFTER UPDATE OF pruned_at ON retention
BEGIN
    DELETE FROM audit WHERE id IN
        (SELECT id FROM (SELECT id, at FROM audit ORDER BY id LIMIT 200)
        WHERE at < new.pruned_at - 86400 * new.audit_days);
    DELETE FROM attempts WHERE id IN
        (SELECT id FROM attempts WHERE at < new.pruned_at - 86400 * new.attempt_days ORDER BY at LIMIT 200);
    DELETE FROM template_versions WHERE template_id = (SELECT template_id FROM version_excess LIMIT 1)
        AND number IN (SELECT number FROM template_versions v
        WHERE v.template_id = (SELECT template_id FROM version_excess LIMIT 1)
        AND v.number <= (SELECT max(number) FROM template_versions
        WHERE template_id = (SELECT template_id FROM version_excess LIMIT 1)) - new.versions
        ORDER BY v.number LIMIT 20);
    DELETE FROM template_files WHERE (account_id, hash) IN
        (SELECT account_id, hash FROM template_file_uses WHERE uses = 0 AND put_at < new.pruned_at - 86400
        ORDER BY put_at LIMIT 4);
    DELETE FROM version_excess WHERE template_id = (SELECT template_id FROM version_excess LIMIT 1)
        AND (SELECT count(*) FROM template_versions v WHERE v.template_id = version_excess.template_id)
        <= coalesce(new.versions, 9223372036854775807);
END;

CREATE TRIGGER retention_changed AFTER UPDATE OF last_change ON retention WHEN new.last_change IS NOT NULL
BEGIN
    INSERT INTO audit (at, actor, account_id, action, subject)
    SELECT new.last_change ->> 'at', new.last_change ->> 'actor', new.last_change ->> 'account',
        new.last_change ->> 'action', coalesce(new.last_change ->> 'subject', new.id);
    DELETE FROM version_excess;
    INSERT INTO version_excess (template_id)
    SELECT template_id FROM template_versions GROUP BY template_id HAVING count(*) > new.versions;
END;

-- Templates with more versions than are kept. Filled when the number is lowered, so that pruning need not look at all
-- templates.
CREATE TABLE version_excess (template_id TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
