CREATE TABLE sign_in_tries (
    -- The hash of an e-mail address or of a network address.
    subject TEXT PRIMARY KEY,
    began_at INTEGER NOT NULL,
    tries INTEGER NOT NULL
) STRICT;
