-- Contents of the files of templates: each once for an account, by its hash (SHA-256 in lower-case hex), however many templates
-- and versions use it.
CREATE TABLE template_files (
    account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    hash TEXT NOT NULL,
    put_at INTEGER NOT NULL,
    content BLOB NOT NULL,
    PRIMARY KEY (account_id, hash)
) STRICT;

-- How many templates and versions use a content. A table of its own, because a change of a row can write all of it.
--
-- A content that none uses, and that was put at least a day ago, is deleted by `retention_pruned`: what was uploaded a
-- moment ago is about to be saved. A save fails if one of its contents is gone.
CREATE TABLE template_file_uses (
    account_id TEXT NOT NULL,
    hash TEXT NOT NULL,
    uses INTEGER NOT NULL DEFAULT 0 CHECK (uses >= 0),
    put_at INTEGER NOT NULL,
    PRIMARY KEY (account_id, hash),
    FOREIGN KEY (account_id, hash) REFERENCES template_files (account_id, hash) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE INDEX template_files_unused ON template_file_uses (put_at) WHERE uses = 0;

CREATE TRIGGER template_files_put AFTER INSERT ON template_files
BEGIN
    INSERT INTO template_file_uses (account_id, hash, put_at) VALUES (new.account_id, new.hash, new.put_at);
END;

CREATE TRIGGER template_files_put_again AFTER UPDATE OF put_at ON template_files
BEGIN
    UPDATE template_file_uses SET put_at = new.put_at WHERE account_id = new.account_id AND hash = new.hash;
END;

-- Before the change, because triggers after it run in no certain order, and one of them, through the audit log, deletes
-- contents without a use.
CREATE TRIGGER template_files_created BEFORE INSERT ON templates WHEN new.files <> '{}'
BEGIN
    UPDATE template_file_uses SET uses = uses + 1
    WHERE account_id = new.account_id AND hash IN (SELECT value ->> 'hash' FROM json_each(new.files));
END;

-- Under the condition of `template_versions_kept`: the version takes over the use of the old files.
CREATE TRIGGER template_files_saved BEFORE UPDATE OF name, packed_html, language, options, files ON templates
WHEN new.files <> '{}' AND (old.packed_html IS NOT new.packed_html OR old.name IS NOT new.name
    OR old.options IS NOT new.options OR old.language IS NOT new.language OR old.files IS NOT new.files)
BEGIN
    UPDATE template_file_uses SET uses = uses + 1
    WHERE account_id = new.account_id AND hash IN (SELECT value ->> 'hash' FROM json_each(new.files));
END;

CREATE TRIGGER template_files_deleted AFTER DELETE ON templates WHEN old.files <> '{}'
BEGIN
    UPDATE template_file_uses SET uses = uses - 1
    WHERE account_id = old.account_id AND hash IN (SELECT value ->> 'hash' FROM json_each(old.files));
END;

CREATE TRIGGER version_files_deleted AFTER DELETE ON template_versions WHEN old.files <> '{}'
BEGIN
    UPDATE template_file_uses SET uses = uses - 1
    WHERE account_id = old.account_id AND hash IN (SELECT value ->> 'hash' FROM json_each(old.files));
END;
