//! What the last requests of a key have shown, so that the next one is not looked up, or costs no write.
//!
//! Invariant: what is remembered decides only which statement comes first, and for an hour that a body is read before its key
//! is looked up. A key that is not valid is not remembered, so requests with made-up keys take no space.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

/// Entries of each kind. A key has about 200 bytes.
const MAX_KEYS: usize = 512;
/// How long a key is looked up before it is claimed after a claim was refused.
const KEY_TIME: Duration = Duration::from_secs(5);
/// How long a body is judged before its key is looked up again.
const VALID_TIME: Duration = Duration::from_hours(1);

/// The keys of the last requests.
#[derive(Debug, Default)]
pub struct RecentKeys {
    refused: Recent,
    valid: Recent,
}

/// Keys that are remembered until an instant, at most [`MAX_KEYS`].
#[derive(Debug, Default)]
struct Recent(HashMap<String, Instant>);

impl Recent {
    /// Has no effect where so many others are remembered that there is no place.
    fn insert(&mut self, key_hash: &str, until: Instant, now: Instant) {
        if self.0.len() >= MAX_KEYS {
            self.0.retain(|_, until| *until > now);
        }
        if self.0.len() < MAX_KEYS || self.0.contains_key(key_hash) {
            self.0.insert(key_hash.to_owned(), until);
        }
    }

    fn has(&self, key_hash: &str, now: Instant) -> bool {
        self.0.get(key_hash).is_some_and(|until| *until > now)
    }
}

impl RecentKeys {
    /// Remembers that a key is valid.
    pub fn set_valid(&mut self, key_hash: &str, now: Instant) {
        self.valid.insert(key_hash, now + VALID_TIME, now);
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
        self.refused.insert(key_hash, now + KEY_TIME, now);
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
