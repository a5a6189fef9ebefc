//! An idle page uses no CPU time, also after a job with timers, animations or workers.

use std::{sync::Arc, time::Duration};

use platen_harness::procfs;

use crate::support::{Shared, farm_process::FarmProcess, html, of, pages};

pub(super) async fn test(_: Arc<Shared>) {
    let farm = FarmProcess::start(&["--browsers", "1"]).await;
    let mut baseline = Duration::ZERO;
    for (name, page) in std::iter::once(("nothing", "<p>x")).chain(pages(include_str!("busy.html"))) {
        // The page of the second job is kept.
        for _ in 0..2 {
            farm.file(&of(name, html(page))).await;
        }
        // The CPU time of a second, until the spare page is open and the used one is reset or closed.
        let mut spent = Vec::new();
        let limit = baseline + Duration::from_millis(50);
        while spent.last().is_none_or(|last| *last > limit) {
            assert!(spent.len() < 20, "{name}: {spent:?} a second, and {baseline:?} after nothing");
            spent.push(cpu_of_a_second(&farm).await);
            if name == "nothing" {
                baseline = spent.iter().min().copied().unwrap_or_default();
            }
        }
    }
    farm.end().await;
}

/// CPU time that the processes of a farm use in a second.
async fn cpu_of_a_second(farm: &FarmProcess) -> Duration {
    let before = procfs::cpu_times(farm.pid());
    tokio::time::sleep(Duration::from_secs(1)).await;
    let after = procfs::cpu_times(farm.pid()).into_iter();
    after.map(|(pid, time)| time.saturating_sub(before.get(&pid).copied().unwrap_or_default())).sum()
}
