//! A bounded map whose entries expire.

use std::{borrow::Borrow, collections::HashMap, hash::Hash, time::Instant};

/// Holds at most a number of entries. A new one replaces the one that expires first.
#[derive(Debug)]
pub struct ExpiringMap<K, V> {
    entries: HashMap<K, (Instant, V)>,
    max_entries: usize,
}

impl<K: Hash + Eq + Clone, V> ExpiringMap<K, V> {
    /// A map of at most this many entries.
    #[must_use]
    pub fn new(max_entries: usize) -> Self {
        Self { entries: HashMap::new(), max_entries }
    }

    /// Sets the value of a key until an instant.
    pub fn insert(&mut self, key: K, value: V, until: Instant, now: Instant) {
        if self.entries.len() >= self.max_entries && !self.entries.contains_key(&key) {
            self.entries.retain(|_, (until, _)| *until > now);
        }
        if self.entries.len() >= self.max_entries && !self.entries.contains_key(&key) {
            let first = self.entries.iter().min_by_key(|(_, (until, _))| *until);
            let first = first.map(|(key, _)| key.clone());
            first.and_then(|key| self.entries.remove(&key));
        }
        self.entries.insert(key, (until, value));
    }

    /// The value of a key, unless it has expired.
    pub fn get<Q: Hash + Eq + ?Sized>(&self, key: &Q, now: Instant) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let (until, value) = self.entries.get(key)?;
        (*until > now).then_some(value)
    }

    /// Removes the value of a key.
    pub fn remove<Q: Hash + Eq + ?Sized>(&mut self, key: &Q)
    where
        K: Borrow<Q>,
    {
        self.entries.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_value_expires() {
        let (now, second) = (Instant::now(), Duration::from_secs(1));
        let mut map = ExpiringMap::new(2);
        map.insert("a", 1, now + second, now);
        assert_eq!(map.get("a", now), Some(&1));
        assert_eq!(map.get("a", now + second), None);
        map.insert("a", 2, now + 3 * second, now + second);
        assert_eq!(map.get("a", now + 2 * second), Some(&2));
        map.remove("a");
        assert_eq!(map.get("a", now), None);
    }

    #[test]
    fn a_full_map_drops_the_entry_that_expires_first() {
        let now = Instant::now();
        let at = |seconds| now + Duration::from_secs(seconds);
        let mut map = ExpiringMap::new(3);
        for (key, until) in [("a", 5), ("b", 3), ("c", 9), ("c", 4)] {
            map.insert(key, until, at(until), now);
        }
        map.insert("d", 7, at(7), now);
        assert_eq!(["a", "b", "c", "d"].map(|key| map.get(key, now).is_some()), [true, false, true, true]);
        // Expired entries first.
        map.insert("e", 6, at(6), at(6));
        assert_eq!(["a", "c", "d", "e"].map(|key| map.entries.contains_key(key)), [false, false, true, true]);
    }
}
