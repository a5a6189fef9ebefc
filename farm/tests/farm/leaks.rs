//! A job leaves nothing for later jobs: neither for those of the same account, which reuse its page, nor for those of
//! another account, which get another page.

use std::sync::Arc;

use platen_shared::job::RenderJob;

use crate::{
    Test,
    support::{
        GREEN, MAX_WAIT_MS, Shared, colour, farm_process::FarmProcess, green_if, html, middle, of, send, url,
        viewport, waiting,
    },
};

pub(crate) const TESTS: &[Test] = &[
    ("a reused page shows nothing of its last job", |s| Box::pin(reused(s))),
    ("a page that has used an origin, a worker or a socket is not reused", |s| Box::pin(tainted(s))),
    ("a page is replaced after its number of jobs", |s| Box::pin(replaced(s))),
    ("a page is not reused after a failure", |s| Box::pin(failed(s))),
    ("a picture never shows an earlier page", |s| Box::pin(pictured(s))),
    ("the least recently used account loses its page", |s| Box::pin(crowded(s))),
];

/// Green if nothing of an earlier job is found, during the wait of the job too.
const PROBE: &str = "<!doctype html><html style='background:red'><body style='margin:0'><script>
    const constant = 1; let variable = 2; class Class {}
    const red = () => { document.documentElement.style.background = 'red'; alarm = true };
    var alarm = false;
    new BroadcastChannel('leak').onmessage = red;
    onmessage = onhashchange = onpopstate = red;
    const attempt = look => { try { return look() } catch { return undefined } };
    const clean = [
        typeof leak === 'undefined', name === '', history.length === 1, !history.state, !location.hash,
        document.designMode === 'off', document.title === '', document.referrer === '', !opener,
        innerWidth === 320 && innerHeight === 240 && devicePixelRatio === 1,
        scrollX === 0 && scrollY === 0, visualViewport.scale === 1,
        !attempt(() => document.cookie), !attempt(() => localStorage.length),
        !attempt(() => sessionStorage.length),
        [1].map(x => x + 1)[0] === 2, ({}).leak === undefined, JSON.parse('1') === 1,
        document.createElement('i').localName === 'i', !document.fonts.check('1px Leak') || !document.fonts.size,
        !customElements.get('leak-leak'), !document.fullscreenElement, !document.adoptedStyleSheets.length,
        frames.length === 0, performance.getEntriesByName('leak').length === 0, performance.now() < 60000,
        getComputedStyle(document.body).getPropertyValue('--leak') === '', !navigator.wakeLock?.leak,
    ];
    if (clean.every(Boolean)) document.documentElement.style.background = 'green';
    else document.title = clean.map((ok, i) => ok ? '' : i).join();
    setTimeout(() => { if (typeof leak !== 'undefined') red() }, 100);
</script>";

/// Pages that leave everything that they can, without a request.
const MESSY: &[(&str, &str)] = &[
    ("globals", "<script>var leak = 1; window.leak2 = leak; const constant = 1; let variable = 1; class Class {}</script>"),
    ("name", "<script>name = 'leak'; document.title = 'leak'</script>"),
    (
        "timers",
        "<script>const f = () => { globalThis.leak = 1; document.documentElement.style.background = 'red' };
         setInterval(f, 5); setTimeout(f, 500); (function g() { requestAnimationFrame(g); f() })();
         (async () => { for (;;) { await new Promise(r => setTimeout(r, 5)); f() } })()</script>",
    ),
    ("history", "<script>history.pushState({ leak: 1 }, '', ''); location.hash = 'leak'; history.pushState(1, '')</script>"),
    (
        "prototypes",
        "<script>Array.prototype.map = () => ['leak']; Object.prototype.leak = 1; JSON.parse = null;
         Document.prototype.createElement = null; window.BroadcastChannel = null</script>",
    ),
    ("channel", "<script>const c = new BroadcastChannel('leak'); setInterval(() => c.postMessage(1), 5)</script>"),
    ("design", "<script>document.designMode = 'on'</script><p contenteditable>leak"),
    ("scroll", "<style>html { height: 9000px; --leak: 1; zoom: 2 }</style><script>scrollTo(0, 4000)</script>"),
    ("scale", "<meta name=viewport content='width=100, initial-scale=3'><script>resizeTo(100, 100)</script>"),
    (
        "farewells",
        "<script>onbeforeunload = e => { e.preventDefault(); return 'stay' };
         onpagehide = onunload = () => { name = 'leak'; alert('leak'); history.pushState(1, '') }</script>",
    ),
    (
        "frames",
        "<iframe srcdoc='<script>parent.name = top.name = \"leak\"; setInterval(() => new BroadcastChannel(`leak`).postMessage(1), 5)</script>'></iframe>
         <iframe src='data:text/html,<script>name = \"leak\"</script>'></iframe>",
    ),
    (
        "elements",
        "<script>customElements.define('leak-leak', class extends HTMLElement {}); performance.mark('leak');
         document.fonts.add(new FontFace('Leak', 'local(Arial)'));
         const sheet = new CSSStyleSheet(); sheet.replaceSync('html { --leak: 1 }'); document.adoptedStyleSheets = [sheet];
         document.documentElement.requestFullscreen().catch(() => {})</script>",
    ),
    (
        "powers",
        "<script>for (const look of [() => localStorage.leak = 1, () => sessionStorage.leak = 1,
         () => document.cookie = 'leak=1', () => indexedDB.open('leak'), () => caches.open('leak'),
         () => new SharedWorker('data:text/javascript,setInterval(() => new BroadcastChannel(`leak`).postMessage(1), 5)'),
         () => navigator.serviceWorker.register('data:text/javascript,1'), () => Notification.requestPermission(),
         () => navigator.geolocation.getCurrentPosition(() => {}), () => open('about:blank', 'leak'),
         () => navigator.locks.request('leak', () => new Promise(() => {}))]) try { look()?.catch?.(() => {}) } catch {}</script>",
    ),
    ("stop", "<script>document.open(); document.write('<script>var leak = 1; name = `leak`<\\/script>')</script>"),
    ("moves", "<script>location = 'about:blank#leak'</script>"),
    ("picture", "<img src='data:image/gif;base64,R0lGODlhAQABAIAAAP///wAAACwAAAAAAQABAAACAkQBADs='><script>var leak = 1</script>"),
    ("sounds", "<script>new AudioContext(); new Audio('data:audio/wav;base64,UklGRg==').play().catch(() => {})</script>"),
];

fn probe() -> RenderJob {
    waiting(html(PROBE), 200.0)
}

async fn is_clean(farm: &FarmProcess, account: &str, after: &str) {
    let response = farm.post(&of(account, probe())).send().await.unwrap();
    assert_eq!(response.status(), 200, "{account} after {after}");
    assert_eq!(colour(&response.bytes().await.unwrap()), GREEN, "{account} after {after}");
}

async fn warm(farm: &FarmProcess) -> u64 {
    farm.metric("platen_farm_pages_total{source=\"warm\"}").await
}

async fn reused(_: Arc<Shared>) {
    let farm = FarmProcess::start(&["--browsers", "1"]).await;
    // A page is kept from the second job on.
    assert_eq!(farm.post(&of("one", html("x"))).send().await.unwrap().status(), 200);
    for (name, page) in MESSY {
        let before = warm(&farm).await;
        let messy = of("one", html(page));
        assert_eq!(farm.post(&messy).send().await.unwrap().status(), 200, "{name}");
        is_clean(&farm, "one", name).await;
        // The page is reused unless it could not be proven clean.
        let after = warm(&farm).await - before;
        assert!(
            after == 1 || ["scale", "frames", "stop", "moves", "powers"].contains(name),
            "{name}: {after}"
        );
        is_clean(&farm, "two", name).await;
    }
    farm.end().await;
}

async fn tainted(shared: Arc<Shared>) {
    let farm = FarmProcess::start(&["--browsers", "1"]).await;
    let site = &shared.site;
    let (cookie, socket) = (site.at("/cookie"), site.at("/green").replace("http", "ws"));
    let pages = [
        url(&cookie),
        html(&format!("<img src='{cookie}'>")),
        html(&format!("<iframe src='{cookie}'></iframe>")),
        html(&format!("<script>fetch('{cookie}', {{ mode: 'no-cors', credentials: 'include' }})</script>")),
        html(&format!("<script>new WebSocket('{socket}')</script>")),
        html(
            "<script>new Worker('data:text/javascript,setInterval(() => new BroadcastChannel(`leak`).postMessage(1), 5)')</script>",
        ),
        html(&format!("<script>location = '{cookie}'</script>")),
        url(&site.at("/speculates")),
    ];
    for (number, page) in pages.into_iter().enumerate() {
        let page = waiting(page, 200.0);
        for account in ["one", "two"] {
            assert_eq!(farm.post(&of("one", page.clone())).send().await.unwrap().status(), 200, "{number}");
            let before = warm(&farm).await;
            is_clean(&farm, account, &format!("page {number}")).await;
            assert!(account == "two" || warm(&farm).await == before, "page {number}");
            let response = farm.post(&of(account, url(&cookie))).send().await.unwrap();
            assert_eq!(colour(&response.bytes().await.unwrap()), GREEN, "{account} after page {number}");
        }
    }
    farm.end().await;
}

async fn replaced(_: Arc<Shared>) {
    let farm = FarmProcess::start(&["--browsers", "1", "--page-jobs", "3"]).await;
    for _ in 0..8 {
        assert_eq!(farm.post(&of("one", html("x"))).send().await.unwrap().status(), 200);
    }
    // The first job leaves no page, because a second job is not expected, and every third page is replaced.
    assert_eq!(warm(&farm).await, 4);
    farm.end().await;
}

async fn failed(_: Arc<Shared>) {
    let farm = FarmProcess::start(&["--browsers", "1"]).await;
    let pages = ["<script>while (true);</script>", "<script>onpagehide = () => { while (true); }</script>"];
    for (account, page) in ["one", "two"].into_iter().zip(pages) {
        // The page of an account's second job is kept unless the job fails.
        send(&farm, &of(account, html("x")), MAX_WAIT_MS).await;
        send(&farm, &of(account, html(page)), 2_000).await;
        let before = warm(&farm).await;
        is_clean(&farm, account, page).await;
        assert_eq!(warm(&farm).await, before, "{page}");
    }
    farm.end().await;
}

async fn pictured(shared: Arc<Shared>) {
    for round in 0..60_u32 {
        // A reused page or a new one, of the same size or another.
        let account = if round % 3 == 0 { format!("new {round}") } else { "same".to_owned() };
        let mut job = of(&account, html(&green_if("true")));
        job.options.viewport = viewport(320 + round / 2 % 3 * 100, 240, 1.0);
        let (one, other) = tokio::join!(shared.render(&job), shared.render(&job));
        for file in [one.unwrap(), other.unwrap()] {
            assert_eq!(middle(&file), GREEN, "round {round}");
        }
    }
}

async fn crowded(_: Arc<Shared>) {
    let farm = FarmProcess::start(&["--browsers", "1", "--warm-pages", "2"]).await;
    for (account, expected) in
        [("a", 0), ("b", 0), ("a", 0), ("b", 0), ("a", 1), ("c", 1), ("c", 1), ("b", 1), ("c", 2), ("a", 2)]
    {
        assert_eq!(farm.post(&of(account, html("x"))).send().await.unwrap().status(), 200);
        assert_eq!(warm(&farm).await, expected, "{account}");
    }
    farm.end().await;
}
