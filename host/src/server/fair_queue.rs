//! A bounded queue that serves flows in turn, and the requests of one flow in their order.
//!
//! Invariant: when the queue is full, a new entry replaces the last one of the flow with the most entries, if that
//! has at least two more than the new one's flow. So one flow cannot fill the queue for others.

use std::collections::VecDeque;

use crate::db::Flow;

/// Entries `V` of flows.
pub(super) struct FairQueue<V> {
    capacity: usize,
    len: usize,
    /// In the order of their turns. Each has an entry.
    flows: VecDeque<(Flow, VecDeque<V>)>,
}

impl<V> FairQueue<V> {
    pub(super) fn new(capacity: usize) -> Self {
        Self { capacity, len: 0, flows: VecDeque::new() }
    }

    /// Adds an entry, which may drop another one; the error is the entry if there is no space.
    pub(super) fn push(&mut self, flow: Flow, value: V) -> Result<(), V> {
        if self.len >= self.capacity {
            let own = self.flows.iter().find(|(other, _)| *other == flow).map_or(0, |(_, own)| own.len());
            let longest = self.flows.iter_mut().max_by_key(|(_, entries)| entries.len());
            let Some((_, longest)) = longest.filter(|(_, entries)| entries.len() > own + 1) else {
                return Err(value);
            };
            longest.pop_back();
            self.len -= 1;
        }
        self.len += 1;
        match self.flows.iter_mut().find(|(other, _)| *other == flow) {
            Some((_, entries)) => entries.push_back(value),
            None => self.flows.push_back((flow, VecDeque::from([value]))),
        }
        Ok(())
    }

    pub(super) fn pop(&mut self) -> Option<V> {
        let (flow, mut entries) = self.flows.pop_front()?;
        let value = entries.pop_front();
        if !entries.is_empty() {
            self.flows.push_back((flow, entries));
        }
        self.len -= 1;
        value
    }

    /// Removes the entries of a flow for which `is_wanted` is false.
    pub(super) fn retain(&mut self, flow: Flow, is_wanted: impl Fn(&V) -> bool) {
        let Some(index) = self.flows.iter().position(|(other, _)| *other == flow) else { return };
        let entries = &mut self.flows[index].1;
        let before = entries.len();
        entries.retain(is_wanted);
        self.len -= before - entries.len();
        if entries.is_empty() {
            self.flows.remove(index);
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.len
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(capacity: usize, entries: &[(u64, u32)]) -> FairQueue<u32> {
        let mut queue = FairQueue::new(capacity);
        for (flow, value) in entries {
            let _ = queue.push(Flow::of(flow), *value);
        }
        queue
    }

    fn drained(mut queue: FairQueue<u32>) -> Vec<u32> {
        let values = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(queue.len, 0);
        values
    }

    #[test]
    fn flows_take_turns() {
        let queue = filled(9, &[(1, 11), (1, 12), (1, 13), (2, 21), (3, 31), (2, 22)]);
        assert_eq!(drained(queue), [11, 21, 31, 12, 22, 13]);
    }

    #[test]
    fn a_full_queue_drops_the_last_entry_of_the_flow_with_the_most() {
        let mut queue = filled(3, &[(1, 11), (1, 12), (1, 13)]);
        assert_eq!(queue.push(Flow::of(1_u64), 14), Err(14));
        assert_eq!(queue.push(Flow::of(2_u64), 21), Ok(()));
        // Both have as many as the other or one more.
        assert_eq!(queue.push(Flow::of(2_u64), 22), Err(22));
        assert_eq!(drained(queue), [11, 21, 12]);
        assert_eq!(filled(0, &[]).push(Flow::of(1_u64), 11), Err(11));
    }

    #[test]
    fn entries_that_are_not_wanted_leave_their_space() {
        let mut queue = filled(3, &[(1, 11), (1, 12), (2, 21)]);
        queue.retain(Flow::of(1_u64), |value| *value != 11);
        queue.retain(Flow::of(2_u64), |_| false);
        queue.retain(Flow::of(3_u64), |_| false);
        assert_eq!((queue.len(), drained(queue)), (1, vec![12]));
    }
}
