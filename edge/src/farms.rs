//! Which of several farms a job is offered to, and in which order.
//!
//! Invariant: the order depends on the account, the addresses and the recent failures only, so that edges that
//! see the same farms choose the same one.

use std::{
    cmp::Reverse,
    collections::VecDeque,
    ops::Range,
    time::{Duration, Instant},
};

use platen_shared::farm_address::{FarmAddress, weight};

/// How long a farm is used last after a failure; doubled with each further one.
const MIN_AVOID_TIME: Duration = Duration::from_secs(1);
const MAX_AVOID_TIME: Duration = Duration::from_secs(15);
/// How long an address at which several farms have answered in turn counts as that of several.
const SHARED_TIME: Duration = Duration::from_mins(10);
/// How many names of farms at one address are kept.
const MAX_IDS: usize = 8;
/// How many farms are asked for their load at the same time.
const MAX_BATCH: usize = 7;

/// What this instance has seen of a farm.
#[derive(Debug, Clone, Default)]
pub struct Health {
    failures: u32,
    avoided_until: Option<Instant>,
}

impl Health {
    /// Whether the farm is used only after all others.
    #[must_use]
    pub fn is_avoided(&self, now: Instant) -> bool {
        self.avoided_until.is_some_and(|until| now < until)
    }

    /// Records that the farm did not answer or accepts no jobs. Returns how long it is avoided from now on, if it was
    /// not avoided before: the requests of one moment fail together and count once.
    pub fn failed(&mut self, now: Instant) -> Option<Duration> {
        if self.is_avoided(now) {
            return None;
        }
        let time = MIN_AVOID_TIME.saturating_mul(1 << self.failures.min(10)).min(MAX_AVOID_TIME);
        self.failures += 1;
        self.avoided_until = Some(now + time);
        Some(time)
    }

    /// Records that the farm accepts jobs.
    pub fn answered(&mut self) {
        *self = Self::default();
    }
}

/// The names of the farms that have answered at one address ([`wire::FARM_ID`](platen_shared::wire::FARM_ID)).
#[derive(Debug, Clone, Default)]
pub struct FarmIds {
    /// The latest last.
    seen: VecDeque<String>,
    /// The latest answer had a name.
    is_named: bool,
    shared_until: Option<Instant>,
}

impl FarmIds {
    /// Records the name in a response of the address.
    pub fn saw(&mut self, id: Option<&str>, now: Instant) {
        self.is_named = id.is_some();
        let Some(id) = id else { return };
        match self.seen.iter().position(|seen| seen == id) {
            Some(position) if position + 1 == self.seen.len() => {}
            // Another farm has answered since: this one was not replaced.
            Some(_) => {
                self.seen.clear();
                self.shared_until = Some(now + SHARED_TIME);
            }
            None => {
                if self.seen.len() == MAX_IDS {
                    self.seen.pop_front();
                }
                self.seen.push_back(id.to_owned());
            }
        }
    }

    /// Whether the farm that has answered last has a name. Without one it is part of the edge's server, or of version
    /// 0.1.0 and keeps no slots.
    #[must_use]
    pub fn are_known(&self) -> bool {
        self.is_named
    }

    /// Whether several farms answer in turn, so that the slot of one is of no use to a job that reaches another.
    #[must_use]
    pub fn are_several(&self, now: Instant) -> bool {
        self.shared_until.is_some_and(|until| now < until)
    }
}

/// The load of a farm: jobs that have a slot or wait for one, in percent of the slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Load(pub u64);

impl Load {
    /// That of a farm whose slots are taken and whose queue is empty.
    pub const FULL: Self = Self(100);

    /// Whether a job would not have to wait.
    #[must_use]
    pub fn has_free_slot(self) -> bool {
        self < Self::FULL
    }

    /// How often all slots have to become free before a new job gets one. Farms are compared by this, so that an
    /// account stays on its farm while the queue of no other is shorter by a job for each slot.
    #[must_use]
    pub fn rounds(self) -> u64 {
        self.0 / 100
    }
}

/// The farms in the order in which a job is offered to them.
#[derive(Debug, PartialEq, Eq)]
pub struct Order {
    /// Indices of the farms: by weight, and those that are avoided last.
    pub farms: Vec<usize>,
    /// The number of those that are not avoided.
    healthy: usize,
}

/// Farms that are asked for their load at the same time.
#[derive(Debug, PartialEq, Eq)]
pub struct Batch {
    /// Positions in [`Order::farms`].
    pub positions: Range<usize>,
    /// The next batch is asked if there is no answer after a moment.
    pub hedged: bool,
    is_last_resort: bool,
}

/// The order for an account of the farms with these addresses; whether a farm is avoided is the second value.
#[must_use]
pub fn order<'f>(account_hash: &str, farms: impl Iterator<Item = (&'f FarmAddress, bool)>) -> Order {
    let weighted = farms
        .enumerate()
        .map(|(index, (address, is_avoided))| (is_avoided, Reverse(weight(account_hash, address)), index));
    let mut weighted: Vec<_> = weighted.collect();
    weighted.sort_unstable();
    let healthy = weighted.iter().take_while(|(is_avoided, ..)| !is_avoided).count();
    Order { farms: weighted.into_iter().map(|(.., index)| index).collect(), healthy }
}

impl Order {
    /// The account's farm alone, then the others, and at last those that are avoided.
    #[must_use]
    pub fn batches(&self) -> Vec<Batch> {
        let (healthy, all) = (self.healthy, self.farms.len());
        let first = Batch { positions: 0..healthy.min(1), hedged: true, is_last_resort: false };
        let chunks = |from: usize, to: usize, is_last_resort| {
            (from..to).step_by(MAX_BATCH).map(move |start| {
                let positions = start..to.min(start + MAX_BATCH);
                Batch { positions, hedged: false, is_last_resort }
            })
        };
        let others = chunks(first.positions.end, healthy, false).chain(chunks(healthy, all, true));
        [first].into_iter().filter(|first| !first.positions.is_empty()).chain(others).collect()
    }
}

impl Batch {
    /// Whether these farms are left out because others have answered that would queue the job.
    #[must_use]
    pub fn is_needless(&self, others_queue: bool) -> bool {
        others_queue && (self.is_last_resort || self.positions.start > 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses() -> Vec<FarmAddress> {
        (0..5).map(|number| format!("http://farm-{number}").parse().unwrap()).collect()
    }

    #[test]
    fn avoided_farms_come_last_and_the_others_keep_their_order() {
        let farms = addresses();
        let all = order("account", farms.iter().map(|farm| (farm, false))).farms;
        let avoided = [all[0], all[2]];
        let farms = farms.iter().enumerate().map(|(index, farm)| (farm, avoided.contains(&index)));
        let order = order("account", farms);
        assert_eq!(order, Order { farms: vec![all[1], all[3], all[4], all[0], all[2]], healthy: 3 });
    }

    #[test]
    fn the_first_farm_is_asked_alone_and_those_that_are_avoided_last() {
        for (healthy, all, expected) in [
            (1, 1, vec![(0, 1)]),
            (0, 2, vec![(0, 2)]),
            (2, 3, vec![(0, 1), (1, 2), (2, 3)]),
            (10, 20, vec![(0, 1), (1, 8), (8, 10), (10, 17), (17, 20)]),
        ] {
            let batches = Order { farms: (0..all).collect(), healthy }.batches();
            let positions: Vec<_> =
                batches.iter().map(|batch| (batch.positions.start, batch.positions.end)).collect();
            assert_eq!(positions, expected);
            assert!(batches.iter().all(|batch| batch.hedged == (healthy > 0 && batch.positions.start == 0)));
            // The job waits at the farms of the first two batches, or at a farm that is not avoided.
            for batch in &batches {
                let is_needless =
                    batch.positions.start > 1 || healthy > 0 && batch.positions.start >= healthy;
                assert_eq!(batch.is_needless(true), is_needless || healthy == 0, "{batch:?}");
                assert!(!batch.is_needless(false));
            }
        }
    }

    #[test]
    fn a_farm_is_avoided_longer_after_each_failure_until_it_answers() {
        let mut now = Instant::now();
        let mut health = Health::default();
        assert!(!health.is_avoided(now));
        for seconds in [1, 2, 4, 8, 15, 15] {
            let time = Duration::from_secs(seconds);
            assert_eq!(health.failed(now), Some(time));
            assert_eq!(health.failed(now + time / 2), None);
            assert!(health.is_avoided(now + time / 2));
            now += time;
            assert!(!health.is_avoided(now));
        }
        health.answered();
        assert_eq!(health.failed(now), Some(MIN_AVOID_TIME));
    }

    #[test]
    fn farms_that_answer_in_turn_are_several() {
        let start = Instant::now();
        let mut ids = FarmIds::default();
        for id in [None, Some("a"), None] {
            ids.saw(id, start);
            assert_eq!((ids.are_known(), ids.are_several(start)), (id.is_some(), false));
        }
        // A farm that restarts has another name.
        for number in 0..20 {
            for _ in 0..2 {
                ids.saw(Some(&number.to_string()), start);
                assert!(ids.are_known() && !ids.are_several(start));
            }
        }
        for farms in [2, 3, MAX_IDS] {
            let mut ids = FarmIds::default();
            for number in 0..=farms {
                ids.saw(Some(&(number % farms).to_string()), start);
            }
            assert!(ids.are_several(start));
            ids.saw(Some("a"), start);
            assert!(ids.are_several(start));
            assert!(!ids.are_several(start + SHARED_TIME));
        }
    }

    #[test]
    fn queues_are_compared_by_whole_rounds() {
        assert!(Load(99).has_free_slot());
        assert!(!Load::FULL.has_free_slot());
        assert_eq!([Load(175), Load(200), Load(299)].map(Load::rounds), [1, 2, 2]);
    }
}
