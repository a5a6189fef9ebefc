//! To which flow a request belongs. The flows take turns for places in the server, and for the database.
//!
//! Invariant: credentials have a flow of their own only after a component has accepted them. Until then a request
//! shares the flow of its address, so that made-up keys do not multiply the turns of a client.

use std::collections::HashSet;

use http::{HeaderMap, HeaderName, header};
use parking_lot::Mutex;

use super::client_address::ClientAddress;
use crate::db::Flow;

/// In every response to a valid key.
const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
/// Of each of two generations.
const MAX_ACCEPTED: usize = 10_000;

#[derive(Default)]
pub(super) struct Flows(Mutex<Accepted>);

/// The flows of accepted credentials; the older generation is forgotten when the newer one is full.
#[derive(Default)]
struct Accepted {
    newer: HashSet<Flow>,
    older: HashSet<Flow>,
}

/// The flows that a request may belong to.
#[derive(Clone, Copy)]
pub(super) struct Candidates {
    credentials: Option<Flow>,
    address: Flow,
}

impl Candidates {
    pub(super) fn of(request: &HeaderMap, address: ClientAddress) -> Self {
        Self {
            credentials: request.get(header::AUTHORIZATION).map(|value| Flow::of(("key", value.as_bytes()))),
            address: Flow::of(("address", address)),
        }
    }

    /// The flow of a request whose credentials are valid.
    pub(super) fn credentials(self) -> Flow {
        self.credentials.unwrap_or(self.address)
    }
}

impl Flows {
    pub(super) fn flow(&self, of: Candidates) -> Flow {
        let accepted = self.0.lock();
        let is_accepted = |flow: &Flow| accepted.newer.contains(flow) || accepted.older.contains(flow);
        of.credentials.filter(is_accepted).unwrap_or(of.address)
    }

    /// Records that the credentials are valid if the response says so, and returns whether it does.
    pub(super) fn record(&self, of: Candidates, response: &HeaderMap) -> bool {
        let Some(flow) = of.credentials.filter(|_| response.contains_key(RATE_LIMIT)) else { return false };
        let mut accepted = self.0.lock();
        if accepted.newer.len() >= MAX_ACCEPTED {
            accepted.older = std::mem::take(&mut accepted.newer);
        }
        accepted.newer.insert(flow);
        true
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    fn request(key: &str, address: &str) -> Candidates {
        let headers = HeaderMap::from_iter([(header::AUTHORIZATION, key.parse().unwrap())]);
        Candidates::of(&headers, address.parse::<IpAddr>().unwrap().into())
    }

    #[test]
    fn only_accepted_keys_have_a_flow_of_their_own() {
        let flows = Flows::default();
        let (good, made_up) = (request("Bearer a", "192.0.2.1"), request("Bearer b", "192.0.2.1"));
        assert_eq!(flows.flow(good), flows.flow(made_up));
        assert_ne!(flows.flow(good), flows.flow(request("Bearer a", "192.0.2.2")));
        assert!(!flows.record(made_up, &HeaderMap::new()));
        assert!(flows.record(good, &HeaderMap::from_iter([(RATE_LIMIT, "x".parse().unwrap())])));
        assert_ne!(flows.flow(good), flows.flow(made_up));
        // Wherever it is used.
        assert_eq!(flows.flow(good), flows.flow(request("Bearer a", "192.0.2.2")));
        assert_eq!(flows.flow(made_up), flows.flow(request("Bearer c", "192.0.2.1")));
    }

    #[test]
    fn the_number_of_accepted_keys_is_bounded() {
        let flows = Flows::default();
        let response = HeaderMap::from_iter([(RATE_LIMIT, "x".parse().unwrap())]);
        for number in 0..=MAX_ACCEPTED {
            flows.record(request(&format!("Bearer {number}"), "192.0.2.1"), &response);
        }
        let accepted = flows.0.lock();
        assert_eq!((accepted.newer.len(), accepted.older.len()), (1, MAX_ACCEPTED));
    }
}
