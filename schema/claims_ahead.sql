-- Claims of several attempts, which an edge uses for some seconds without asking. All of them count from the claim on, and
-- what was not used is given back once.
CREATE TABLE claims_ahead (
    -- 63 random bits.
    id INTEGER PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    month TEXT NOT NULL,
    -- Attempts that were counted. 0 where the id was given back before its claim, which then has no effect.
    granted INTEGER NOT NULL,
    -- Attempts of them that were given back; NULL until then.
    returned INTEGER,
    -- By when the edge has stopped using them and given back the others, by the database's clock.
    ends_at INTEGER NOT NULL
) STRICT;

CREATE INDEX claims_ahead_by_account ON claims_ahead (account_id, ends_at);
CREATE INDEX claims_ahead_by_time ON claims_ahead (ends_at);

-- In the transaction of the claim. Rows are of no use an hour after their time: those that were not given back stay counted.
CREATE TRIGGER usage_claimed_ahead AFTER UPDATE OF claim_ahead ON usage
BEGIN
    INSERT INTO claims_ahead (id, account_id, month, granted, ends_at)
    VALUES (new.claim_ahead ->> 'id', new.account_id, new.month, new.claim_ahead ->> 'granted', new.claim_ahead ->> 'ends_at');
    DELETE FROM claims_ahead WHERE id IN
        (SELECT id FROM claims_ahead WHERE ends_at < unixepoch() - 3600 ORDER BY ends_at LIMIT 100);
END;

-- The first claim of a month.
CREATE TRIGGER usage_began_ahead AFTER INSERT ON usage WHEN new.claim_ahead IS NOT NULL
BEGIN
    UPDATE usage SET claim_ahead = new.claim_ahead WHERE account_id = new.account_id AND month = new.month;
END;

CREATE TRIGGER claims_ahead_returned AFTER UPDATE OF returned ON claims_ahead
BEGIN
    UPDATE usage SET attempts = max(attempts - new.returned, 0)
    WHERE account_id = new.account_id AND month = new.month;
END;
