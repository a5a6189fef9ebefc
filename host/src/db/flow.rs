//! On whose behalf a request is served and a statement runs.

use std::hash::{DefaultHasher, Hash, Hasher};

/// Requests and statements that share their turns in a queue: those of one address. The default is that of
/// the operator's commands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct Flow(u64);

impl Flow {
    /// The flow of whatever has this value.
    pub(crate) fn of(value: impl Hash) -> Self {
        let mut hasher = DefaultHasher::new();
        value.hash(&mut hasher);
        Self(hasher.finish())
    }
}
