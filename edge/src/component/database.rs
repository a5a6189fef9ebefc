//! The statements of the edge, with the edge's types.
//!
//! Invariant: a render takes one statement, [`Database::claim`]. Only when it returns no row does
//! [`Database::key_status`] find the reason. [`Database::log`] is for after the response.

use platen_component::database::{self, DatabaseError};
use platen_shared::{id::AccountId, key::ApiKey, template};
use platen_statements::attempts::{self, Attempt, ClaimedTemplate, KeyPurpose, MonthUsage, PresentedKey};

use crate::{
    quota::{QuotaMonth, Usage},
    request::{RenderRequest, Subject},
};

/// A recorded attempt.
pub(super) struct Claim {
    pub(super) account: AccountId,
    pub(super) usage: Usage,
    pub(super) template: Option<Template>,
    month: String,
}

/// The template that a claim fetched.
pub(super) struct Template {
    pub(super) name: String,
    packed: Vec<u8>,
}

impl Template {
    pub(super) fn html(&self) -> Result<String, template::Damaged> {
        template::unpack(&self.packed)
    }
}

/// A valid key's account, with the placeholders of the requested template if the account has it.
pub(super) struct KeyStatus {
    pub(super) account: AccountId,
    pub(super) usage: Usage,
    pub(super) placeholders: Option<Vec<String>>,
}

/// A connection for one request.
pub(super) struct Database(database::Database);

impl Database {
    pub(super) async fn open() -> Result<Self, DatabaseError> {
        Ok(Self(database::Database::open().await?))
    }

    /// Records an attempt; `None` if the key, the template, its variables or the quota forbids it.
    pub(super) async fn claim(
        &self,
        key: &ApiKey,
        month: &QuotaMonth,
        request: &RenderRequest,
    ) -> Result<Option<Claim>, DatabaseError> {
        let key = presented(key, month);
        let claimed = match &request.subject {
            Subject::Source(_) => attempts::claim(&self.0, key).await?.map(|claim| (claim, None)),
            Subject::Template { id, variables } => {
                let names: Vec<&str> = variables.keys().map(String::as_str).collect();
                let claimed = attempts::claim_template(&self.0, key, id, &names).await?;
                claimed.map(|(claim, template)| (claim, Some(template)))
            }
        };
        Ok(claimed.map(|(claim, template)| Claim {
            account: claim.account,
            usage: claim.usage.into(),
            template: template
                .map(|ClaimedTemplate { name, packed_html }| Template { name, packed: packed_html }),
            month: month.name.clone(),
        }))
    }

    /// The account and usage of a key; `None` if the key is not valid for this purpose.
    pub(super) async fn key_status(
        &self,
        key: &ApiKey,
        month: &QuotaMonth,
        purpose: KeyPurpose<'_>,
    ) -> Result<Option<KeyStatus>, DatabaseError> {
        let status = attempts::key_status(&self.0, presented(key, month), purpose).await?;
        Ok(status.map(|status| KeyStatus {
            account: status.account,
            usage: status.usage.into(),
            placeholders: status.placeholders,
        }))
    }

    /// Takes a recorded attempt back, because no page ran for it.
    pub(super) async fn refund(&self, claim: &Claim) -> Result<(), DatabaseError> {
        attempts::refund(&self.0, &claim.account, &claim.month).await
    }

    /// Writes a finished attempt to the log.
    pub(super) async fn log(&self, attempt: &Attempt) -> Result<(), DatabaseError> {
        attempts::log(&self.0, attempt).await
    }
}

fn presented<'k>(key: &'k ApiKey, month: &'k QuotaMonth) -> PresentedKey<'k> {
    PresentedKey { key, month: &month.name, now: month.now }
}

impl From<MonthUsage> for Usage {
    fn from(MonthUsage { attempts, quota }: MonthUsage) -> Self {
        Self { attempts, quota }
    }
}
