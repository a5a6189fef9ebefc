//! Waiting in turn: accounts one after the other, and within an account first come, first served.
//!
//! Invariant: at most `capacity` wait. When all places are taken, a newcomer gets the place of the
//! latest arrival of the account that waits with most, provided that leaves the two accounts no
//! less even than before; so nobody can fill the queue for the others. Pure: no clock, no
//! waiting, no locks.

use std::collections::VecDeque;

/// A place in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ticket(u64);

/// What became of a newcomer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Joined<V> {
    /// It waits.
    Waiting(Ticket),
    /// It waits, in the place of another, which is out.
    Instead(Ticket, V),
    /// No place; the newcomer is handed back.
    Full(V),
}

/// The queue: `V`s of accounts `K`.
#[derive(Debug)]
pub(super) struct FairQueue<K, V> {
    capacity: usize,
    next_ticket: u64,
    len: usize,
    /// In the order of their turns. No account is here without anything waiting.
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

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// How many have their turn before a newcomer of this account.
    pub(super) fn ahead_of(&self, key: &K) -> usize {
        let own = self.waiting_of(key);
        self.accounts
            .iter()
            .map(|account| if account.key == *key { own } else { account.waiting.len().min(own + 1) })
            .sum()
    }

    /// Puts a newcomer in.
    pub(super) fn join(&mut self, key: &K, value: V) -> Joined<V> {
        if self.len < self.capacity {
            return Joined::Waiting(self.push(key, value));
        }
        let own = self.waiting_of(key);
        let heaviest = self.accounts.iter_mut().max_by_key(|account| account.waiting.len());
        match heaviest {
            Some(heaviest) if heaviest.waiting.len() > own + 1 => {
                let (_, out) = heaviest.waiting.pop_back().expect("more than one waits");
                self.len -= 1;
                Joined::Instead(self.push(key, value), out)
            }
            _ => Joined::Full(value),
        }
    }

    /// How many accounts have something waiting.
    pub(super) fn accounts(&self) -> usize {
        self.accounts.len()
    }

    /// Takes out the next in turn of those accounts that `may_run`.
    pub(super) fn pop(&mut self, may_run: impl Fn(&K) -> bool) -> Option<(K, V)> {
        let index = self.accounts.iter().position(|account| may_run(&account.key))?;
        let mut account = self.accounts.remove(index)?;
        let (_, value) = account.waiting.pop_front().expect("an account here has something waiting");
        self.len -= 1;
        let key = account.key.clone();
        if !account.waiting.is_empty() {
            self.accounts.push_back(account);
        }
        Some((key, value))
    }

    /// Takes out one that no longer wants to wait; `None` if it is not here any more.
    pub(super) fn remove(&mut self, ticket: Ticket) -> Option<V> {
        for index in 0..self.accounts.len() {
            let waiting = &mut self.accounts[index].waiting;
            if let Some(place) = waiting.iter().position(|(held, _)| *held == ticket) {
                let (_, value) = waiting.remove(place)?;
                if waiting.is_empty() {
                    self.accounts.remove(index);
                }
                self.len -= 1;
                return Some(value);
            }
        }
        None
    }

    fn waiting_of(&self, key: &K) -> usize {
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
    fn a_newcomer_is_one_round_away_however_much_another_account_queues() {
        let mut queue = filled(9, &[('a', 1), ('a', 2), ('a', 3), ('a', 4)]);
        assert_eq!((queue.ahead_of(&'a'), queue.ahead_of(&'b')), (4, 1));
        queue.join(&'b', 5);
        assert_eq!(drained(&mut queue), [1, 5, 2, 3, 4]);
    }

    #[test]
    fn a_full_queue_makes_room_at_the_cost_of_who_waits_with_most() {
        let mut queue = filled(4, &[('a', 1), ('a', 2), ('a', 3), ('a', 4)]);
        assert_eq!(queue.join(&'a', 5), Joined::Full(5));
        assert!(matches!(queue.join(&'b', 6), Joined::Instead(_, 4)));
        assert!(matches!(queue.join(&'b', 7), Joined::Instead(_, 3)));
        // Two and two: nobody would be better off.
        assert_eq!(queue.join(&'b', 8), Joined::Full(8));
        assert!(matches!(queue.join(&'c', 9), Joined::Instead(..)));
        assert_eq!(queue.len(), 4);
    }

    #[test]
    fn without_places_nobody_waits() {
        assert_eq!(filled(0, &[]).join(&'a', 1), Joined::Full(1));
    }

    #[test]
    fn leaving_frees_the_place_once() {
        let mut queue = filled(2, &[('a', 1)]);
        let Joined::Waiting(ticket) = queue.join(&'b', 2) else { panic!("there was a place") };
        assert_eq!((queue.remove(ticket), queue.remove(ticket), queue.len()), (Some(2), None, 1));
        assert_eq!(drained(&mut queue), [1]);
    }
}
