//! Pages whose events are large, or many: the farm holds little of them.

use std::sync::Arc;

use platen_harness::procfs;

use crate::{
    Test,
    support::{GREEN, MAX_WAIT_MS, Shared, colour, farm_process::FarmProcess, html, send, waiting},
};

pub(crate) const TESTS: &[Test] =
    &[("the events of a page do not fill the memory of the farm", |s| Box::pin(memory(s)))];

/// Less than two copies of one of the texts below; a farm needs about ten for a picture.
const MAX_GROWTH_BYTES: u64 = 60_000_000;

async fn memory(_: Arc<Shared>) {
    let farm = FarmProcess::start(&["--browsers", "1"]).await;
    let (status, _) = send(&farm, &html("x"), MAX_WAIT_MS).await;
    assert_eq!(status, 200);
    for (name, script) in [
        ("fetch", "fetch('data:,' + text).then(green)"),
        ("image", "Object.assign(new Image(), { src: 'data:image/png,' + text, onerror: green })"),
        (
            "style sheet",
            "document.head.append(Object.assign(document.createElement('link'), \
            { rel: 'stylesheet', href: 'data:text/css,' + text, onload: green, onerror: green }))",
        ),
        ("dialog", "alert(text); green()"),
        ("request headers", "fetch('data:,', { headers: { x: text } }).then(green, green)"),
        ("error", "setTimeout(green); throw text"),
        (
            "frames",
            "let n = 0; const frame = document.createElement('iframe'); document.body.append(frame); \
            frame.onload = () => { if (n++ < 20) frame.src = 'data:text/html,<!--' + n + text.slice(0, 2e6) }; \
            onload = () => setTimeout(() => { frame.src = 'about:blank'; green() })",
        ),
        (
            "many frames",
            "for (let n = 0; n < 8; ++n) document.body.append(Object.assign(\
            document.createElement('iframe'), { src: 'data:text/html,<!--' + n + text.slice(0, 2e6) })); green()",
        ),
    ] {
        procfs::reset_peak_memory(farm.pid()).unwrap();
        let before = procfs::memory(farm.pid(), "VmHWM").unwrap();
        let page = format!(
            "<!doctype html><html style='background:red'><body><script>const text = 'x'.repeat(4e7);\
             const green = () => document.documentElement.style.background = 'green';{script}</script>"
        );
        let (status, file) = send(&farm, &waiting(html(&page), 500.0), MAX_WAIT_MS).await;
        assert_eq!(status, 200, "{name}: {}", String::from_utf8_lossy(&file));
        assert_eq!(colour(&file), GREEN, "{name}");
        let growth = procfs::memory(farm.pid(), "VmHWM").unwrap() - before;
        assert!(growth < MAX_GROWTH_BYTES, "{name}: {growth} bytes");
    }
    farm.end().await;
}
