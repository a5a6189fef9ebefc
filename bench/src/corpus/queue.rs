//! Runs jobs with a fixed concurrency, in a random order that depends only on the seed.

use futures::{StreamExt as _, stream};
use rand::{SeedableRng as _, rngs::StdRng, seq::SliceRandom as _};

/// The numbers below `count` in a random order.
pub(super) fn shuffled(count: usize, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    order.shuffle(&mut StdRng::seed_from_u64(seed));
    order
}

/// Runs `work` for the numbers in `order` and returns the outcomes, sorted by number.
pub(super) async fn run<T, F>(order: &[usize], concurrency: usize, work: impl Fn(usize) -> F) -> Vec<T>
where
    F: Future<Output = T>,
{
    let work = &work;
    let jobs = order.iter().map(|&number| async move { (number, work(number).await) });
    let mut ended = stream::iter(jobs).buffer_unordered(concurrency);
    let mut outcomes = Vec::new();
    while let Some(outcome) = ended.next().await {
        outcomes.push(outcome);
        if outcomes.len().is_multiple_of(100) || outcomes.len() == order.len() {
            eprintln!("  {} of {}", outcomes.len(), order.len());
        }
    }
    outcomes.sort_by_key(|(number, _)| *number);
    outcomes.into_iter().map(|(_, outcome)| outcome).collect()
}
