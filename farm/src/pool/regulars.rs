//! Accounts that come again.
//!
//! To clean a page for an account's next job is wasted where there is none before the page has to go: 8
//! to 10 ms of CPU, a seventh of what a job of a new account costs. So a page is kept from the second
//! job on, if the first was not too long ago. The idea is that of caches which admit only what has been
//! asked for before (Einziger et al., `TinyLFU`, 2017).

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

use platen_shared::id::AccountId;

/// The accounts whose jobs were the latest.
#[derive(Debug)]
pub(super) struct Regulars {
    /// The latest at the back.
    seen: Mutex<VecDeque<AccountId>>,
    most: usize,
}

impl Regulars {
    /// Remembers so many accounts.
    pub(super) fn new(most: usize) -> Self {
        Self { seen: Mutex::default(), most }
    }

    /// Notes a job of an account's; true if it has had one before, and few others have since.
    pub(super) fn greet(&self, account: &AccountId) -> bool {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let place = seen.iter().rposition(|known| known == account);
        let known = place.and_then(|place| seen.remove(place));
        let regular = known.is_some();
        seen.push_back(known.unwrap_or_else(|| account.clone()));
        if seen.len() > self.most {
            seen.pop_front();
        }
        regular
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_comes_again_soon_is_a_regular() {
        let regulars = Regulars::new(2);
        let greet = |name: &str| regulars.greet(&AccountId::from_text(name));
        assert!(!greet("a"));
        assert!(greet("a"));
        assert!(!greet("b"));
        assert!(greet("a"));
        assert!(!greet("c"));
        assert!(!greet("b"));
        assert!(greet("c"));
    }
}
