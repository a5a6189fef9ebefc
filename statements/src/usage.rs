//! What an account has done: the count of the month, the counts of days, and its first steps.

use crate::{
    AccountScope, Backend,
    backend::{record, values},
    scope::Scoped,
};

record! {
    /// Attempts of one day.
    pub struct DayUsage {
        /// `YYYY-MM-DD` (UTC)
        pub day: String,
        /// Counted attempts.
        pub attempts: u64,
        /// Counted attempts with a status of 400 or more.
        pub failures: u64,
    }
}

record! {
    /// Counted attempts of a key, a link or a template.
    pub struct PartUsage {
        /// The id; empty for deleted keys and links and keys of the dashboard, or for attempts without a template.
        pub id: String,
        /// The name; `None` if there is no such key, link or template any more.
        pub name: Option<String>,
        pub attempts: u64,
        /// Counted attempts with a status of 400 or more.
        pub failures: u64,
    }
}

record! {
    /// The first steps of an account.
    pub struct FirstSteps {
        /// It has an API key.
        pub key: bool,
        /// It has a successful attempt.
        pub render: bool,
        /// It has a template.
        pub template: bool,
        /// It has a second user, or an invite that can be used.
        pub invite: bool,
    }
}

const LAST_MONTH: Scoped = Scoped::new(
    "SELECT attempts FROM usage WHERE account_id = ?1 \
     AND month = strftime('%Y-%m', ?2, 'unixepoch', 'start of month', '-1 day')",
);
const DAYS: Scoped = Scoped::new(
    "SELECT day, attempts, failures FROM usage_days WHERE account_id = ?1 AND day >= date(?2, 'unixepoch')",
);

const BY_KEY: Scoped = Scoped::new(
    "SELECT key_id, (SELECT k.name FROM api_keys k WHERE k.id = key_id AND k.account_id = ?1), \
     sum(attempts), sum(failures) FROM usage_parts \
     WHERE account_id = ?1 AND day >= date(?2, 'unixepoch') GROUP BY key_id ORDER BY 3 DESC",
);
const BY_TEMPLATE: Scoped = Scoped::new(
    "SELECT template_id, (SELECT t.name FROM templates t WHERE t.id = template_id AND t.account_id = ?1), \
     sum(attempts), sum(failures) FROM usage_parts \
     WHERE account_id = ?1 AND day >= date(?2, 'unixepoch') GROUP BY template_id ORDER BY 3 DESC LIMIT ?3",
);
const DAYS_OF_KEY: Scoped = Scoped::new(
    "SELECT day, sum(attempts), sum(failures) FROM usage_parts \
     WHERE account_id = ?1 AND key_id = ?2 AND day >= date(?3, 'unixepoch') GROUP BY day",
);

const FIRST_STEPS: Scoped = Scoped::new(
    "SELECT EXISTS (SELECT 1 FROM api_keys WHERE account_id = ?1 AND kind = 'key'), \
     EXISTS (SELECT 1 FROM usage_days WHERE account_id = ?1 AND attempts > failures), \
     EXISTS (SELECT 1 FROM templates WHERE account_id = ?1), \
     EXISTS (SELECT 1 FROM users WHERE account_id = ?1 LIMIT 1 OFFSET 1) \
     OR EXISTS (SELECT 1 FROM invites WHERE account_id = ?1 AND used_at IS NULL AND expires_at > ?2)",
);

impl FirstSteps {
    /// Whether the account can be used as its users want to; it may have one user only.
    #[must_use]
    pub fn are_done(&self) -> bool {
        self.key && self.render && self.template
    }
}

impl<B: Backend> AccountScope<'_, B> {
    /// The attempts of the month before this one (UTC).
    pub async fn attempts_of_last_month(&self) -> Result<u64, B::Error> {
        Ok(self.first(LAST_MONTH, values![self.now()]).await?.map_or(0, |(attempts,)| attempts))
    }

    /// The days with attempts since the day (UTC) of this time, in no order.
    pub async fn days(&self, since: i64) -> Result<Vec<DayUsage>, B::Error> {
        self.all(DAYS, values![since]).await
    }

    /// The attempts of each key and link since the day (UTC) of this time, the most first.
    pub async fn usage_by_key(&self, since: i64) -> Result<Vec<PartUsage>, B::Error> {
        self.all(BY_KEY, values![since]).await
    }

    /// The attempts of those templates that have the most since the day (UTC) of this time, the most first.
    pub async fn usage_by_template(&self, since: i64, max: u32) -> Result<Vec<PartUsage>, B::Error> {
        self.all(BY_TEMPLATE, values![since, max]).await
    }

    /// The days with attempts of a key or link since the day (UTC) of this time, in no order.
    pub async fn days_of_key(&self, id: &str, since: i64) -> Result<Vec<DayUsage>, B::Error> {
        self.all(DAYS_OF_KEY, values![id, since]).await
    }

    /// What it has done already.
    pub async fn first_steps(&self) -> Result<Option<FirstSteps>, B::Error> {
        self.first(FIRST_STEPS, values![self.now()]).await
    }
}
