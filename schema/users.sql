CREATE TABLE users (
    id TEXT PRIMARY KEY,
    email TEXT NOT NULL UNIQUE,
    -- NULL for an operator who works in no account.
    account_id TEXT REFERENCES accounts (id) ON DELETE SET NULL,
    is_owner INTEGER NOT NULL DEFAULT 1,
    operator INTEGER NOT NULL,
    -- The account that an operator works in; NULL is the operator's own, if there is one.
    visited_account_id TEXT REFERENCES accounts (id) ON DELETE SET NULL,
    password TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    disabled_at INTEGER,
    -- `invite` is the hash of the invite that the change uses. `ends_sessions` ends the user's sessions, except for the
    -- one with the id `kept_session`.
    last_change TEXT
) STRICT;

CREATE INDEX users_by_account ON users (account_id);

CREATE TRIGGER users_created AFTER INSERT ON users WHEN new.last_change IS NOT NULL
BEGIN
    INSERT INTO audit (at, actor, account_id, action, subject)
    SELECT new.last_change ->> 'at', new.last_change ->> 'actor', new.last_change ->> 'account',
        new.last_change ->> 'action', coalesce(new.last_change ->> 'subject', new.email);
    UPDATE invites SET used_at = new.last_change ->> 'at' WHERE hash = new.last_change ->> 'invite';
END;

CREATE TRIGGER users_changed AFTER UPDATE OF last_change ON users WHEN new.last_change IS NOT NULL
BEGIN
    INSERT INTO audit (at, actor, account_id, action, subject)
    SELECT new.last_change ->> 'at', new.last_change ->> 'actor', new.last_change ->> 'account',
        new.last_change ->> 'action', coalesce(new.last_change ->> 'subject', new.email);
    UPDATE invites SET used_at = new.last_change ->> 'at' WHERE hash = new.last_change ->> 'invite';
    DELETE FROM sessions
    WHERE user_id = new.id AND new.last_change ->> 'ends_sessions' AND id IS NOT new.last_change ->> 'kept_session';
    DELETE FROM users WHERE id = new.id AND new.last_change ->> 'deletes';
END;

CREATE TRIGGER users_deleted AFTER DELETE ON users
BEGIN
    DELETE FROM sessions WHERE user_id = old.id;
    DELETE FROM invites WHERE email = old.email AND used_at IS NULL;
END;

CREATE TABLE sessions (
    -- Of the cookie's token. Pages show the id.
    hash TEXT PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    created_at INTEGER NOT NULL,
    seen_at INTEGER NOT NULL,
    address TEXT NOT NULL,
    agent TEXT NOT NULL
) STRICT;

CREATE INDEX sessions_by_user ON sessions (user_id);

CREATE TABLE sign_in_tries (
    -- The hash of an e-mail address or of a network address.
    subject TEXT PRIMARY KEY,
    began_at INTEGER NOT NULL,
    tries INTEGER NOT NULL
) STRICT;
