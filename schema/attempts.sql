-- Requests to render, each written when it has ended.
CREATE TABLE attempts (
    id INTEGER PRIMARY KEY,
    -- 63 random bits.
    attempt_id INTEGER NOT NULL,
    account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    -- A key or a link.
    key_id TEXT,
    key_name TEXT,
    request_id TEXT NOT NULL,
    endpoint TEXT NOT NULL,
    template_id TEXT,
    -- The number of the template's content in `template_versions`, where it is when a save has replaced it; NULL if no attempt
    -- was recorded.
    template_version INTEGER,
    -- Of the URL that was rendered, without its path and query.
    host TEXT,
    format TEXT NOT NULL,
    status INTEGER NOT NULL,
    -- Reason of a failure, and the field of the request that is its cause.
    code TEXT,
    field TEXT,
    -- 0 for a refunded attempt.
    counted INTEGER NOT NULL,
    -- The month from which an attempt that was recorded is taken back; NULL otherwise.
    refunded_month TEXT,
    -- 1 for a request that was refused before an attempt was recorded, because of the request itself or its quota.
    rejected INTEGER NOT NULL DEFAULT 0,
    ms INTEGER NOT NULL,
    -- Milliseconds for which the job waited for a slot of the farm, and then had it; NULL if no farm has said so.
    queued_ms INTEGER,
    render_ms INTEGER,
    -- NULL if no file was sent.
    bytes INTEGER,
    -- Of the page of a file: its errors, its failed requests, and the host of its address at the end; NULL without a file.
    page_errors INTEGER,
    failed_requests INTEGER,
    page_host TEXT,
    at INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX attempts_by_time ON attempts (at, attempt_id);
CREATE INDEX attempts_by_account ON attempts (account_id, at);
CREATE INDEX attempts_failed ON attempts (account_id, at) WHERE status >= 400;
CREATE INDEX attempts_rejected ON attempts (account_id, at) WHERE rejected = 1;
-- Without successful ones: most attempts, which would fill it.
CREATE INDEX attempts_by_status ON attempts (account_id, status, at) WHERE status >= 400;
CREATE INDEX attempts_by_key ON attempts (account_id, key_id, at);
CREATE INDEX attempts_by_template ON attempts (account_id, template_id, at) WHERE template_id IS NOT NULL;
CREATE INDEX attempts_by_request_id ON attempts (account_id, request_id);

-- An edge inserts a row for each request that has ended or was refused, and these triggers do the rest, so that an attempt,
-- its refund and what follows are one statement. A row that exists is not inserted again, so a repetition has no effect.
-- A row of a rejected request is ignored if the account has 30 of them in the same minute, because these requests cost no
-- quota that would limit their number. Otherwise an INSERT
--
-- * deletes the attempt from `running_attempts`;
-- * sets the last use of the key or link;
-- * deletes up to 100 attempts that are older than `retention` says;
-- * if it is a refund, takes the attempt back from `usage`, and from the day of its link;
-- * if it counts, adds the attempt to `usage_days` and `usage_parts`, and deletes the account's parts of days before the last
--   30;
-- * if it is of a rejected request, deletes up to 100 of these rows beyond the account's newest 5,000;
-- * if versions of templates, files of templates or entries of the audit log are due, and at most once a second, sets `pruned_at` of
--   `retention`, whose trigger deletes a bounded number of them.
CREATE TRIGGER attempts_rejected_limited BEFORE INSERT ON attempts
WHEN new.rejected = 1 AND (SELECT count(*) FROM attempts WHERE account_id = new.account_id AND rejected = 1
    AND at >= new.at - new.at % 60 AND at < new.at - new.at % 60 + 60) >= 30
BEGIN
    SELECT RAISE(IGNORE);
END;

CREATE TRIGGER attempts_rejected_kept AFTER INSERT ON attempts WHEN new.rejected = 1
BEGIN
    DELETE FROM attempts WHERE id IN
        (SELECT id FROM attempts WHERE account_id = new.account_id AND rejected = 1
        ORDER BY at DESC LIMIT 100 OFFSET 5000);
END;

CREATE TRIGGER attempts_ended AFTER INSERT ON attempts
BEGIN
    DELETE FROM running_attempts WHERE account_id = new.account_id AND attempt_id = new.attempt_id;
    UPDATE api_keys SET last_used_at = new.at WHERE id = new.key_id;
    DELETE FROM attempts WHERE id IN
        (SELECT id FROM attempts WHERE at < new.at - 86400 * (SELECT attempt_days FROM retention)
        ORDER BY at LIMIT 100);
END;

CREATE TRIGGER attempts_refunded AFTER INSERT ON attempts WHEN new.refunded_month IS NOT NULL
BEGIN
    UPDATE usage SET attempts = attempts - 1
    WHERE account_id = new.account_id AND month = new.refunded_month AND attempts > 0;
END;

CREATE TRIGGER attempts_counted AFTER INSERT ON attempts WHEN new.counted
BEGIN
    INSERT INTO usage_days (account_id, day, attempts, failures)
    VALUES (new.account_id, date(new.at, 'unixepoch'), 1, new.status >= 400)
    ON CONFLICT (account_id, day) DO UPDATE SET attempts = attempts + 1, failures = failures + excluded.failures;
    INSERT INTO usage_parts (account_id, day, key_id, template_id, attempts, failures)
    VALUES (new.account_id, date(new.at, 'unixepoch'),
        coalesce((SELECT id FROM api_keys WHERE id = new.key_id AND kind <> 'temporary'), ''),
        coalesce(new.template_id, ''), 1, new.status >= 400)
    ON CONFLICT (account_id, day, key_id, template_id)
        DO UPDATE SET attempts = attempts + 1, failures = failures + excluded.failures;
    DELETE FROM usage_parts WHERE account_id = new.account_id AND day < date(new.at - 2592000, 'unixepoch');
END;

CREATE TRIGGER attempts_prune_others AFTER INSERT ON attempts
WHEN new.at > (SELECT pruned_at FROM retention) AND (EXISTS (SELECT 1 FROM version_excess)
    OR EXISTS (SELECT 1 FROM template_file_uses WHERE uses = 0 AND put_at < new.at - 86400)
    OR (SELECT at FROM audit ORDER BY id LIMIT 1) < new.at - 86400 * (SELECT audit_days FROM retention))
BEGIN
    UPDATE retention SET pruned_at = new.at;
END;

-- Of accounts with a limit of attempts at once. A row is deleted when its attempt ends. One whose edge was killed counts
-- until `ends_at`, and is deleted by the account's next claim.
CREATE TABLE running_attempts (
    account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    attempt_id INTEGER NOT NULL,
    ends_at INTEGER NOT NULL,
    PRIMARY KEY (account_id, attempt_id)
) STRICT, WITHOUT ROWID;
