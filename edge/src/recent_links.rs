//! What addresses of links were verified with a moment ago, so that the next one costs no read. It is kept in the memory of the
//! instance, because it has secrets, for as long as the operator lets attempts be claimed ahead.
//!
//! Invariant: what is remembered decides about signatures, formats and names of values only. The claim that follows finds
//! whether the link, its account and its template are still good.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use platen_shared::link::LinkId;

/// Each has some hundred bytes, and up to 100 KB where a template has a thousand placeholders.
const MAX_LINKS: usize = 128;

/// The links of the last addresses, with what each one is verified with.
#[derive(Debug)]
pub struct RecentLinks<L>(HashMap<LinkId, (L, Instant)>);

impl<L> Default for RecentLinks<L> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<L: Clone> RecentLinks<L> {
    /// Remembers a link that was read at this instant. It has no effect where so many others are remembered that there is no place.
    pub fn insert(&mut self, id: &LinkId, link: L, read: Instant, time: Duration) {
        if self.0.len() >= MAX_LINKS {
            self.0.retain(|_, (_, until)| *until > read);
        }
        if !time.is_zero() && (self.0.len() < MAX_LINKS || self.0.contains_key(id)) {
            self.0.insert(id.clone(), (link, read + time));
        }
    }

    /// The link, if it was read within its time.
    #[must_use]
    pub fn get(&self, id: &LinkId, now: Instant) -> Option<L> {
        self.0.get(id).filter(|(_, until)| *until > now).map(|(link, _)| link.clone())
    }

    /// Forgets a link that is not there any more, or not as it was.
    pub fn remove(&mut self, id: &LinkId) {
        self.0.remove(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_remembered_for_its_time() {
        let (now, second) = (Instant::now(), Duration::from_secs(1));
        // Bytes are taken modulo 62.
        let id = |number: u8| {
            LinkId::from_random(std::array::from_fn(|at| if at == 0 { number / 62 } else { number % 62 }))
        };
        let mut links = RecentLinks::default();
        links.insert(&id(0), 'a', now, Duration::ZERO);
        assert_eq!(links.get(&id(0), now), None);
        for number in 0..=128 {
            links.insert(&id(number), 'b', now, 5 * second);
        }
        links.insert(&id(1), 'c', now, 5 * second);
        assert_eq!([0, 1, 128].map(|it| links.get(&id(it), now + 4 * second)), [Some('b'), Some('c'), None]);
        assert_eq!(links.get(&id(0), now + 5 * second), None);
        links.remove(&id(1));
        assert_eq!(links.get(&id(1), now), None);
        links.insert(&id(128), 'd', now + 5 * second, second);
        assert_eq!(links.get(&id(128), now + 5 * second), Some('d'));
    }
}
