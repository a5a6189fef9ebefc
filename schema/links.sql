-- Attempts of links by day (UTC), with those that have not ended. Of a link they are deleted with its first attempt two days later.
CREATE TABLE link_days (
    link_id TEXT NOT NULL REFERENCES api_keys (id) ON DELETE CASCADE,
    day TEXT NOT NULL,
    attempts INTEGER NOT NULL CHECK (attempts >= 0),
    PRIMARY KEY (link_id, day)
) STRICT, WITHOUT ROWID;

-- In the transaction of the claim, so that the conditions of the next claim find it.
CREATE TRIGGER usage_claimed_by_link AFTER UPDATE OF link_id, link_day ON usage
BEGIN
    INSERT INTO link_days (link_id, day, attempts) VALUES (new.link_id, new.link_day, 1)
    ON CONFLICT (link_id, day) DO UPDATE SET attempts = attempts + 1;
    DELETE FROM link_days WHERE link_id = new.link_id AND day < date(new.link_day, '-1 day');
END;

-- The first claim of a month.
CREATE TRIGGER usage_began_by_link AFTER INSERT ON usage WHEN new.link_id IS NOT NULL
BEGIN
    UPDATE usage SET link_id = new.link_id, link_day = new.link_day
    WHERE account_id = new.account_id AND month = new.month;
END;

-- The day is that of the claim, which has the time of the row.
CREATE TRIGGER attempts_refunded_to_link AFTER INSERT ON attempts WHEN new.refunded_month IS NOT NULL
BEGIN
    UPDATE link_days SET attempts = attempts - 1
    WHERE link_id = new.key_id AND day = date(new.at, 'unixepoch') AND attempts > 0;
END;

CREATE TRIGGER template_links_deleted AFTER DELETE ON templates
BEGIN
    DELETE FROM api_keys WHERE account_id = old.account_id AND kind = 'link' AND template_id = old.id;
END;
