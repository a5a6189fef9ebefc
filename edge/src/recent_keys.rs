//! What the last requests of a key have shown, so that the next one is refused without a write, or not looked up.
//!
//! Invariant: what is remembered decides only for a second, and only for a key that was valid a moment ago. Everything
//! else that is remembered decides only which statement comes first. A key that is not valid is not remembered, so requests
//! with made-up keys take no space.

use std::{
    borrow::Borrow,
    collections::HashMap,
    hash::Hash,
    time::{Duration, Instant},
};

use platen_shared::{
    id::{AccountId, TemplateId},
    refusal::Refusal,
};

use crate::quota::Usage;

/// Entries of each kind. A key has about 200 bytes.
const MAX_KEYS: usize = 512;
/// Maximum time for which requests of a key are refused without a claim.
const MAX_BUSY_TIME: Duration = Duration::from_secs(1);
/// Of a farm that does not say how long its queue is likely to be full.
const DEFAULT_BUSY_TIME: Duration = Duration::from_millis(100);
/// How long a claim proves that a key is valid, and how long a key is looked up before it is claimed after a claim was
/// refused.
const KEY_TIME: Duration = Duration::from_secs(5);
/// How long a body is judged before its key is looked up again.
const VALID_TIME: Duration = Duration::from_hours(1);

/// A key whose job found no slot.
#[derive(Debug, Clone)]
pub struct BusyKey {
    /// The key's account.
    pub account: AccountId,
    /// Its usage after the refund.
    pub usage: Usage,
    /// The month of the usage, `YYYY-MM` (UTC).
    pub month: String,
    /// The farm's refusal.
    pub refusal: Refusal,
}

/// The hash of a key, and the template of the request: a key may be valid for one template only.
type KeyUse = (String, Option<TemplateId>);

/// The keys of the last requests.
#[derive(Debug, Default)]
pub struct RecentKeys {
    busy: Recent<KeyUse, BusyKey>,
    refused: Recent<String, ()>,
    valid: Recent<String, ()>,
}

/// What is remembered until an instant, of at most [`MAX_KEYS`].
#[derive(Debug)]
struct Recent<K, V>(HashMap<K, (Instant, V)>);

impl<K, V> Default for Recent<K, V> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<K: Hash + Eq, V> Recent<K, V> {
    /// Has no effect where so many others are remembered that there is no place.
    fn insert(&mut self, key: K, value: V, until: Instant, now: Instant) {
        if self.0.len() >= MAX_KEYS {
            self.0.retain(|_, (until, _)| *until > now);
        }
        if self.0.len() < MAX_KEYS || self.0.contains_key(&key) {
            self.0.insert(key, (until, value));
        }
    }

    fn has<Q: Hash + Eq + ?Sized>(&self, key: &Q, now: Instant) -> bool
    where
        K: Borrow<Q>,
    {
        self.0.get(key).is_some_and(|(until, _)| *until > now)
    }
}

impl RecentKeys {
    /// Remembers for how long jobs of a key are likely to be refused. `claimed_at` is when the key was valid.
    pub fn set_busy(
        &mut self,
        key_use: KeyUse,
        busy: BusyKey,
        busy_time: Duration,
        claimed_at: Instant,
        now: Instant,
    ) {
        let until = (now + busy_time.min(MAX_BUSY_TIME)).min(claimed_at + KEY_TIME);
        if until > now {
            self.busy.insert(key_use, busy, until, now);
        }
    }

    /// The refusal that a request would probably get.
    #[must_use]
    pub fn busy(&self, key_use: &KeyUse, month: &str, now: Instant) -> Option<&BusyKey> {
        let (until, busy) = self.busy.0.get(key_use)?;
        (*until > now && busy.month == month).then_some(busy)
    }

    /// Remembers that a key is valid.
    pub fn set_valid(&mut self, key_hash: &str, now: Instant) {
        self.valid.insert(key_hash.to_owned(), (), now + VALID_TIME, now);
    }

    /// Forgets a key that is not valid.
    pub fn set_invalid(&mut self, key_hash: &str) {
        self.valid.0.remove(key_hash);
    }

    /// Whether the key was valid within the last hour.
    #[must_use]
    pub fn was_valid(&self, key_hash: &str, now: Instant) -> bool {
        self.valid.has(key_hash, now)
    }

    /// Remembers that a claim of a valid key was refused, or would be: because of the quota or a limit of the account.
    pub fn set_refused(&mut self, key_hash: &str, now: Instant) {
        self.refused.insert(key_hash.to_owned(), (), now + KEY_TIME, now);
    }

    /// Whether a claim of this key was refused a moment ago.
    #[must_use]
    pub fn was_refused(&self, key_hash: &str, now: Instant) -> bool {
        self.refused.has(key_hash, now)
    }

    /// Remembers that a key is valid, and forgets that its claims were refused.
    pub fn set_claimed(&mut self, key_hash: &str, now: Instant) {
        self.set_valid(key_hash, now);
        self.refused.0.remove(key_hash);
    }
}

/// For how long further jobs are likely to be refused as well: `not_before` of the farm's answer, in milliseconds, if
/// the refusal is for lack of a slot.
#[must_use]
pub fn busy_time(refusal: &Refusal, not_before: Option<&[u8]>) -> Option<Duration> {
    if !matches!(refusal, Refusal::QueueFull { .. } | Refusal::NoSlotInTime { .. }) {
        return None;
    }
    let given = not_before.and_then(|value| std::str::from_utf8(value).ok()?.parse().ok());
    let default = matches!(refusal, Refusal::QueueFull { .. }).then_some(DEFAULT_BUSY_TIME);
    given.map(Duration::from_millis).or(default).filter(|time| !time.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MONTH: &str = "2026-11";

    fn busy() -> BusyKey {
        BusyKey {
            account: AccountId::from_text("a"),
            usage: Usage { attempts: 1, quota: None, limits: None },
            month: MONTH.to_owned(),
            refusal: Refusal::QueueFull { retry_after: 7 },
        }
    }

    #[test]
    fn a_key_is_busy_for_a_second_at_most() {
        let now = Instant::now();
        let milliseconds = Duration::from_millis;
        for (busy_time, claimed_before, expected) in [
            (milliseconds(300), milliseconds(10), milliseconds(300)),
            (milliseconds(60_000), milliseconds(10), MAX_BUSY_TIME),
            (milliseconds(300), milliseconds(4_900), milliseconds(100)),
            (milliseconds(300), milliseconds(20_000), Duration::ZERO),
        ] {
            let (claimed_at, now) = (now, now + claimed_before);
            let key_use = ("k".to_owned(), None);
            let mut keys = RecentKeys::default();
            keys.set_busy(key_use.clone(), busy(), busy_time, claimed_at, now);
            let is_busy = |after| keys.busy(&key_use, MONTH, now + after).is_some();
            assert!(!is_busy(expected), "{busy_time:?}, {claimed_before:?}");
            assert!(expected.is_zero() || is_busy(expected.saturating_sub(milliseconds(1))));
        }
    }

    #[test]
    fn only_the_same_use_of_the_same_key_in_the_same_month_is_busy() {
        let now = Instant::now();
        let mut keys = RecentKeys::default();
        let template = Some(TemplateId::from_text("t"));
        keys.set_busy(("k".to_owned(), template.clone()), busy(), MAX_BUSY_TIME, now, now);
        let is_busy =
            |key: &str, template, month| keys.busy(&(key.to_owned(), template), month, now).is_some();
        assert!(is_busy("k", template.clone(), MONTH));
        assert!(!is_busy("k", None, MONTH));
        assert!(!is_busy("l", template.clone(), MONTH));
        assert!(!is_busy("k", template, "2026-12"));
    }

    #[test]
    fn a_refused_key_is_remembered_until_it_is_claimed() {
        let now = Instant::now();
        let mut keys = RecentKeys::default();
        for key in 0..=MAX_KEYS {
            keys.set_refused(&key.to_string(), now);
        }
        let was_refused = |keys: &RecentKeys, key: usize, now| keys.was_refused(&key.to_string(), now);
        assert_eq!([0, MAX_KEYS].map(|key| was_refused(&keys, key, now)), [true, false]);
        let later = now + KEY_TIME;
        assert!(!was_refused(&keys, 0, later));
        keys.set_refused("other", later);
        keys.set_claimed("1", now);
        assert!(keys.was_refused("other", later) && !was_refused(&keys, 1, now));
    }

    #[test]
    fn a_valid_key_is_remembered_for_an_hour() {
        let now = Instant::now();
        let mut keys = RecentKeys::default();
        assert!(!keys.was_valid("k", now));
        keys.set_valid("k", now);
        let last = now + Duration::from_millis(3_599_999);
        assert!(keys.was_valid("k", last) && !keys.was_valid("l", now));
        assert!(!keys.was_valid("k", now + VALID_TIME));
        keys.set_claimed("k", last);
        assert!(keys.was_valid("k", now + VALID_TIME));
        keys.set_invalid("k");
        assert!(!keys.was_valid("k", last));
    }

    #[test]
    fn only_a_lack_of_slots_makes_a_key_busy() {
        let (full, late) = (Refusal::QueueFull { retry_after: 1 }, Refusal::NoSlotInTime { retry_after: 1 });
        for (refusal, header, expected) in [
            (&full, None, Some(100)),
            (&full, Some("250"), Some(250)),
            (&full, Some("x"), Some(100)),
            (&full, Some("0"), None),
            (&late, None, None),
            (&late, Some("250"), Some(250)),
            (&Refusal::NoBrowser, Some("250"), None),
            (&Refusal::Draining, None, None),
            (&Refusal::PageTooLarge, Some("250"), None),
        ] {
            let time = busy_time(refusal, header.map(str::as_bytes));
            assert_eq!(time, expected.map(Duration::from_millis), "{refusal:?} {header:?}");
        }
    }
}
