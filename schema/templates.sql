CREATE TABLE templates (
    id TEXT PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    -- The output of `template::pack`.
    packed_html BLOB NOT NULL,
    language TEXT NOT NULL DEFAULT 'placeholders' CHECK (language IN ('placeholders', 'jinja')),
    -- A JSON object of render options.
    options TEXT NOT NULL,
    -- A JSON object of arrays: the names in the markup (`html`), and in each option that has some. The claim refuses a
    -- missing variable before it records the attempt. A template in Jinja has none.
    placeholders TEXT NOT NULL,
    -- A JSON array: the names that values may have, of placeholders or of a template in Jinja.
    names TEXT NOT NULL DEFAULT '[]',
    -- A JSON object: of texts by placeholder, of any values for a template in Jinja.
    samples TEXT NOT NULL DEFAULT '{}',
    -- A JSON object by path of objects with `hash`, `size` and, if it is given, `mimeType`.
    files TEXT NOT NULL DEFAULT '{}',
    -- A save of another revision than the stored one is a conflict of two editors.
    revision INTEGER NOT NULL DEFAULT 1,
    -- An e-mail address or `command line`.
    saved_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    last_change TEXT
) STRICT;

CREATE INDEX templates_by_account ON templates (account_id);

-- A trigger, so that no version is lost under concurrent saves by several programs.
CREATE TRIGGER template_versions_kept AFTER UPDATE OF name, packed_html, language, options, files ON templates
WHEN old.packed_html IS NOT new.packed_html OR old.name IS NOT new.name OR old.options IS NOT new.options
    OR old.language IS NOT new.language OR old.files IS NOT new.files
BEGIN
    INSERT INTO template_versions
        (template_id, number, account_id, name, packed_html, language, options, placeholders, files, saved_at, saved_by)
    SELECT old.id, 1 + coalesce((SELECT max(number) FROM template_versions WHERE template_id = old.id), 0),
        old.account_id, old.name, old.packed_html, old.language, old.options, old.placeholders, old.files, old.updated_at,
        old.saved_by;
END;

CREATE TRIGGER template_versions_deleted AFTER DELETE ON templates
BEGIN
    DELETE FROM template_versions WHERE template_id = old.id;
END;

CREATE TRIGGER templates_created AFTER INSERT ON templates WHEN new.last_change IS NOT NULL
BEGIN
    INSERT INTO audit (at, actor, account_id, action, subject)
    SELECT new.last_change ->> 'at', new.last_change ->> 'actor', new.last_change ->> 'account',
        new.last_change ->> 'action', coalesce(new.last_change ->> 'subject', new.name);
END;

CREATE TRIGGER templates_changed AFTER UPDATE OF last_change ON templates WHEN new.last_change IS NOT NULL
BEGIN
    INSERT INTO audit (at, actor, account_id, action, subject)
    SELECT new.last_change ->> 'at', new.last_change ->> 'actor', new.last_change ->> 'account',
        new.last_change ->> 'action', coalesce(new.last_change ->> 'subject', new.name);
    DELETE FROM templates WHERE id = new.id AND new.last_change ->> 'deletes';
END;

-- What a save of a template has replaced. The newest version of a template is always kept, so that no number is used twice.
CREATE TABLE template_versions (
    template_id TEXT NOT NULL,
    number INTEGER NOT NULL,
    account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    packed_html BLOB NOT NULL,
    language TEXT NOT NULL DEFAULT 'placeholders',
    options TEXT NOT NULL,
    placeholders TEXT NOT NULL,
    files TEXT NOT NULL DEFAULT '{}',
    saved_at INTEGER NOT NULL,
    saved_by TEXT NOT NULL,
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
