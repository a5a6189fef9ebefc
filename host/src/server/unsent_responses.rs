//! Limits the bytes of the files that wait for slow readers. A file stays in the memory of the farm until all of it has
//! been sent.
//!
//! Invariant: when the limit is exceeded, slow transfers are aborted: first those of the address with the most bytes, the
//! oldest one first. A transfer has [`MIN_TRANSFER_TIME`] in any case.

use std::{
    cmp::Reverse,
    collections::HashMap,
    sync::{Arc, Weak},
    time::Duration,
};

use parking_lot::Mutex;
use platen_program::RepeatedWarning;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::client_address::ClientAddress;

const MAX_UNSENT_BYTES: u64 = 1024 * 1024 * 1024;
/// The largest files take less to a client with 50 Mbit/s.
const MIN_TRANSFER_TIME: Duration = Duration::from_secs(10);
/// Smaller responses are not counted.
const MIN_COUNTED_BYTES: u64 = 256 * 1024;

/// All transfers.
#[derive(Default)]
pub(super) struct UnsentResponses(Mutex<Transfers>);

#[derive(Default)]
struct Transfers {
    bytes: u64,
    next_id: u64,
    by_id: HashMap<u64, Transfer>,
    aborted: RepeatedWarning,
}

struct Transfer {
    bytes: u64,
    client: ClientAddress,
    began: Instant,
    abort: CancellationToken,
}

impl UnsentResponses {
    /// Counts a response until the guard is dropped, and aborts other ones if there are too many bytes.
    pub(super) fn begin(
        self: &Arc<Self>,
        bytes: u64,
        client: ClientAddress,
        abort: &CancellationToken,
    ) -> Option<UnsentResponse> {
        if bytes < MIN_COUNTED_BYTES {
            return None;
        }
        let mut transfers = self.0.lock();
        let id = transfers.next_id;
        transfers.next_id += 1;
        transfers.bytes += bytes;
        transfers.by_id.insert(id, Transfer { bytes, client, began: Instant::now(), abort: abort.clone() });
        while transfers.bytes > MAX_UNSENT_BYTES
            && let Some(slowest) = transfers.slowest()
        {
            if let Some(count) = transfers.aborted.record() {
                tracing::warn!(count, "aborting slow transfers: too many bytes wait for clients");
            }
            if let Some(transfer) = transfers.remove(slowest) {
                transfer.abort.cancel();
            }
        }
        Some(UnsentResponse { transfers: Arc::downgrade(self), id })
    }
}

impl Transfers {
    fn slowest(&self) -> Option<u64> {
        let mut by_client: HashMap<ClientAddress, u64> = HashMap::new();
        for transfer in self.by_id.values() {
            *by_client.entry(transfer.client).or_default() += transfer.bytes;
        }
        let slow = self.by_id.iter().filter(|(_, transfer)| transfer.began.elapsed() >= MIN_TRANSFER_TIME);
        let order = |transfer: &Transfer| (by_client[&transfer.client], Reverse(transfer.began));
        slow.max_by_key(|(_, transfer)| order(transfer)).map(|(id, _)| *id)
    }

    fn remove(&mut self, id: u64) -> Option<Transfer> {
        let removed = self.by_id.remove(&id);
        self.bytes -= removed.as_ref().map_or(0, |transfer| transfer.bytes);
        removed
    }
}

/// A response that is being sent.
pub(super) struct UnsentResponse {
    transfers: Weak<UnsentResponses>,
    id: u64,
}

impl Drop for UnsentResponse {
    fn drop(&mut self) {
        if let Some(transfers) = self.transfers.upgrade() {
            transfers.0.lock().remove(self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use tokio::time::sleep;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn slow_transfers_of_the_address_with_the_most_bytes_are_aborted() {
        let unsent = Arc::new(UnsentResponses::default());
        let tokens: [CancellationToken; 4] = Default::default();
        let begin = |index: usize, last: u8| {
            unsent.begin(MAX_UNSENT_BYTES / 3, IpAddr::from([127, 0, 0, last]).into(), &tokens[index])
        };
        let are_aborted = || tokens.each_ref().map(CancellationToken::is_cancelled);
        let mut transfers = Vec::new();
        for (index, last) in [1, 2, 2].into_iter().enumerate() {
            transfers.push(begin(index, last));
            sleep(Duration::from_secs(4)).await;
        }
        transfers.push(begin(3, 3));
        // Of the address with two, the other one has been sent for four seconds only.
        assert_eq!(are_aborted(), [true, false, false, false]);
        sleep(Duration::from_secs(8)).await;
        transfers.push(begin(3, 3));
        assert_eq!(are_aborted(), [true, true, false, false]);
        drop(transfers);
        assert_eq!(unsent.0.lock().bytes, 0);
        assert!(unsent.0.lock().by_id.is_empty());
        let small = unsent.begin(MIN_COUNTED_BYTES - 1, IpAddr::from([127, 0, 0, 1]).into(), &tokens[2]);
        assert!(small.is_none());
    }
}
