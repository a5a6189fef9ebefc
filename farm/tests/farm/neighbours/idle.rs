//! An idle page uses no CPU time, also after a job with timers, animations or workers.

use std::{sync::Arc, time::Duration};

use platen_harness::procfs;

use crate::support::{MAX_WAIT_MS, Shared, farm_process::FarmProcess, html, of, send};

pub(super) async fn test(_: Arc<Shared>) {
    const BUSY: &[(&str, &str)] = &[
        (
            "timers",
            "<script>setInterval(() => { for (let i = 0; i < 1e6; i++); }, 1); (function f() { setTimeout(f) })()</script>",
        ),
        (
            "messages",
            "<script>const c = new MessageChannel; c.port1.onmessage = () => c.port2.postMessage(0); c.port2.postMessage(0)</script>",
        ),
        (
            "frames",
            "<script>(function f() { requestAnimationFrame(f) })(); (function f() { requestIdleCallback(f) })()</script>",
        ),
        (
            "animations",
            "<style>@keyframes k { to { transform: rotate(9turn); color: red } } p { animation: k 1s infinite }</style><p>x<p>y",
        ),
        (
            "web animations",
            "<p id=p>x<script>p.animate({ opacity: [0, 1] }, { duration: 99, iterations: Infinity })</script>",
        ),
        (
            "SMIL",
            "<svg><rect width=9 height=9><animate attributeName=x from=0 to=99 dur=1s repeatCount=indefinite /></rect></svg>",
        ),
        ("refresh", "<meta http-equiv=refresh content='0;url=about:blank'>x"),
        ("slow refresh", "<meta http-equiv=refresh content=1>x"),
        (
            "media",
            "<video autoplay loop muted src='data:video/webm;base64,'></video><audio autoplay loop src='data:audio/wav;base64,UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA='></audio><marquee>x</marquee>",
        ),
        (
            "sound",
            "<script>const a = new AudioContext(), t = a.createOscillator(); t.connect(a.destination); t.start(); a.createScriptProcessor?.(256).connect(a.destination)</script>",
        ),
        (
            "workers",
            "<script>for (let i = 0; i < 3; i++) new Worker('data:text/javascript,for (;;);')</script>",
        ),
        (
            "shared worker",
            "<script>try { new SharedWorker('data:text/javascript,for (;;);') } catch {}</script>",
        ),
        (
            "graphics",
            "<canvas id=c><script>const g = c.getContext('webgl'); (function f() { g?.clear(g.COLOR_BUFFER_BIT); requestAnimationFrame(f) })()</script>",
        ),
        (
            "picture",
            "<img src='data:image/gif;base64,R0lGODlhAQABAIAAAP///wAAACH/C05FVFNDQVBFMi4wAwEAAAAh+QQFAQAAACwAAAAAAQABAAACAkQBACH5BAUBAAAALAAAAAABAAEAAAICRAEAOw=='>",
        ),
        ("caret", "<input autofocus><progress></progress><input type=text autofocus>"),
    ];
    let farm = FarmProcess::start(&["--browsers", "1"]).await;
    let mut baseline = Duration::ZERO;
    for (name, page) in std::iter::once(&("nothing", "<p>x")).chain(BUSY) {
        // The page of the second job is kept.
        for _ in 0..2 {
            let (status, body) = send(&farm, &of(name, html(page)), MAX_WAIT_MS).await;
            assert_eq!(status, 200, "{name}: {}", String::from_utf8_lossy(&body));
        }
        // The CPU time of a second, until the spare page is open and the used one is reset or closed.
        let mut spent = Vec::new();
        let limit = baseline + Duration::from_millis(50);
        while spent.last().is_none_or(|last| *last > limit) {
            assert!(spent.len() < 20, "{name}: {spent:?} a second, and {baseline:?} after nothing");
            spent.push(cpu_of_a_second(&farm).await);
            if *name == "nothing" {
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
