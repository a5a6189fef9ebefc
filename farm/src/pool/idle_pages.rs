//! The idle pages of one browser, and the accounts for which pages are kept.
//!
//! Invariant: a page that an account has used is never given to another account.

use std::collections::VecDeque;

use parking_lot::Mutex;
use platen_shared::id::AccountId;

use crate::page::Page;

/// Idle pages: spare ones, which no account has used, and warm ones, which one account has used.
#[derive(Debug)]
pub(super) struct IdlePages<P = Page> {
    spares: Vec<P>,
    /// Spares that are being opened.
    opening: usize,
    /// The least recently used first.
    warm: VecDeque<(AccountId, P)>,
    max_warm: usize,
}

impl<P> IdlePages<P> {
    pub(super) fn new(max_warm: usize) -> Self {
        Self { spares: Vec::new(), opening: 0, warm: VecDeque::new(), max_warm }
    }

    /// Takes the account's most recently used page for which `fit` is true.
    pub(super) fn warm(&mut self, account: &AccountId, fit: impl Fn(&P) -> bool) -> Option<P> {
        let index = self.warm.iter().rposition(|(owner, page)| owner == account && fit(page))?;
        self.warm.remove(index).map(|(_, page)| page)
    }

    /// Whether the account has a page for which `fit` is true.
    pub(super) fn has_warm(&self, account: &AccountId, fit: impl Fn(&P) -> bool) -> bool {
        self.warm.iter().any(|(owner, page)| owner == account && fit(page))
    }

    /// Takes a page that no account has used.
    pub(super) fn spare(&mut self) -> Option<P> {
        self.spares.pop()
    }

    /// Keeps a page for an account, and returns the page that is evicted for it.
    #[must_use]
    pub(super) fn keep(&mut self, account: AccountId, page: P) -> Option<P> {
        self.warm.push_back((account, page));
        if self.warm.len() > self.max_warm { self.warm.pop_front().map(|(_, page)| page) } else { None }
    }

    /// Takes all warm pages.
    pub(super) fn take_warm(&mut self) -> Vec<P> {
        self.warm.drain(..).map(|(_, page)| page).collect()
    }

    /// The number of warm pages, and of spare ones.
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.warm.len(), self.spares.len())
    }

    /// Spare pages to open now, so that there will be `wanted`. The caller reports each of them with
    /// [`IdlePages::opened`].
    #[must_use]
    pub(super) fn missing(&mut self, wanted: usize) -> usize {
        let missing = wanted.saturating_sub(self.spares.len() + self.opening);
        self.opening += missing;
        missing
    }

    /// Adds a spare page; `None` if it could not be opened.
    pub(super) fn opened(&mut self, page: Option<P>) {
        self.opening -= 1;
        self.spares.extend(page);
    }
}

/// The accounts with the latest jobs.
///
/// A reset takes 8 to 10 ms of CPU, a seventh of a new account's job, and is wasted if the account has no further job before
/// its page is evicted. So a page is kept from the account's second recent job on. This is the admission policy of caches
/// such as `TinyLFU` (Einziger et al., 2017).
#[derive(Debug)]
pub(super) struct RecentAccounts {
    /// The most recent last.
    accounts: Mutex<VecDeque<AccountId>>,
    max: usize,
}

impl RecentAccounts {
    /// Remembers at most `max` accounts.
    pub(super) fn new(max: usize) -> Self {
        Self { accounts: Mutex::default(), max }
    }

    /// Records a job of an account; true if at most `max - 1` other accounts had jobs since its previous one.
    pub(super) fn record(&self, account: &AccountId) -> bool {
        let mut accounts = self.accounts.lock();
        let index = accounts.iter().rposition(|known| known == account);
        let known = index.and_then(|index| accounts.remove(index));
        let is_recent = known.is_some();
        accounts.push_back(known.unwrap_or_else(|| account.clone()));
        if accounts.len() > self.max {
            accounts.pop_front();
        }
        is_recent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(name: &str) -> AccountId {
        AccountId::from_text(name)
    }

    #[test]
    fn a_used_page_is_given_to_its_account_only() {
        let mut pages = IdlePages::new(4);
        assert_eq!(pages.keep(account("a"), 1), None);
        assert_eq!(pages.keep(account("a"), 2), None);
        assert_eq!(pages.counts(), (2, 0));
        assert_eq!(pages.warm(&account("b"), |_| true), None);
        assert!(pages.has_warm(&account("a"), |_| true) && !pages.has_warm(&account("b"), |_| true));
        assert!(!pages.has_warm(&account("a"), |&page| page == 3));
        assert_eq!(pages.spare(), None);
        assert_eq!(pages.warm(&account("a"), |&page| page == 3), None);
        assert_eq!(pages.warm(&account("a"), |_| true), Some(2));
        assert_eq!(pages.warm(&account("a"), |_| true), Some(1));
        assert_eq!(pages.warm(&account("a"), |_| true), None);
    }

    #[test]
    fn the_least_recently_used_page_is_evicted() {
        let mut pages = IdlePages::new(2);
        assert_eq!(pages.keep(account("a"), 1), None);
        assert_eq!(pages.keep(account("b"), 2), None);
        let again = pages.warm(&account("a"), |_| true).unwrap();
        assert_eq!(pages.keep(account("a"), again), None);
        assert_eq!(pages.keep(account("c"), 3), Some(2));
        assert_eq!(IdlePages::new(0).keep(account("a"), 1), Some(1));
    }

    #[test]
    fn each_missing_spare_is_opened_once() {
        let mut pages = IdlePages::new(2);
        assert_eq!((pages.missing(2), pages.missing(2)), (2, 0));
        pages.opened(Some(1));
        pages.opened(None);
        assert_eq!(pages.missing(2), 1);
        assert_eq!((pages.spare(), pages.spare()), (Some(1), None));
    }

    #[test]
    fn an_account_with_a_second_job_soon_is_recent() {
        let recent = RecentAccounts::new(2);
        let record = |name: &str| recent.record(&AccountId::from_text(name));
        assert!(!record("a"));
        assert!(record("a"));
        assert!(!record("b"));
        assert!(record("a"));
        assert!(!record("c"));
        assert!(!record("b"));
        assert!(record("c"));
    }
}
