//! Which connections are closed to make space for others.

use std::{
    cmp::Reverse,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::time::Instant;

use super::{Activity, Connection, Open};
use crate::server::client_address::ClientAddress;

/// A body that arrives for longer may be given up for a new connection.
pub(super) const SLOW_BODY_AGE: Duration = Duration::from_secs(10);

/// A new connection is rather not closed to make space for another one while its first request may still be on its way,
/// and not at all for a shorter time: most clients send the request right after the handshake.
const NEW_TIME: Duration = Duration::from_millis(500);
pub(super) const MIN_NEW_TIME: Duration = Duration::from_millis(250);

/// After a request with a valid key, the next one is probably on its way for this time.
const BETWEEN_REQUESTS: Duration = Duration::from_secs(2);

/// Whether the client of a connection probably needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Need {
    Unlikely,
    /// The first request may be on its way.
    New,
    /// It sends one request with a valid key after the other.
    BetweenRequests,
    /// It sends a body slowly.
    Body,
}

/// The smallest is closed first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EvictionOrder {
    pub(super) need: Need,
    /// Connections of its address.
    count: Reverse<usize>,
    since: Instant,
    id: u64,
}

impl Open {
    /// The connections that may be closed, up to a number, in their order.
    pub(super) fn most_dispensable(
        &self,
        number: usize,
        only: Option<ClientAddress>,
    ) -> Vec<(EvictionOrder, Arc<Connection>)> {
        let now = Instant::now();
        let of_address = |(address, _): &(&ClientAddress, &_)| only.is_none_or(|only| only == **address);
        let all = self.by_address.iter().filter(of_address).flat_map(|(_, connections)| {
            connections.values().map(move |connection| (connections.len(), connection))
        });
        let mut candidates: Vec<(EvictionOrder, &Arc<Connection>)> = all
            .filter_map(|(count, connection)| {
                let (activity, since) = *connection.activity.lock();
                let age = now.duration_since(since);
                let has_valid_key = || connection.has_valid_key.load(Ordering::Relaxed);
                let need = match activity {
                    Activity::Idle if age < BETWEEN_REQUESTS && has_valid_key() => Need::BetweenRequests,
                    Activity::Idle => Need::Unlikely,
                    Activity::New if only.is_some() || age >= NEW_TIME => Need::Unlikely,
                    // Without file descriptors there are few connections, and the wait for one of them is short.
                    Activity::New if age >= MIN_NEW_TIME && self.lowered.is_none() => Need::New,
                    Activity::ReceivingBody if age > SLOW_BODY_AGE => Need::Body,
                    _ => return None,
                };
                let count = Reverse(count);
                Some((EvictionOrder { need, count, since, id: connection.id }, connection))
            })
            .collect();
        if candidates.len() > number {
            candidates.select_nth_unstable_by_key(number - 1, |(order, _)| *order);
            candidates.truncate(number);
        }
        candidates.sort_unstable_by_key(|(order, _)| *order);
        candidates.into_iter().map(|(order, connection)| (order, Arc::clone(connection))).collect()
    }
}
