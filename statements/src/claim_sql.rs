//! The SQL of a claim: of one attempt, of one of a link, or of several; with a template or without one.
//!
//! SQLite evaluates the upsert's `WHERE` and those of the `SELECT` under the write lock, so concurrent attempts never exceed the
//! quota and the limits.

/// One account's count of one month goes up, if its quota allows it. `?1` to `?5` are the key, the month, now, for keys that
/// expire, and the attempt and its duration, for accounts with limits; those from `?6` on belong to the template, and those
/// from `?11` on to a claim of several attempts.
macro_rules! claim_sql {
    ($template:ident, $attempts:ident) => {
        concat!(
            "INSERT INTO usage (account_id, month, attempts, attempt_id, ends_at",
            $crate::claim_sql::ahead!($attempts, ", claim_ahead"),
            $crate::claim_sql::of_link!($attempts, ", link_id, link_day"),
            ") SELECT a.id, ?2, ",
            $crate::claim_sql::granted!($attempts),
            ", iif(",
            $crate::limits::has_no_limits!(),
            ", NULL, ?4), iif(a.concurrency IS NULL, NULL, unixepoch() + ?5)",
            $crate::claim_sql::ahead!(
                $attempts,
                ", json_object('id', ?12, 'ends_at', unixepoch() + ?13 + ",
                $crate::claim_sql::return_seconds!(),
                ", 'granted', ",
                $crate::claim_sql::granted!(ahead),
                ")"
            ),
            $crate::claim_sql::of_link!($attempts, ", k.id, ", $crate::claim_sql::link_day!()),
            " FROM api_keys k JOIN accounts a ON a.id = k.account_id ",
            $crate::claim_sql::of_template!($template, "JOIN templates t ON t.account_id = a.id AND t.id = ?6 "),
            "WHERE k.hash = ?1 AND k.disabled_at IS NULL AND a.disabled_at IS NULL \
             AND (k.expires_at IS NULL OR k.expires_at > ?3) \
             AND (a.quota IS NULL OR a.quota > 0) ",
            $crate::limits::limits_allow_claim!(),
            $crate::claim_sql::of_link!($attempts, "AND ", $crate::claim_sql::link_day_allows_claim!(), " "),
            "AND (k.template_id IS NULL",
            $crate::claim_sql::of_template!(
                $template,
                " OR k.template_id = ?6) AND (t.language = 'jinja' OR NOT ?10) AND NOT EXISTS (SELECT 1",
                $crate::claim_sql::needed_placeholders!("?7", "?8"),
                " AND p.value NOT IN (SELECT value FROM json_each(?9))"
            ),
            ")",
            $crate::claim_sql::ahead!(
                $attempts,
                " AND NOT EXISTS (SELECT 1 FROM claims_ahead WHERE id = ?12) AND ",
                $crate::claim_sql::granted!(ahead),
                " >= ?14"
            ),
            " ON CONFLICT (account_id, month) DO UPDATE SET attempts = attempts + excluded.attempts, \
             attempt_id = excluded.attempt_id, ends_at = excluded.ends_at",
            $crate::claim_sql::ahead!($attempts, ", claim_ahead = excluded.claim_ahead"),
            $crate::claim_sql::of_link!(
                $attempts,
                ", link_id = excluded.link_id, link_day = excluded.link_day"
            ),
            " WHERE attempts + excluded.attempts \
             <= coalesce((SELECT quota FROM accounts WHERE id = account_id), 9223372036854775807) \
             RETURNING account_id, attempts, (SELECT quota FROM accounts WHERE id = account_id), \
             iif(attempt_id IS NULL, NULL, (SELECT ",
            $crate::limits::limit_usage!(),
            " FROM accounts a WHERE a.id = account_id))",
            $crate::claim_sql::of_template!(
                $template,
                ", (SELECT 1 + coalesce(max(number), 0) FROM template_versions WHERE template_id = ?6), \
                 (SELECT name FROM templates WHERE id = ?6), (SELECT language FROM templates WHERE id = ?6), \
                 (SELECT options FROM templates WHERE id = ?6), (SELECT files FROM templates WHERE id = ?6), \
                 (SELECT packed_html FROM templates WHERE id = ?6)"
            ),
            $crate::claim_sql::ahead!($attempts, ", claim_ahead ->> 'granted'"),
            $crate::claim_sql::ahead!(
                $attempts,
                $crate::claim_sql::of_template!($template, ", (SELECT placeholders FROM templates WHERE id = ?6)")
            )
        )
    };
}
pub(crate) use claim_sql;

/// A part of a claim of several attempts.
macro_rules! ahead {
    (ahead, $($part:tt)*) => {
        concat!($($part)*)
    };
    ($other:ident, $($part:tt)*) => {
        ""
    };
}
pub(crate) use ahead;

/// A part of a claim of one attempt of a link.
macro_rules! of_link {
    (of_link, $($part:tt)*) => {
        concat!($($part)*)
    };
    ($other:ident, $($part:tt)*) => {
        ""
    };
}
pub(crate) use of_link;

/// The day (UTC) of a claim at the time `?3`, which a refund finds again in the time of its row.
macro_rules! link_day {
    () => {
        "date(?3, 'unixepoch')"
    };
}
pub(crate) use link_day;

/// Whether the limit of the day of the link `k` allows an attempt. A key has none.
macro_rules! link_day_allows_claim {
    () => {
        concat!(
            "(k.daily_limit IS NULL OR k.daily_limit > coalesce((SELECT d.attempts FROM link_days d \
             WHERE d.link_id = k.id AND d.day = ",
            $crate::claim_sql::link_day!(),
            "), 0))"
        )
    };
}
pub(crate) use link_day_allows_claim;

/// A part of a claim with a template.
macro_rules! of_template {
    (none, $($part:tt)*) => {
        ""
    };
    (template, $($part:tt)*) => {
        concat!($($part)*)
    };
}
pub(crate) use of_template;

/// How many attempts a claim counts: `?11`, but at most a hundredth of what the quota leaves, without what the account's other
/// claims hold, and one for accounts with other limits and for keys of one render. `?15` is a claim that this one replaces.
macro_rules! granted {
    (one) => {
        "1"
    };
    (of_link) => {
        "1"
    };
    (ahead) => {
        concat!(
            "iif(k.kind = 'temporary' OR NOT (",
            $crate::limits::has_no_limits!(),
            "), 1, iif(a.quota IS NULL, ?11, max(1, min(?11, (a.quota - coalesce((SELECT u.attempts FROM usage u \
             WHERE u.account_id = a.id AND u.month = ?2), 0)) / 100 - (SELECT coalesce(sum(c.granted), 0) \
             FROM claims_ahead c WHERE c.account_id = a.id AND c.month = ?2 AND c.ends_at > unixepoch() \
             AND c.granted > 1 AND c.returned IS NULL AND c.id <> ?15)))))"
        )
    };
}
pub(crate) use granted;

/// The time for attempts to be given back after the edge has stopped using them, in seconds.
macro_rules! return_seconds {
    () => {
        "5"
    };
}
pub(crate) use return_seconds;

/// The placeholders of a template `t` that need a value: those of its markup, and those of header and footer that the
/// request does not replace, if the file is a PDF. The arguments are the parameters of
/// [`RequestedTemplate`](crate::attempts::RequestedTemplate).
macro_rules! needed_placeholders {
    ($replaced:literal, $format:literal) => {
        concat!(
            " FROM json_each(t.placeholders) f, json_each(f.value) p WHERE (f.key = 'html' OR coalesce(",
            $format,
            ", t.options ->> 'format') = 'pdf' AND f.key NOT IN (SELECT value FROM json_each(",
            $replaced,
            ")))"
        )
    };
}
pub(crate) use needed_placeholders;
