//! The pages that are kept for the accounts that have used them, of all browsers.
//!
//! Invariant: a page that an account has used is never given to another account. The pages together use no more memory than
//! the limit, as far as the farm knows it.

use std::collections::VecDeque;

use platen_shared::id::AccountId;

/// Memory of a warm page without its heap: a renderer process, in proportion to what processes share (PSS). 28 MiB were
/// measured for an invoice, whose heap has 3 to 5.
pub(super) const PAGE_BYTES: u64 = 24 * 1024 * 1024;

#[derive(Debug)]
pub(super) struct WarmPage<P> {
    pub(super) account: AccountId,
    /// Id of the browser.
    pub(super) browser: usize,
    pub(super) page: P,
    pub(super) bytes: u64,
}

#[derive(Debug)]
pub(super) struct WarmPages<P> {
    /// The least recently used first. For accounts by Zipf's law, eviction by decayed frequency met 4 % more pages, which is
    /// not worth its parameters.
    pages: Vec<WarmPage<P>>,
    max_bytes: u64,
    /// The accounts with the latest jobs, the most recent last.
    ///
    /// A reset takes 8 to 10 ms of CPU, a seventh of a new account's job, and is wasted if the account has no further job
    /// before its page is evicted. So a page is kept from the account's second recent job on. This is the admission policy of
    /// caches such as `TinyLFU` (Einziger et al., 2017).
    recent: VecDeque<AccountId>,
}

impl<P> WarmPages<P> {
    pub(super) fn new(max_bytes: u64) -> Self {
        Self { pages: Vec::new(), max_bytes, recent: VecDeque::new() }
    }

    /// Takes the account's most recently used page in a browser for which `fit` is true.
    pub(super) fn take(
        &mut self,
        account: &AccountId,
        browser: usize,
        fit: impl Fn(&P) -> bool,
    ) -> Option<P> {
        let index = self.pages.iter().rposition(|warm| warm.is_for(account, browser, &fit))?;
        Some(self.pages.remove(index).page)
    }

    /// Whether the account has a page in a browser for which `fit` is true.
    pub(super) fn has(&self, account: &AccountId, browser: usize, fit: impl Fn(&P) -> bool) -> bool {
        self.pages.iter().any(|warm| warm.is_for(account, browser, &fit))
    }

    /// Keeps a page, and returns those that are evicted for it.
    #[must_use]
    pub(super) fn keep(&mut self, warm: WarmPage<P>) -> Vec<WarmPage<P>> {
        self.pages.push(warm);
        let mut bytes = 0;
        let fits = |warm: &&WarmPage<P>| {
            bytes += warm.bytes;
            bytes <= self.max_bytes
        };
        let kept = self.pages.iter().rev().take_while(fits).count();
        self.pages.drain(..self.pages.len() - kept).collect()
    }

    pub(super) fn remove_of(&mut self, browser: usize) -> Vec<P> {
        self.pages.extract_if(.., |warm| warm.browser == browser).map(|warm| warm.page).collect()
    }

    pub(super) fn len(&self) -> usize {
        self.pages.len()
    }

    /// Records a job of an account; true if a page of it is likely to be used again: few other accounts have had jobs since
    /// the account's previous one. After twice as many as there are pages, its page has been evicted in any case.
    pub(super) fn record(&mut self, account: &AccountId) -> bool {
        let known = self.recent.iter().rposition(|known| known == account);
        let known = known.and_then(|index| self.recent.remove(index));
        let is_recent = known.is_some();
        self.recent.push_back(known.unwrap_or_else(|| account.clone()));
        let max = usize::try_from(2 * self.max_bytes / PAGE_BYTES).unwrap_or(usize::MAX);
        if self.recent.len() > max {
            self.recent.pop_front();
        }
        is_recent
    }
}

impl<P> WarmPage<P> {
    fn is_for(&self, account: &AccountId, browser: usize, fit: impl Fn(&P) -> bool) -> bool {
        self.account == *account && self.browser == browser && fit(&self.page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(name: &str) -> AccountId {
        AccountId::from_text(name)
    }

    fn warm(name: &str, browser: usize, page: u32, bytes: u64) -> WarmPage<u32> {
        WarmPage { account: account(name), browser, page, bytes }
    }

    fn keep(pages: &mut WarmPages<u32>, page: WarmPage<u32>) -> Vec<u32> {
        pages.keep(page).into_iter().map(|evicted| evicted.page).collect()
    }

    #[test]
    fn a_used_page_is_given_to_its_account_only() {
        let mut pages = WarmPages::new(4);
        assert_eq!(keep(&mut pages, warm("a", 1, 1, 1)), [0; 0]);
        assert_eq!(keep(&mut pages, warm("a", 1, 2, 1)), [0; 0]);
        assert_eq!(pages.len(), 2);
        assert_eq!(pages.take(&account("b"), 1, |_| true), None);
        assert_eq!(pages.take(&account("a"), 2, |_| true), None);
        assert!(pages.has(&account("a"), 1, |_| true) && !pages.has(&account("b"), 1, |_| true));
        assert!(!pages.has(&account("a"), 1, |&page| page == 3));
        assert_eq!(pages.take(&account("a"), 1, |&page| page == 3), None);
        assert_eq!(pages.take(&account("a"), 1, |_| true), Some(2));
        assert_eq!(pages.take(&account("a"), 1, |_| true), Some(1));
        assert_eq!(pages.take(&account("a"), 1, |_| true), None);
    }

    #[test]
    fn the_least_recently_used_pages_are_evicted() {
        let mut pages = WarmPages::new(5);
        assert_eq!(keep(&mut pages, warm("a", 1, 1, 2)), [0; 0]);
        assert_eq!(keep(&mut pages, warm("b", 2, 2, 2)), [0; 0]);
        let again = pages.take(&account("a"), 1, |_| true).unwrap();
        assert_eq!(keep(&mut pages, warm("a", 1, again, 2)), [0; 0]);
        assert_eq!(keep(&mut pages, warm("c", 1, 3, 3)), [2]);
        assert_eq!(keep(&mut pages, warm("d", 1, 4, 5)), [1, 3]);
        assert_eq!(keep(&mut pages, warm("e", 1, 5, 6)), [4, 5]);
        assert_eq!(keep(&mut WarmPages::new(0), warm("a", 1, 1, 1)), [1]);
    }

    #[test]
    fn the_pages_of_a_browser_are_removed_together() {
        let mut pages = WarmPages::new(3);
        assert_eq!(keep(&mut pages, warm("a", 1, 1, 2)), [0; 0]);
        assert_eq!(keep(&mut pages, warm("a", 2, 2, 1)), [0; 0]);
        assert_eq!(pages.remove_of(1), [1]);
        assert_eq!(keep(&mut pages, warm("b", 2, 3, 2)), [0; 0]);
        assert!(!pages.has(&account("a"), 1, |_| true));
        assert_eq!(pages.take(&account("a"), 2, |_| true), Some(2));
    }

    #[test]
    fn an_account_with_a_second_job_soon_is_recent() {
        let mut pages = WarmPages::<u32>::new(PAGE_BYTES);
        let mut record = |name: &str| pages.record(&account(name));
        assert!(!record("a"));
        assert!(record("a"));
        assert!(!record("b"));
        assert!(record("a"));
        assert!(!record("c"));
        assert!(!record("b"));
        assert!(record("c"));
    }
}
