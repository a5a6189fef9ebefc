//! What a new account has done already, from the rows that it has.

use crate::{
    AccountScope, Backend,
    backend::{record, values},
    scoped::Scoped,
};

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

const FIRST_STEPS: Scoped = Scoped::new(
    "SELECT EXISTS (SELECT 1 FROM api_keys WHERE account_id = ?1 AND NOT is_temporary), \
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
    /// What it has done already.
    pub async fn first_steps(&self) -> Result<Option<FirstSteps>, B::Error> {
        self.first(FIRST_STEPS, values![self.now()]).await
    }
}
