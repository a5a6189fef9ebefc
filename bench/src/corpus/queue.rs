//! So many jobs at once, in a random order that a seed gives again.

use std::{
    io::{IsTerminal as _, Write as _, stderr},
    sync::atomic::{AtomicUsize, Ordering},
};

use futures::{StreamExt as _, stream};
use rand::{SeedableRng as _, rngs::StdRng, seq::SliceRandom as _};

/// The numbers below `count` in random order.
pub(super) fn shuffled(count: usize, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    order.shuffle(&mut StdRng::seed_from_u64(seed));
    order
}

/// What `work` gives for each number, in the order of the numbers, however they were ordered.
pub(super) async fn all<T, F>(order: &[usize], concurrency: usize, work: impl Fn(usize) -> F) -> Vec<T>
where
    F: Future<Output = T>,
{
    let done = AtomicUsize::new(0);
    let (done, work) = (&done, &work);
    let jobs = order.iter().map(|&number| async move {
        let outcome = work(number).await;
        progress(done.fetch_add(1, Ordering::Relaxed) + 1, order.len());
        (number, outcome)
    });
    let mut outcomes: Vec<_> = stream::iter(jobs).buffer_unordered(concurrency).collect().await;
    outcomes.sort_by_key(|(number, _)| *number);
    outcomes.into_iter().map(|(_, outcome)| outcome).collect()
}

fn progress(done: usize, of: usize) {
    if stderr().is_terminal() {
        let end = if done == of { "\n" } else { "" };
        let _ = write!(stderr(), "\r  {done} of {of}{end}");
    } else if done.is_multiple_of(100) || done == of {
        eprintln!("  {done} of {of}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn outcomes_are_in_the_order_of_the_numbers() {
        let order = shuffled(50, 1);
        assert_ne!(order, (0..50).collect::<Vec<_>>());
        assert_eq!(order, shuffled(50, 1));
        let doubled = all(&order, 4, async |number| number * 2).await;
        assert_eq!(doubled, (0..50).map(|number| number * 2).collect::<Vec<_>>());
    }
}
