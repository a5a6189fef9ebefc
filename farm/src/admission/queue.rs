//! A bounded fair queue: round robin over accounts, and first in, first out within an account.
//!
//! Invariant: at most `capacity` entries wait. If the queue is full, a new entry replaces the latest entry of
//! the account with the most entries, if that account has at least two entries more than the account of the
//! new one. So one account cannot fill the queue for others.

use std::collections::VecDeque;

/// Identifies an entry of the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ticket(u64);

/// A queue of entries `V` of accounts `K`.
#[derive(Debug)]
pub(super) struct FairQueue<K, V> {
    capacity: usize,
    next_ticket: u64,
    len: usize,
    /// In the order of their turns. Each has at least one entry.
    accounts: VecDeque<Account<K, V>>,
}

#[derive(Debug)]
struct Account<K, V> {
    key: K,
    waiting: VecDeque<(Ticket, V)>,
}

impl<K: PartialEq + Clone, V> FairQueue<K, V> {
    pub(super) fn new(capacity: usize) -> Self {
        Self { capacity, next_ticket: 0, len: 0, accounts: VecDeque::new() }
    }

    /// Number of entries.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Number of entries that leave the queue before a new entry of this account.
    pub(super) fn ahead_of(&self, key: &K) -> usize {
        let own = self.waiting_of(key);
        self.accounts
            .iter()
            .map(|account| if account.key == *key { own } else { account.waiting.len().min(own + 1) })
            .sum()
    }

    /// Number of entries that leave the queue until this number of entries of one account have left it.
    pub(super) fn until_started(&self, entries: usize) -> usize {
        self.accounts.iter().map(|account| account.waiting.len().min(entries)).sum()
    }

    /// Adds an entry. Returns its ticket and the entry that was removed for it with its account, or `None` if
    /// the queue is full.
    pub(super) fn join(&mut self, key: &K, value: V) -> Option<(Ticket, Option<(K, V)>)> {
        if self.len < self.capacity {
            return Some((self.push(key, value), None));
        }
        let own = self.waiting_of(key);
        let longest = self.accounts.iter_mut().max_by_key(|account| account.waiting.len());
        let longest = longest.filter(|longest| longest.waiting.len() > own + 1)?;
        let (_, evicted) = longest.waiting.pop_back().expect("it has more than one entry");
        let evicted = (longest.key.clone(), evicted);
        self.len -= 1;
        Some((self.push(key, value), Some(evicted)))
    }

    /// Number of accounts with entries.
    pub(super) fn accounts(&self) -> usize {
        self.accounts.len()
    }

    /// Removes the next entry of the accounts for which `may_run` is true.
    pub(super) fn pop(&mut self, may_run: impl Fn(&K) -> bool) -> Option<(K, V)> {
        let index = self.accounts.iter().position(|account| may_run(&account.key))?;
        let mut account = self.accounts.remove(index)?;
        let (_, value) = account.waiting.pop_front().expect("an account in the queue has an entry");
        self.len -= 1;
        let key = account.key.clone();
        if !account.waiting.is_empty() {
            self.accounts.push_back(account);
        }
        Some((key, value))
    }

    /// Removes an entry; `None` if it is no longer in the queue.
    pub(super) fn remove(&mut self, ticket: Ticket) -> Option<V> {
        for index in 0..self.accounts.len() {
            let waiting = &mut self.accounts[index].waiting;
            if let Some(position) = waiting.iter().position(|(held, _)| *held == ticket) {
                let (_, value) = waiting.remove(position)?;
                if waiting.is_empty() {
                    self.accounts.remove(index);
                }
                self.len -= 1;
                return Some(value);
            }
        }
        None
    }

    /// Removes entries from the end of each account for as long as `is_late` is true for the number of entries
    /// that leave the queue before an entry, and the entry.
    pub(super) fn remove_last_while(&mut self, is_late: impl Fn(usize, &V) -> bool) -> Vec<V> {
        let mut removed = Vec::new();
        for index in 0..self.accounts.len() {
            while let Some((_, last)) = self.accounts[index].waiting.back() {
                // As many of each other account as of this one up to this entry.
                let ahead = self.until_started(self.accounts[index].waiting.len()) - 1;
                if !is_late(ahead, last) {
                    break;
                }
                removed.extend(self.accounts[index].waiting.pop_back().map(|(_, value)| value));
            }
        }
        self.len -= removed.len();
        self.accounts.retain(|account| !account.waiting.is_empty());
        removed
    }

    pub(super) fn waiting_of(&self, key: &K) -> usize {
        self.accounts.iter().find(|account| account.key == *key).map_or(0, |account| account.waiting.len())
    }

    fn push(&mut self, key: &K, value: V) -> Ticket {
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        self.len += 1;
        match self.accounts.iter_mut().find(|account| account.key == *key) {
            Some(account) => account.waiting.push_back((ticket, value)),
            None => self
                .accounts
                .push_back(Account { key: key.clone(), waiting: VecDeque::from([(ticket, value)]) }),
        }
        ticket
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drained(queue: &mut FairQueue<char, u32>) -> Vec<u32> {
        std::iter::from_fn(|| queue.pop(|_| true).map(|(_, value)| value)).collect()
    }

    fn filled(capacity: usize, arrivals: &[(char, u32)]) -> FairQueue<char, u32> {
        let mut queue = FairQueue::new(capacity);
        for (key, value) in arrivals {
            queue.join(key, *value);
        }
        queue
    }

    #[test]
    fn accounts_take_turns() {
        let mut queue = filled(9, &[('a', 1), ('a', 2), ('a', 3), ('b', 4), ('c', 5), ('b', 6)]);
        assert_eq!(drained(&mut queue), [1, 4, 5, 2, 6, 3]);
        assert_eq!(queue.len(), 0);
    }

    #[test]
    fn a_new_account_waits_for_one_entry_of_each_other_account() {
        let mut queue = filled(9, &[('a', 1), ('a', 2), ('a', 3), ('a', 4)]);
        assert_eq!((queue.ahead_of(&'a'), queue.ahead_of(&'b')), (4, 1));
        queue.join(&'b', 5);
        assert_eq!(drained(&mut queue), [1, 5, 2, 3, 4]);
    }

    #[test]
    fn a_full_queue_evicts_from_the_account_with_the_most_entries() {
        let mut queue = filled(4, &[('a', 1), ('a', 2), ('a', 3), ('a', 4)]);
        assert_eq!(queue.join(&'a', 5), None);
        assert!(matches!(queue.join(&'b', 6), Some((_, Some(('a', 4))))));
        assert!(matches!(queue.join(&'b', 7), Some((_, Some(('a', 3))))));
        // Both accounts have two entries, so an eviction would not be fairer.
        assert_eq!(queue.join(&'b', 8), None);
        assert!(matches!(queue.join(&'c', 9), Some((_, Some(_)))));
        assert_eq!(queue.len(), 4);
    }

    #[test]
    fn late_entries_are_removed_from_the_end_of_each_account() {
        let mut queue = filled(9, &[('a', 1), ('a', 2), ('a', 3), ('b', 4), ('c', 5), ('b', 6)]);
        // Of each account, at most as many entries as of the first.
        assert_eq!((queue.until_started(1), queue.until_started(2), queue.until_started(3)), (3, 5, 6));
        // Five entries leave before the third of a, and four before its second.
        assert_eq!(queue.remove_last_while(|ahead, _| ahead >= 4), [3, 2]);
        assert_eq!((queue.len(), drained(&mut queue)), (4, vec![1, 4, 5, 6]));
        let mut queue = filled(9, &[('a', 1), ('b', 2)]);
        assert_eq!(queue.remove_last_while(|_, value| *value == 1), [1]);
        assert_eq!((queue.accounts(), queue.len(), drained(&mut queue)), (1, 1, vec![2]));
    }

    #[test]
    fn a_queue_without_capacity_is_full() {
        assert_eq!(filled(0, &[]).join(&'a', 1), None);
    }

    #[test]
    fn an_entry_is_removed_only_once() {
        let mut queue = filled(2, &[('a', 1)]);
        let Some((ticket, None)) = queue.join(&'b', 2) else { panic!("the queue is not full") };
        assert_eq!((queue.remove(ticket), queue.remove(ticket), queue.len()), (Some(2), None, 1));
        assert_eq!(drained(&mut queue), [1]);
    }
}
