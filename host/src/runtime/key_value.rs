//! `wasi:keyvalue` for components: a store in memory.
//!
//! Invariant: names and values together have at most [`MAX_BYTES`]. A value that was not changed for [`MAX_AGE`] may be gone.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use wasmtime::component::Resource;

use super::{
    bindings::wasi::keyvalue::{
        atomics,
        store::{self, Error, HostBucket},
    },
    state::State,
};

const MAX_BYTES: usize = 32 * 1024 * 1024;
/// Longer than a component uses a value: the largest `--claim-ahead`, and a request.
const MAX_AGE: Duration = Duration::from_mins(2);
/// What an entry takes beside its name and its value, about.
const ENTRY_BYTES: usize = 128;
/// The name of the store, as on Spin.
const DEFAULT_STORE: &str = "default";

/// A store; a cheap handle.
#[derive(Debug, Clone, Default)]
#[expect(unreachable_pub, reason = "the generated bindings re-export it")]
pub struct KeyValueStore(Arc<Mutex<Entries>>);

#[derive(Debug, Default)]
struct Entries {
    values: HashMap<String, (Arc<[u8]>, Instant)>,
    bytes: usize,
}

fn size(name: &str, value: &[u8]) -> usize {
    name.len() + value.len() + ENTRY_BYTES
}

impl Entries {
    /// `false` if there is no space.
    fn set(&mut self, name: String, value: Arc<[u8]>, now: Instant) -> bool {
        self.delete(&name);
        let added = size(&name, &value);
        if self.bytes + added > MAX_BYTES {
            self.values.retain(|_, (_, at)| now.saturating_duration_since(*at) < MAX_AGE);
            self.bytes = self.values.iter().map(|(name, (value, _))| size(name, value)).sum();
        }
        let has_space = self.bytes + added <= MAX_BYTES;
        if has_space {
            self.bytes += added;
            self.values.insert(name, (value, now));
        }
        has_space
    }

    fn delete(&mut self, name: &str) {
        if let Some((value, _)) = self.values.remove(name) {
            self.bytes -= size(name, &value);
        }
    }

    /// `None` if there is no space, or the value is no counter.
    fn increment(&mut self, name: String, delta: i64, now: Instant) -> Option<i64> {
        let counter = match self.values.get(&name) {
            Some((value, _)) => i64::from_le_bytes((**value).try_into().ok()?),
            None => 0,
        };
        let counter = counter.checked_add(delta)?;
        self.set(name, counter.to_le_bytes().into(), now).then_some(counter)
    }
}

impl KeyValueStore {
    /// Sets a value; without effect if the store is full.
    pub(crate) fn set(&self, name: &str, value: &[u8]) -> bool {
        self.0.lock().set(name.to_owned(), value.into(), Instant::now())
    }

    fn get(&self, name: &str) -> Option<Vec<u8>> {
        let value = self.0.lock().values.get(name).map(|(value, _)| Arc::clone(value));
        value.map(|value| value.to_vec())
    }
}

fn full() -> Error {
    Error::Other("the store is full".to_owned())
}

impl store::Host for State {
    fn open(&mut self, identifier: String) -> wasmtime::Result<Result<Resource<KeyValueStore>, Error>> {
        let Some(store) = self.grants.store.clone().filter(|_| identifier == DEFAULT_STORE) else {
            return Ok(Err(Error::AccessDenied));
        };
        Ok(Ok(self.table.push(store)?))
    }
}

impl HostBucket for State {
    fn get(
        &mut self,
        bucket: Resource<KeyValueStore>,
        key: String,
    ) -> wasmtime::Result<Result<Option<Vec<u8>>, Error>> {
        Ok(Ok(self.table.get(&bucket)?.get(&key)))
    }

    fn set(
        &mut self,
        bucket: Resource<KeyValueStore>,
        key: String,
        value: Vec<u8>,
    ) -> wasmtime::Result<Result<(), Error>> {
        let is_set = self.table.get(&bucket)?.set(&key, &value);
        Ok(is_set.then_some(()).ok_or_else(full))
    }

    fn delete(
        &mut self,
        bucket: Resource<KeyValueStore>,
        key: String,
    ) -> wasmtime::Result<Result<(), Error>> {
        self.table.get(&bucket)?.0.lock().delete(&key);
        Ok(Ok(()))
    }

    fn drop(&mut self, bucket: Resource<KeyValueStore>) -> wasmtime::Result<()> {
        self.table.delete(bucket)?;
        Ok(())
    }
}

impl atomics::Host for State {
    fn increment(
        &mut self,
        bucket: Resource<KeyValueStore>,
        key: String,
        delta: i64,
    ) -> wasmtime::Result<Result<i64, Error>> {
        let counter = self.table.get(&bucket)?.0.lock().increment(key, delta, Instant::now());
        Ok(counter.ok_or_else(full))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_begins_at_zero_and_after_it_was_deleted() {
        let (mut entries, now) = (Entries::default(), Instant::now());
        let mut add = |delta| entries.increment("a".to_owned(), delta, now);
        assert_eq!([add(3), add(-4), add(i64::MIN)], [Some(3), Some(-1), None]);
        entries.delete("a");
        assert_eq!(entries.bytes, 0);
        assert_eq!(entries.increment("a".to_owned(), -1, now), Some(-1));
        assert!(entries.set("b".to_owned(), [1, 2].as_slice().into(), now));
        assert_eq!(entries.increment("b".to_owned(), 1, now), None);
    }

    #[test]
    fn a_full_store_refuses_new_values_until_old_ones_are_of_no_use() {
        let (mut entries, now) = (Entries::default(), Instant::now());
        let large: Arc<[u8]> = vec![0; MAX_BYTES / 2].into();
        assert!(entries.set("a".to_owned(), Arc::clone(&large), now));
        assert!(entries.set("a".to_owned(), Arc::clone(&large), now + MAX_AGE / 2));
        assert!(!entries.set("b".to_owned(), Arc::clone(&large), now + MAX_AGE));
        assert_eq!(entries.increment("c".to_owned(), 1, now + MAX_AGE), Some(1));
        assert!(entries.set("b".to_owned(), large, now + MAX_AGE * 3 / 2));
        assert!(!entries.values.contains_key("a") && entries.values.contains_key("c"));
        assert_eq!(entries.bytes, MAX_BYTES / 2 + 1 + ENTRY_BYTES + 1 + 8 + ENTRY_BYTES);
    }
}
