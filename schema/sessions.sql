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
