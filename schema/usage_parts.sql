-- Usage by key and template, of the last 30 days.
CREATE TABLE usage_parts (
    account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    day TEXT NOT NULL,
    -- Empty for a deleted key or one of the dashboard's own.
    key_id TEXT NOT NULL,
    -- Empty for no template.
    template_id TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    PRIMARY KEY (account_id, day, key_id, template_id)
) STRICT, WITHOUT ROWID;
