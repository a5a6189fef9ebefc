//! Attempts that are claimed ahead: how a request takes one, and what is kept of a claim in the platform's key-value store until it
//! is given back.
//!
//! Invariant: an attempt is taken by one subtraction from the counter of its claim, within the claim's time and month. What is left
//! is given back after the counter was closed, by the one task that closed it. Time is that of the system's clock, which goes on
//! while the machine is suspended.

use std::time::{Duration, Instant};

use platen_shared::{id::TemplateId, limits::MAX_CLAIM_AHEAD_SECONDS, request::RenderRequest, wire};
use platen_spin::{
    database::{Database, DatabaseError},
    key_value::KeyValueStore,
    platform::{self, now_ms},
};
use platen_statements::{
    Backend as _, Outcome,
    attempts::{self, Claim, PresentedKey, RequestedTemplate},
    claims_ahead::{self, CLOSING, Grant, Terms, is_closed, left_after_closing, left_after_taking},
    limits::RunningAttempt,
};
use spin_sdk::{time::sleep, wit_bindgen};

use super::log;
use crate::renewal::next_claim;

/// A longer id is that of no template.
const MAX_ID_CHARS: usize = 64;
/// How often it is looked whether a claim was given back, or the server stops.
const HOLD_INTERVAL: Duration = Duration::from_secs(1);
/// The time after which a statement without a result is sent again.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(30);
const RETRY_INTERVAL: Duration = Duration::from_millis(500);
/// How long it is tried to give attempts back while the database is away.
const MAX_RETURN_TIME: Duration = Duration::from_mins(5);

/// What the store has for one key and one template, or none.
pub(super) struct Ahead {
    store: KeyValueStore,
    seconds: u64,
    key_hash: String,
    month: String,
    /// The name of the record.
    name: String,
    found: Option<Grant>,
}

/// A claim of several attempts that the database has recorded.
pub(super) struct Granted {
    ahead: Ahead,
    grant: Grant,
}

/// A claim that the database has recorded, with the further attempts of a claim of several.
pub(super) struct Recorded {
    pub(super) claim: Claim,
    pub(super) granted: Option<Granted>,
}

impl Recorded {
    pub(super) fn several(granted: Granted) -> Result<Self, DatabaseError> {
        Ok(Self { claim: granted.own()?, granted: Some(granted) })
    }
}

/// How a request claims that found no attempt to take.
pub(super) enum Want {
    /// One attempt: another request claims ahead.
    One,
    /// One attempt, whose claim is the first of the key for some time.
    First,
    Several(u64),
}

/// A setting that is not a number of seconds.
#[derive(Debug, thiserror::Error)]
#[error(
    "the Spin variable claim_ahead must be a whole number of seconds from 0 to {MAX_CLAIM_AHEAD_SECONDS}"
)]
pub(super) struct InvalidClaimAhead;

/// The setting, in seconds.
pub(super) fn seconds(variable: &str) -> Result<u64, InvalidClaimAhead> {
    let seconds = variable.parse().ok().filter(|seconds| *seconds <= MAX_CLAIM_AHEAD_SECONDS);
    seconds.ok_or(InvalidClaimAhead)
}

fn counter(id: i64) -> String {
    format!("left:{id}")
}

fn renewals(id: i64) -> String {
    format!("renewals:{id}")
}

impl Ahead {
    /// `None` where nothing is claimed ahead, which costs nothing.
    pub(super) fn find(
        seconds: u64,
        key_hash: &str,
        template: Option<&TemplateId>,
        month: &str,
    ) -> Option<Self> {
        let template = template.map_or("", TemplateId::as_str);
        if seconds == 0 || template.len() > MAX_ID_CHARS {
            return None;
        }
        let store = KeyValueStore::open()?;
        let name = format!("claim:{key_hash}:{template}");
        let found = store.get(&name).and_then(|bytes| Grant::from_bytes(&bytes));
        Some(Self { store, seconds, key_hash: key_hash.to_owned(), month: month.to_owned(), name, found })
    }

    /// Takes an attempt; the claim, and the number of attempts that the next claim is for, if it is due and this request's.
    pub(super) fn take(
        &self,
        request: &RenderRequest,
        template: Option<&RequestedTemplate<'_>>,
    ) -> Option<(Claim, Option<u64>)> {
        let grant = self.valid().filter(|grant| grant.attempts > 1)?;
        let claim = grant.claim(0).ok()?;
        if let (Some(saved), Some(template)) = (&claim.template, template) {
            request.check_values(saved.language, grant.needed_placeholders(saved, template)).ok()?;
        }
        let left = left_after_taking(self.store.add(&counter(grant.id), -1)?)?;
        let next = next_claim(grant, left, now_ms()).filter(|_| self.is_first_to_renew(grant));
        Some((Claim { attempts: claim.attempts.saturating_sub(left), ..claim }, next))
    }

    fn valid(&self) -> Option<&Grant> {
        self.found.as_ref().filter(|grant| grant.is_valid(&self.month, now_ms()))
    }

    fn is_first_to_renew(&self, grant: &Grant) -> bool {
        self.store.add(&renewals(grant.id), 1) == Some(1)
    }

    /// How to claim, if no attempt was taken.
    pub(super) fn want(&self) -> Want {
        match self.valid() {
            None => Want::First,
            Some(grant) if self.is_first_to_renew(grant) => {
                next_claim(grant, 0, now_ms()).map_or(Want::One, Want::Several)
            }
            Some(_) => Want::One,
        }
    }

    /// Remembers a claim of one attempt, after which the next claim of the key is for more.
    pub(super) fn remember_first(&self) {
        let id = attempts::attempt_id(platform::random());
        let first = Grant::of_one(id, &self.month).lasting(now_ms(), self.seconds);
        _ = self.store.set(&self.name, &first.to_bytes());
    }

    /// Claims a number of attempts, and at least another number. If it is not known whether they were recorded, all are given back.
    pub(super) fn claim(
        self,
        key: PresentedKey<'_>,
        attempt: RunningAttempt,
        template: Option<RequestedTemplate<'_>>,
        (attempts, min_attempts): (u64, u64),
    ) -> impl Future<Output = Result<Option<Granted>, DatabaseError>> + use<> {
        let id = attempts::attempt_id(platform::random());
        let replaced = self.found.as_ref().map_or(0, |found| found.id);
        let terms = Terms { id, attempts, min_attempts, seconds: self.seconds, replaced };
        let claim = claims_ahead::claim(Database, key, attempt, template, terms);
        async move {
            let sent = now_ms();
            let grant = claim.await.and_then(|grant| {
                // A template that is damaged is found now.
                _ = grant.as_ref().map(|grant| grant.claim(0)).transpose()?;
                Ok(grant.map(|grant| grant.lasting(sent, self.seconds)))
            });
            match grant {
                Ok(grant) => Ok(grant.map(|grant| Granted { ahead: self, grant })),
                Err(error) => {
                    if matches!(Database::outcome(&error), Outcome::Unknown | Outcome::Failed) {
                        wit_bindgen::spawn(async move { self.give_back(id, &self.month, u64::MAX).await });
                    }
                    Err(error)
                }
            }
        }
    }

    /// Closes the counter of the claim that was found, if it is of another time, and gives back what is left.
    pub(super) async fn end_found(&self) {
        if let Some(grant) = &self.found {
            self.end(grant).await;
        }
    }

    async fn end(&self, grant: &Grant) {
        if grant.attempts > 1 {
            let counter = counter(grant.id);
            let Some(left) = self.store.add(&counter, -CLOSING).and_then(left_after_closing) else { return };
            self.give_back(grant.id, &grant.month, left).await;
            self.store.delete(&counter);
        }
        self.store.delete(&renewals(grant.id));
    }

    async fn give_back(&self, id: i64, month: &str, attempts: u64) {
        let began = Instant::now();
        loop {
            let give_back = claims_ahead::give_back(&Database, &self.key_hash, month, id, attempts);
            let cause = match platform::timeout(STATEMENT_TIMEOUT, give_back).await {
                Some(Ok(())) => return,
                Some(Err(DatabaseError::Unavailable(..))) | None if began.elapsed() < MAX_RETURN_TIME => {
                    sleep(RETRY_INTERVAL).await;
                    continue;
                }
                Some(Err(error)) => error.to_string(),
                None => "the database did not answer".to_owned(),
            };
            return log::attempts_not_given_back(&cause);
        }
    }
}

impl Granted {
    /// The claim of the request for which it was made.
    pub(super) fn own(&self) -> Result<Claim, DatabaseError> {
        Ok(self.grant.claim(self.grant.attempts - 1)?)
    }

    /// Keeps the attempts without the request's own in the store; what is to be done after the response.
    pub(super) fn keep_others(self) -> impl Future<Output = ()> {
        let others = self.grant.attempts - 1;
        self.keep(others)
    }

    /// Keeps all attempts in the store.
    pub(super) async fn keep_all(self) {
        let all = self.grant.attempts;
        self.keep(all).await;
    }

    /// Gives the attempts back without the request's own.
    pub(super) async fn give_back_others(self) {
        self.ahead.give_back(self.grant.id, &self.grant.month, self.grant.attempts - 1).await;
    }

    /// Begins at once, and ends when the attempts were given back.
    fn keep(self, attempts: u64) -> impl Future<Output = ()> {
        let Self { ahead, grant } = self;
        let has_counter = ahead.store.add(&counter(grant.id), i64::try_from(attempts).unwrap_or(0)).is_some();
        let is_kept = has_counter && ahead.store.set(&ahead.name, &grant.to_bytes()).is_some();
        async move {
            ahead.end_found().await;
            if !has_counter {
                return ahead.give_back(grant.id, &grant.month, attempts).await;
            }
            // Not by the system's clock, which may be set back.
            let time = Duration::from_millis(grant.until_ms.saturating_sub(now_ms()));
            let until = Instant::now() + time.min(Duration::from_secs(ahead.seconds));
            while is_kept && Instant::now() < until {
                sleep(until.saturating_duration_since(Instant::now()).min(HOLD_INTERVAL)).await;
                if ahead.store.add(&counter(grant.id), 0).is_some_and(is_closed) {
                    return;
                }
                if ahead.store.get(wire::DRAINING).is_some() {
                    break;
                }
            }
            ahead.end(&grant).await;
            let kept = ahead.store.get(&ahead.name).and_then(|bytes| Grant::from_bytes(&bytes));
            if kept.is_some_and(|kept| kept.id == grant.id) {
                ahead.store.delete(&ahead.name);
            }
        }
    }
}
