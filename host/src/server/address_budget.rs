//! An amount that requests may hold in all, and those of one client address.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
};

use parking_lot::Mutex;

use super::{client_address::ClientAddress, server_error::ServerError};

/// A budget of bytes, or of something else that is counted.
pub(super) struct AddressBudget {
    max: u64,
    max_per_address: u64,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    total: u64,
    by_address: HashMap<ClientAddress, u64>,
}

impl AddressBudget {
    /// One address may hold a quarter, or all of it if addresses are not limited.
    pub(super) fn new(max: u64, is_limited_per_address: bool) -> Arc<Self> {
        let max_per_address = if is_limited_per_address { max / 4 } else { max };
        Arc::new(Self { max, max_per_address, held: Mutex::default() })
    }

    /// An empty part of the budget for a request.
    pub(super) fn part(self: &Arc<Self>, address: ClientAddress) -> BudgetPart {
        BudgetPart { budget: Arc::clone(self), address, amount: 0 }
    }

    fn take(&self, address: ClientAddress, amount: u64) -> Result<(), ServerError> {
        let mut held = self.held.lock();
        let own = held.by_address.get(&address).copied().unwrap_or(0) + amount;
        if held.total + amount > self.max || own > self.max_per_address {
            return Err(ServerError::TooManyRequests);
        }
        held.total += amount;
        held.by_address.insert(address, own);
        Ok(())
    }

    fn give_back(&self, address: ClientAddress, amount: u64) {
        let mut held = self.held.lock();
        held.total -= amount;
        if let Entry::Occupied(mut own) = held.by_address.entry(address) {
            *own.get_mut() -= amount;
            if *own.get() == 0 {
                own.remove();
            }
        }
    }
}

/// What one request holds; returned when this is dropped.
pub(super) struct BudgetPart {
    budget: Arc<AddressBudget>,
    address: ClientAddress,
    amount: u64,
}

impl BudgetPart {
    /// Takes more. The error is that of a budget without as much left.
    pub(super) fn grow(&mut self, amount: u64) -> Result<(), ServerError> {
        self.budget.take(self.address, amount)?;
        self.amount += amount;
        Ok(())
    }
}

impl Drop for BudgetPart {
    fn drop(&mut self) {
        if self.amount > 0 {
            self.budget.give_back(self.address, self.amount);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> ClientAddress {
        ClientAddress::from(std::net::IpAddr::from([127, 0, 0, last]))
    }

    #[test]
    fn an_address_holds_at_most_a_quarter_and_returns_it() {
        let budget = AddressBudget::new(40, true);
        let mut first = budget.part(address(1));
        first.grow(10).unwrap();
        assert_eq!(first.grow(1), Err(ServerError::TooManyRequests));
        budget.part(address(1)).grow(1).unwrap_err();
        let mut others: Vec<BudgetPart> = (2..5).map(|last| budget.part(address(last))).collect();
        for part in &mut others {
            part.grow(10).unwrap();
        }
        budget.part(address(5)).grow(1).unwrap_err();
        drop(first);
        budget.part(address(5)).grow(1).unwrap();
        drop(others);
        assert_eq!(budget.held.lock().total, 0);
        assert!(budget.held.lock().by_address.is_empty());
    }

    #[test]
    fn one_address_holds_all_if_addresses_are_not_limited() {
        let budget = AddressBudget::new(40, false);
        let mut part = budget.part(address(1));
        part.grow(40).unwrap();
        part.grow(1).unwrap_err();
    }
}
