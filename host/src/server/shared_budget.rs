//! An amount that requests may hold in all, and those of one owner.

use std::{
    collections::{HashMap, hash_map::Entry},
    hash::Hash,
    sync::Arc,
};

use parking_lot::Mutex;

use super::connections::Full;

/// A budget of bytes, or of something else that is counted.
pub(super) struct SharedBudget<O> {
    max: u64,
    max_per_owner: u64,
    held: Mutex<Held<O>>,
}

struct Held<O> {
    total: u64,
    by_owner: HashMap<O, u64>,
}

impl<O: Copy + Eq + Hash> SharedBudget<O> {
    /// Owners are not limited if `max_per_owner` is `None`.
    pub(super) fn new(max: u64, max_per_owner: Option<u64>) -> Arc<Self> {
        let max_per_owner = max_per_owner.unwrap_or(u64::MAX);
        Arc::new(Self { max, max_per_owner, held: Mutex::new(Held { total: 0, by_owner: HashMap::new() }) })
    }

    /// An empty part of the budget for a request.
    pub(super) fn part(self: &Arc<Self>, owner: O) -> BudgetPart<O> {
        BudgetPart { budget: Arc::clone(self), owner, amount: 0 }
    }

    fn take(&self, owner: O, amount: u64) -> Result<(), Full> {
        let mut held = self.held.lock();
        let own = held.by_owner.get(&owner).copied().unwrap_or(0) + amount;
        if own > self.max_per_owner {
            return Err(Full::Share);
        }
        if held.total + amount > self.max {
            return Err(Full::Total);
        }
        held.total += amount;
        held.by_owner.insert(owner, own);
        Ok(())
    }

    fn give_back(&self, owner: O, amount: u64) {
        let mut held = self.held.lock();
        held.total -= amount;
        if let Entry::Occupied(mut own) = held.by_owner.entry(owner) {
            *own.get_mut() -= amount;
            if *own.get() == 0 {
                own.remove();
            }
        }
    }
}

/// What one request holds; returned when this is dropped.
pub(super) struct BudgetPart<O: Copy + Eq + Hash> {
    budget: Arc<SharedBudget<O>>,
    owner: O,
    amount: u64,
}

impl<O: Copy + Eq + Hash> BudgetPart<O> {
    /// Takes more. The error is that of a budget without as much left.
    pub(super) fn grow(&mut self, amount: u64) -> Result<(), Full> {
        self.budget.take(self.owner, amount)?;
        self.amount += amount;
        Ok(())
    }
}

impl<O: Copy + Eq + Hash> Drop for BudgetPart<O> {
    fn drop(&mut self) {
        if self.amount > 0 {
            self.budget.give_back(self.owner, self.amount);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_holds_at_most_its_share_and_returns_it() {
        let budget = SharedBudget::new(40, Some(10));
        let mut first = budget.part(1);
        first.grow(10).unwrap();
        assert_eq!(first.grow(1), Err(Full::Share));
        budget.part(1).grow(1).unwrap_err();
        let mut others: Vec<BudgetPart<u8>> = (2..5).map(|owner| budget.part(owner)).collect();
        for part in &mut others {
            part.grow(10).unwrap();
        }
        assert_eq!(budget.part(5).grow(1), Err(Full::Total));
        drop(first);
        budget.part(5).grow(1).unwrap();
        drop(others);
        assert_eq!(budget.held.lock().total, 0);
        assert!(budget.held.lock().by_owner.is_empty());
    }

    #[test]
    fn one_owner_holds_all_if_owners_are_not_limited() {
        let budget = SharedBudget::new(40, None);
        let mut part = budget.part(1);
        part.grow(40).unwrap();
        part.grow(1).unwrap_err();
    }
}
