//! The keys that were valid within the last hour, for which components need not ask the database before they read a body.
//! What a component remembers itself ends with its instance, after some seconds or requests.
//!
//! Invariant: a key is remembered only if a component has answered that it is valid, so requests with made-up keys take no
//! space. It decides only whether a key is looked up earlier.

use std::{
    collections::HashMap,
    hash::{BuildHasher as _, RandomState},
    time::Duration,
};

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use parking_lot::Mutex;
use platen_shared::wire;
use tokio::time::Instant;

const VALID_TIME: Duration = Duration::from_hours(1);
/// Some hundred kilobytes.
const MAX_KEYS: usize = 10_000;
const VALID_KEY: HeaderName = HeaderName::from_static(wire::VALID_KEY);
/// Every response to a valid key has it, and no other response.
const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");

/// When each key was valid. Keys are hashed.
#[derive(Default)]
pub(super) struct ValidKeys {
    hasher: RandomState,
    seen: Mutex<HashMap<KeyHash, Instant>>,
}

type KeyHash = u64;

impl ValidKeys {
    /// Tells the component whether the key of a request was valid. Returns the key's hash, if there is a key.
    pub(super) fn mark(&self, headers: &mut HeaderMap) -> Option<KeyHash> {
        headers.remove(VALID_KEY);
        let key = self.hasher.hash_one(headers.get(header::AUTHORIZATION)?);
        if self.seen.lock().get(&key).is_some_and(|at| at.elapsed() < VALID_TIME) {
            headers.insert(VALID_KEY, HeaderValue::from_static("1"));
        }
        Some(key)
    }

    /// Remembers what the response to a key says.
    pub(super) fn learn(&self, key: KeyHash, status: StatusCode, headers: &HeaderMap) {
        let mut seen = self.seen.lock();
        if status == StatusCode::UNAUTHORIZED {
            seen.remove(&key);
        } else if headers.contains_key(RATE_LIMIT) {
            if seen.len() >= MAX_KEYS {
                seen.retain(|_, at| at.elapsed() < VALID_TIME);
            }
            if seen.len() < MAX_KEYS || seen.contains_key(&key) {
                seen.insert(key, Instant::now());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    fn headers(name: HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, value.parse().unwrap())])
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_is_known_for_an_hour_after_it_was_valid() {
        let keys = ValidKeys::default();
        let marked = |key: &str| {
            let mut headers = headers(header::AUTHORIZATION, key);
            // That of a client.
            headers.insert(VALID_KEY, HeaderValue::from_static("1"));
            let hash = keys.mark(&mut headers);
            (hash.unwrap(), headers.contains_key(VALID_KEY))
        };
        let valid = headers(RATE_LIMIT, "\"monthly\";r=1;t=1");
        let (key, is_known) = marked("Bearer a");
        assert!(!is_known);
        keys.learn(key, StatusCode::METHOD_NOT_ALLOWED, &HeaderMap::new());
        assert!(!marked("Bearer a").1);
        keys.learn(key, StatusCode::TOO_MANY_REQUESTS, &valid);
        assert!(marked("Bearer a").1 && !marked("Bearer b").1);
        advance(Duration::from_millis(3_599_999)).await;
        assert!(marked("Bearer a").1);
        advance(Duration::from_millis(1)).await;
        assert!(!marked("Bearer a").1);
        keys.learn(key, StatusCode::OK, &valid);
        assert!(marked("Bearer a").1);
        keys.learn(key, StatusCode::UNAUTHORIZED, &HeaderMap::new());
        assert!(!marked("Bearer a").1);
        let mut none = headers(VALID_KEY, "1");
        assert!(keys.mark(&mut none).is_none() && none.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn the_number_of_keys_is_limited() {
        let keys = ValidKeys::default();
        let valid = headers(RATE_LIMIT, "x");
        for key in 0..=MAX_KEYS as u64 {
            keys.learn(key, StatusCode::OK, &valid);
        }
        assert_eq!(keys.seen.lock().len(), MAX_KEYS);
        advance(VALID_TIME).await;
        keys.learn(u64::MAX, StatusCode::OK, &valid);
        assert_eq!(keys.seen.lock().len(), 1);
    }
}
