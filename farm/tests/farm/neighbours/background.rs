//! A heavy job is paused while other jobs begin, and neither it nor they are the worse for it.

use std::sync::Arc;

use super::{PATIENT, numbered, of, send, start};
use crate::support::{Shared, busy_loops::BusyLoops, colour, html};

/// Pauses to wait for.
const PAUSES: u64 = 5;

pub(super) async fn test(_: Arc<Shared>) {
    let program = start(&["--browsers", "2"]).await;
    program.until("platen_farm_browsers", 2).await;
    let busy = BusyLoops::start();
    // It is heavy, takes a second of its own time, and shows how far it came.
    let page = "<!doctype html><script>const end = performance.now() + 1500; while (performance.now() < end);\
        setTimeout(() => document.documentElement.style.background = 'lime', 700)</script>";
    let mut heavy = of("heavy", html(page));
    heavy.wait_for_timeout = 1_000.0.try_into().unwrap();
    let others = async {
        let mut number = 0;
        while program.metric("platen_farm_background_pauses_total").await < PAUSES {
            let (job, wanted) = numbered(number);
            let (status, file) = send(&program, &of("good", job), PATIENT).await;
            assert_eq!((status, colour(&file)), (200, wanted), "{number}");
            number += 1;
        }
    };
    let heavy_ones = async {
        loop {
            let (status, file) = send(&program, &heavy, PATIENT).await;
            assert_eq!((status, colour(&file)), (200, [0, 255, 0]));
        }
    };
    tokio::select! {
        () = heavy_ones => {}
        () = others => {}
    }
    drop(busy);
    let (job, wanted) = numbered(7);
    let (status, file) = send(&program, &of("heavy", job), PATIENT).await;
    assert_eq!((status, colour(&file)), (200, wanted));
    program.end().await;
}
