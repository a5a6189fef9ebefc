//! The key-value store `default` of the platform: bytes and counters by name, which all instances of a component share.
//!
//! Invariant: what a store does not do is `None`, and has the same meaning as a store that lost the value.

// Bindings of WASI's own interface, which has counters. The SDK's module `key_value` is of Spin's, which has none.
use spin_sdk::experimental::wasi::keyvalue::{
    atomics,
    store::{self, Bucket},
};

/// The store.
pub struct KeyValueStore(Bucket);

impl KeyValueStore {
    /// Opens the store. Where the platform has none, nothing is kept.
    #[must_use]
    pub fn open() -> Option<Self> {
        store::open("default").ok().map(Self)
    }

    /// The value.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Vec<u8>> {
        self.0.get(name).ok().flatten()
    }

    /// Sets a value, unless the store is full or fails.
    #[must_use]
    pub fn set(&self, name: &str, value: &[u8]) -> Option<()> {
        self.0.set(name, value).ok()
    }

    /// Deletes a value or a counter.
    pub fn delete(&self, name: &str) {
        // What is left is of no use.
        let _ = self.0.delete(name);
    }

    /// Adds to a counter, which begins at 0, and returns the sum.
    #[must_use]
    pub fn add(&self, name: &str, number: i64) -> Option<i64> {
        atomics::increment(&self.0, name, number).ok()
    }
}
