//! The pages of one browser that wait for a job.
//!
//! Invariant: a page that an account has used is given to no other. Left to others: opening, closing
//! and cleaning pages.

use std::collections::VecDeque;

use platen_shared::id::AccountId;

use crate::page::Page;

/// Pages in waiting.
#[derive(Debug)]
pub(super) struct Shelf<P = Page> {
    /// Never used, for whoever comes.
    spares: Vec<P>,
    /// Spares that are being opened.
    opening: usize,
    /// Used by one account each, the one used longest ago in front.
    warm: VecDeque<(AccountId, P)>,
    most_warm: usize,
}

impl<P> Shelf<P> {
    pub(super) fn new(most_warm: usize) -> Self {
        Self { spares: Vec::new(), opening: 0, warm: VecDeque::new(), most_warm }
    }

    /// The page that the account used last, of those that are `fit`.
    pub(super) fn warm(&mut self, account: &AccountId, fit: impl Fn(&P) -> bool) -> Option<P> {
        let place = self.warm.iter().rposition(|(owner, page)| owner == account && fit(page))?;
        self.warm.remove(place).map(|(_, page)| page)
    }

    /// Whether there is a page of the account's.
    pub(super) fn knows(&self, account: &AccountId) -> bool {
        self.warm.iter().any(|(owner, _)| owner == account)
    }

    /// A page that nobody has used.
    pub(super) fn spare(&mut self) -> Option<P> {
        self.spares.pop()
    }

    /// Keeps a page for an account, and returns what must go for it.
    #[must_use]
    pub(super) fn keep(&mut self, account: AccountId, page: P) -> Option<P> {
        self.warm.push_back((account, page));
        if self.warm.len() > self.most_warm { self.warm.pop_front().map(|(_, page)| page) } else { None }
    }

    /// How many spares to open now, so that there are `wanted`. Each must be reported by
    /// [`Shelf::opened`].
    #[must_use]
    pub(super) fn missing(&mut self, wanted: usize) -> usize {
        let missing = wanted.saturating_sub(self.spares.len() + self.opening);
        self.opening += missing;
        missing
    }

    /// A spare is there, or could not be opened.
    pub(super) fn opened(&mut self, page: Option<P>) {
        self.opening -= 1;
        self.spares.extend(page);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(name: &str) -> AccountId {
        AccountId::from_text(name)
    }

    #[test]
    fn a_page_stays_with_its_account() {
        let mut shelf = Shelf::new(4);
        assert_eq!(shelf.keep(account("a"), 1), None);
        assert_eq!(shelf.keep(account("a"), 2), None);
        assert_eq!(shelf.warm(&account("b"), |_| true), None);
        assert!(shelf.knows(&account("a")) && !shelf.knows(&account("b")));
        assert_eq!(shelf.spare(), None);
        assert_eq!(shelf.warm(&account("a"), |&page| page == 3), None);
        assert_eq!(shelf.warm(&account("a"), |_| true), Some(2));
        assert_eq!(shelf.warm(&account("a"), |_| true), Some(1));
        assert_eq!(shelf.warm(&account("a"), |_| true), None);
    }

    #[test]
    fn who_was_not_there_for_longest_goes() {
        let mut shelf = Shelf::new(2);
        assert_eq!(shelf.keep(account("a"), 1), None);
        assert_eq!(shelf.keep(account("b"), 2), None);
        let again = shelf.warm(&account("a"), |_| true).unwrap();
        assert_eq!(shelf.keep(account("a"), again), None);
        assert_eq!(shelf.keep(account("c"), 3), Some(2));
        assert_eq!(Shelf::new(0).keep(account("a"), 1), Some(1));
    }

    #[test]
    fn spares_are_made_up_for_once() {
        let mut shelf = Shelf::new(2);
        assert_eq!((shelf.missing(2), shelf.missing(2)), (2, 0));
        shelf.opened(Some(1));
        shelf.opened(None);
        assert_eq!(shelf.missing(2), 1);
        assert_eq!((shelf.spare(), shelf.spare()), (Some(1), None));
    }
}
