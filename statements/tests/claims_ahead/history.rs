//! A history of one account: the database, the model, and what edges know.

use std::collections::HashMap;

use platen_shared::{
    id::AccountId,
    key::{ApiKey, RANDOM_BYTES},
};
use platen_statements::{
    Backend as _, Value,
    attempts::{self, Attempt, KeyOrLink, PresentedKey},
    claims_ahead::{self, CLOSING, Terms, left_after_closing, left_after_taking},
    limits::RunningAttempt,
};

use crate::{Step, database::Database};

const MONTH: &str = "2026-11";

/// What an edge knows of a claim.
#[derive(Debug, Clone, Copy)]
struct Sent {
    id: i64,
    attempts: u64,
    min_attempts: u64,
    /// The claim that the edge gives back for this one; 0 is none.
    replaced: i64,
    /// What the database said at the first run; `None` until then, or if it refused.
    granted: Option<u64>,
    /// The counter of the store; `None` without a response.
    counter: Option<i64>,
    /// What it gives back; `None` until it is closed.
    rest: Option<u64>,
    is_killed: bool,
}

/// A row of `claims_ahead` in the model.
#[derive(Debug, Clone, Copy)]
struct Kept {
    granted: u64,
    returned: Option<u64>,
}

/// The account: the database, the model, and the edges.
pub(crate) struct History<'d> {
    database: &'d Database,
    key: ApiKey,
    account: String,
    quota: Option<u64>,
    is_enabled: bool,
    /// Attempts that count.
    attempts: u64,
    kept: HashMap<i64, Kept>,
    sent: Vec<Sent>,
    /// Attempts that were used and not refunded.
    files: u64,
    next_id: i64,
}

impl<'d> History<'d> {
    pub(crate) async fn begin(database: &'d Database, number: i64, quota: Option<u64>) -> Self {
        let mut random = [0; RANDOM_BYTES];
        random[..8].copy_from_slice(&number.to_le_bytes());
        let key = ApiKey::from_random(random);
        let account = format!("acc_{number}");
        let mut history = Self {
            database,
            account: account.clone(),
            quota,
            is_enabled: true,
            attempts: 0,
            kept: HashMap::new(),
            sent: Vec::new(),
            files: 0,
            next_id: number << 16,
            key,
        };
        history
            .run("INSERT INTO accounts (id, name, created_at) VALUES (?1, ?1, 0)", account.clone().into())
            .await;
        let insert = "INSERT INTO api_keys (id, account_id, name, prefix, hash, created_at) VALUES (?1, ?1, 'k', 'p', ?2, 0)";
        let hash = history.key.hash();
        history.database.0.execute(insert, (account, hash)).await.unwrap();
        history.set_quota(quota).await;
        history
    }

    async fn run(&self, sql: &str, value: Value) {
        self.database.execute(sql, &[value]).await.unwrap();
    }

    async fn set_quota(&mut self, quota: Option<u64>) {
        self.quota = quota;
        let quota = quota.map_or(libsql::Value::Null, |quota| quota.cast_signed().into());
        let set = "UPDATE accounts SET quota = ?2 WHERE id = ?1";
        self.database.0.execute(set, (self.account.clone(), quota)).await.unwrap();
    }

    fn id(&mut self) -> i64 {
        self.next_id += 1;
        self.next_id
    }

    fn presented(&self) -> PresentedKey<'_> {
        PresentedKey { caller: KeyOrLink::Key(&self.key), month: MONTH, now: 1 }
    }

    /// The attempts that one statement may count, which replaces a claim.
    fn allowed(&self, attempts: u64, replaced: i64) -> Option<u64> {
        let left = self.quota.map(|quota| quota.saturating_sub(self.attempts));
        let others = self.kept.iter().filter(|(id, kept)| **id != replaced && kept.returned.is_none());
        let held: u64 = others.map(|(_, kept)| kept.granted).filter(|granted| *granted > 1).sum();
        let granted = left.map_or(attempts, |left| attempts.min((left / 100).saturating_sub(held))).max(1);
        (self.is_enabled && left.is_none_or(|left| left >= granted)).then_some(granted)
    }

    pub(crate) async fn step(&mut self, step: &Step) {
        let index = |index: &usize, sent: &[Sent]| (*index < sent.len()).then(|| sent.len() - 1 - index);
        match step {
            Step::Claim => self.claim().await,
            Step::Send(attempts, min_attempts, replaced) => {
                let replaced = index(replaced, &self.sent).map_or(0, |index| self.sent[index].id);
                let (id, attempts, min_attempts) = (self.id(), *attempts, *min_attempts);
                let (granted, counter, rest, is_killed) = (None, None, None, false);
                let sent = Sent { id, attempts, min_attempts, replaced, granted, counter, rest, is_killed };
                self.sent.push(sent);
            }
            Step::Run(claim) => {
                if let Some(index) = index(claim, &self.sent) {
                    self.run_claim(index).await;
                }
            }
            Step::Respond(claim) => {
                if let Some(index) = index(claim, &self.sent) {
                    let sent = &mut self.sent[index];
                    if let (Some(granted), None, None, false) =
                        (sent.granted, sent.counter, sent.rest, sent.is_killed)
                    {
                        sent.counter = Some(granted.cast_signed() - 1);
                        self.files += 1;
                    }
                }
            }
            Step::Take(claim) => {
                if let Some(index) = index(claim, &self.sent)
                    && let Some(counter) = &mut self.sent[index].counter
                {
                    *counter -= 1;
                    self.files += u64::from(left_after_taking(*counter).is_some());
                }
            }
            Step::Refund if self.files > 0 => self.refund().await,
            Step::Refund => {}
            Step::Close(claim) => {
                if let Some(index) = index(claim, &self.sent) {
                    self.close(index);
                }
            }
            Step::GiveBack(claim) => {
                if let Some(index) = index(claim, &self.sent) {
                    self.give_back(index).await;
                }
            }
            Step::Kill(claim) => {
                if let Some(index) = index(claim, &self.sent) {
                    let sent = &mut self.sent[index];
                    (sent.counter, sent.rest, sent.is_killed) = (None, None, true);
                }
            }
            Step::Enable(is_enabled) => {
                self.is_enabled = *is_enabled;
                let value = if *is_enabled { "NULL" } else { "1" };
                self.run(
                    &format!("UPDATE api_keys SET disabled_at = {value} WHERE id = ?1"),
                    self.account.as_str().into(),
                )
                .await;
            }
            Step::Quota(quota) => self.set_quota(*quota).await,
        }
    }

    async fn claim(&mut self) {
        let running = RunningAttempt { id: self.id(), max_seconds: 60 };
        let claim = attempts::claim(self.database.clone(), self.presented(), running, None).await.unwrap();
        let is_allowed = self.allowed(1, 0).is_some();
        assert_eq!(claim.is_some(), is_allowed, "a claim");
        if let Some(claim) = claim {
            self.attempts += 1;
            self.files += 1;
            assert_eq!((claim.attempts, claim.quota), (self.attempts, self.quota));
        }
    }

    async fn run_claim(&mut self, index: usize) {
        let Sent { id, attempts, min_attempts, replaced, .. } = self.sent[index];
        let running = RunningAttempt { id: self.id(), max_seconds: 60 };
        // Longer than a history takes.
        let terms = Terms { id, attempts, min_attempts, seconds: 600, replaced };
        let grant =
            claims_ahead::claim(self.database.clone(), self.presented(), running, None, terms).await.unwrap();
        let allowed = self.allowed(attempts, replaced);
        let expected = allowed.filter(|granted| *granted >= min_attempts && !self.kept.contains_key(&id));
        assert_eq!(grant.as_ref().map(|grant| grant.attempts), expected, "claim {id} of {attempts}");
        let Some(grant) = grant else { return };
        self.attempts += grant.attempts;
        let claim = grant.claim(grant.attempts - 1).unwrap();
        assert_eq!(claim.attempts, self.attempts - grant.attempts + 1);
        self.kept.insert(id, Kept { granted: grant.attempts, returned: None });
        self.sent[index].granted = Some(grant.attempts);
    }

    async fn refund(&mut self) {
        let id = self.id();
        let attempt = Attempt {
            id,
            key_hash: self.key.hash(),
            account_id: AccountId::from_text(self.account.as_str()),
            endpoint: "render",
            format: "png",
            status: 503,
            counted: false,
            rejected: false,
            ms: 1,
            queued_ms: None,
            render_ms: None,
            bytes: None,
            page_errors: None,
            failed_requests: None,
            page_host: None,
            at: 1,
            refunded_month: Some(MONTH.to_owned()),
            code: None,
            field: None,
            request_id: String::new(),
            template_id: None,
            template_version: None,
            host: None,
        };
        for _ in 0..2 {
            attempts::log(self.database, std::slice::from_ref(&attempt)).await.unwrap();
        }
        self.files -= 1;
        self.attempts -= 1;
    }

    fn close(&mut self, index: usize) {
        let sent = &mut self.sent[index];
        if sent.is_killed {
            return;
        }
        if let Some(counter) = &mut sent.counter {
            *counter -= CLOSING;
            // Each of several tasks that close it.
            if let Some(rest) = left_after_closing(*counter) {
                assert_eq!(sent.rest.replace(rest), None, "closed twice");
            }
        } else {
            // Whether the claim was made is not known.
            sent.rest.get_or_insert(u64::MAX);
        }
    }

    async fn give_back(&mut self, index: usize) {
        let Sent { id, rest: Some(rest), .. } = self.sent[index] else { return };
        claims_ahead::give_back(self.database, &self.key.hash(), MONTH, id, rest).await.unwrap();
        match self.kept.get_mut(&id) {
            None => _ = self.kept.insert(id, Kept { granted: 0, returned: Some(0) }),
            Some(Kept { granted, returned: returned @ None }) => {
                let back = rest.min(*granted);
                *returned = Some(back);
                self.attempts -= back;
            }
            Some(_) => {}
        }
    }

    pub(crate) async fn check(&self) {
        let sql = "SELECT 1 FROM usage WHERE account_id = ?1 AND attempts = ?2 UNION ALL \
            SELECT 1 WHERE ?2 = 0 AND NOT EXISTS (SELECT 1 FROM usage WHERE account_id = ?1)";
        let values = [self.account.as_str().into(), self.attempts.into()];
        assert_eq!(
            self.database.execute(sql, &values).await.unwrap().len(),
            1,
            "not {} attempts",
            self.attempts
        );
        assert!(self.files <= self.attempts, "{} files of {} attempts", self.files, self.attempts);
    }

    /// All edges that live stop, and messages that are on the way arrive.
    pub(crate) async fn end(&mut self) {
        for index in 0..self.sent.len() {
            self.close(index);
            self.give_back(index).await;
            self.run_claim(index).await;
        }
        self.check().await;
        // Claims of killed edges: what they may have used is not known, so everything stays counted.
        let is_lost = |sent: &&Sent| sent.is_killed && self.kept[&sent.id].returned.is_none();
        let lost = self.sent.iter().filter(|sent| self.kept.contains_key(&sent.id)).filter(is_lost);
        let lost: u64 = lost.map(|sent| self.kept[&sent.id].granted).sum();
        assert!(
            self.attempts <= self.files + lost,
            "{} attempts, {} files, {lost} lost",
            self.attempts,
            self.files
        );
        self.run("DELETE FROM accounts WHERE id = ?1", self.account.as_str().into()).await;
    }
}
