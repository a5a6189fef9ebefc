//! A bounded fair queue: round robin over flows, such as accounts, and first in, first out within a flow.
//!
//! Invariant: at most `capacity` entries wait. If the queue is full, a new entry replaces the latest entry of
//! the flow with the most entries, if that flow has at least two entries more than the flow of the new one. So
//! one flow cannot fill the queue for others.

use std::collections::VecDeque;

/// Identifies an entry of the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket(u64);

/// A queue of entries `V` of flows `K`.
#[derive(Debug)]
pub struct FairQueue<K, V> {
    capacity: usize,
    next_ticket: u64,
    /// The order of their turns. Each has at least one entry.
    flows: VecDeque<FlowQueue<K, V>>,
}

#[derive(Debug)]
struct FlowQueue<K, V> {
    key: K,
    waiting: VecDeque<(Ticket, V)>,
}

impl<K: PartialEq + Clone, V> FairQueue<K, V> {
    /// A queue without entries that has space for `capacity`.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self { capacity, next_ticket: 0, flows: VecDeque::new() }
    }

    /// Number of entries.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "its length is what callers need")]
    pub fn len(&self) -> usize {
        self.flows.iter().map(|flow| flow.waiting.len()).sum()
    }

    /// Whether a new entry replaces another one, or is not accepted.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.len() >= self.capacity
    }

    /// The entry of each flow that has been in the queue longest.
    pub fn firsts(&self) -> impl Iterator<Item = &V> {
        self.flows.iter().filter_map(|flow| flow.waiting.front().map(|(_, value)| value))
    }

    /// Number of flows with entries.
    #[must_use]
    pub fn flows(&self) -> usize {
        self.flows.len()
    }

    /// Whether `condition` is true for a flow with entries.
    pub fn any(&self, condition: impl Fn(&K) -> bool) -> bool {
        self.flows.iter().any(|flow| condition(&flow.key))
    }

    /// Adds an entry. Returns its ticket and the entry that was removed for it with its flow.
    ///
    /// # Errors
    /// The entry, if the queue is full.
    pub fn join(&mut self, key: &K, value: V) -> Result<(Ticket, Option<(K, V)>), V> {
        if !self.is_full() {
            return Ok((self.push(key, value), None));
        }
        let own = self.flows.iter().find(|flow| flow.key == *key).map_or(0, |flow| flow.waiting.len());
        let longest = self.flows.iter_mut().max_by_key(|flow| flow.waiting.len());
        let Some(longest) = longest.filter(|longest| longest.waiting.len() > own + 1) else {
            return Err(value);
        };
        let (_, evicted) = longest.waiting.pop_back().expect("it has more than one entry");
        let evicted = (longest.key.clone(), evicted);
        Ok((self.push(key, value), Some(evicted)))
    }

    /// Removes the first entry of the next flow for which `may_run` is true, with this entry.
    pub fn pop(&mut self, may_run: impl Fn(&K, &V) -> bool) -> Option<(K, V)> {
        let may_run =
            |flow: &FlowQueue<K, V>| flow.waiting.front().is_some_and(|(_, first)| may_run(&flow.key, first));
        let index = self.flows.iter().position(may_run)?;
        let mut flow = self.flows.remove(index)?;
        let (_, value) = flow.waiting.pop_front().expect("a flow in the queue has an entry");
        let key = flow.key.clone();
        if !flow.waiting.is_empty() {
            self.flows.push_back(flow);
        }
        Some((key, value))
    }

    /// Removes an entry; `None` if it is no longer in the queue.
    pub fn remove(&mut self, ticket: Ticket) -> Option<V> {
        for index in 0..self.flows.len() {
            let waiting = &mut self.flows[index].waiting;
            // The tickets of a flow are in ascending order.
            if let Ok(position) = waiting.binary_search_by_key(&ticket.0, |(held, _)| held.0) {
                let (_, value) = waiting.remove(position)?;
                if waiting.is_empty() {
                    self.flows.remove(index);
                }
                return Some(value);
            }
        }
        None
    }

    fn push(&mut self, key: &K, value: V) -> Ticket {
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        match self.flows.iter_mut().find(|flow| flow.key == *key) {
            Some(flow) => flow.waiting.push_back((ticket, value)),
            None => {
                self.flows
                    .push_back(FlowQueue { key: key.clone(), waiting: VecDeque::from([(ticket, value)]) });
            }
        }
        ticket
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drained(queue: &mut FairQueue<char, u32>) -> Vec<u32> {
        std::iter::from_fn(|| queue.pop(|_, _| true).map(|(_, value)| value)).collect()
    }

    fn filled(capacity: usize, arrivals: &[(char, u32)]) -> FairQueue<char, u32> {
        let mut queue = FairQueue::new(capacity);
        for (key, value) in arrivals {
            let _ = queue.join(key, *value);
        }
        queue
    }

    #[test]
    fn flows_take_turns() {
        let mut queue = filled(9, &[('a', 1), ('a', 2), ('a', 3), ('b', 4), ('c', 5), ('b', 6)]);
        assert_eq!(drained(&mut queue), [1, 4, 5, 2, 6, 3]);
        assert_eq!(queue.len(), 0);
    }

    #[test]
    fn a_new_flow_waits_for_one_entry_of_each_other_flow() {
        let mut queue = filled(9, &[('a', 1), ('a', 2), ('a', 3), ('a', 4)]);
        queue.join(&'b', 5).unwrap();
        assert_eq!(drained(&mut queue), [1, 5, 2, 3, 4]);
    }

    #[test]
    fn a_full_queue_evicts_from_the_flow_with_the_most_entries() {
        let mut queue = filled(4, &[('a', 1), ('a', 2), ('a', 3), ('a', 4)]);
        assert_eq!(queue.join(&'a', 5), Err(5));
        assert!(matches!(queue.join(&'b', 6), Ok((_, Some(('a', 4))))));
        assert!(matches!(queue.join(&'b', 7), Ok((_, Some(('a', 3))))));
        // Both flows have two entries, so an eviction would not be fairer.
        assert_eq!(queue.join(&'b', 8), Err(8));
        assert!(matches!(queue.join(&'c', 9), Ok((_, Some(_)))));
        assert_eq!(queue.len(), 4);
    }

    #[test]
    fn a_queue_without_capacity_is_full() {
        assert_eq!(filled(0, &[]).join(&'a', 1), Err(1));
    }

    #[test]
    fn an_entry_is_removed_only_once() {
        let mut queue = filled(2, &[('a', 1)]);
        let Ok((ticket, None)) = queue.join(&'b', 2) else { panic!("the queue is not full") };
        assert_eq!((queue.remove(ticket), queue.remove(ticket), queue.len()), (Some(2), None, 1));
        assert_eq!(drained(&mut queue), [1]);
    }
}
