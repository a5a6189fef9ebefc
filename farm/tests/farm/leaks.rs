//! A job leaves nothing for later jobs: neither for those of the same account, which reuse its page, nor for those of
//! another account, which get another page.

use std::sync::Arc;

use crate::support::{
    MAX_WAIT_MS, Shared, farm_process::FarmProcess, green_if, html, of, pages, send, url, viewport, waiting,
};

tests! {
    "a reused page shows nothing of its last job" => reused,
    "a page that has used an origin, a worker or a socket is not reused" => tainted,
    "a page is replaced after its number of jobs" => replaced,
    "a page is not reused after a failure" => failed,
    "a picture never shows an earlier page" => pictured,
    "the least recently used account loses its page" => crowded,
}

/// Green if nothing of an earlier job is found, during the wait of the job too.
pub(crate) const PROBE: &str = include_str!("leaks/probe.html");

/// Pages that leave everything that they can, without a request.
pub(crate) const MESSY: &str = include_str!("leaks/messy.html");

/// Checks that the next page of an account has nothing of an earlier one.
async fn is_clean(farm: &FarmProcess, account: &str) {
    farm.expect_green(&of(account, waiting(html(PROBE), 200.0))).await;
}

async fn reused(_: Arc<Shared>) {
    let farm = FarmProcess::start(&["--browsers", "1"]).await;
    // A page is kept from the second job on.
    farm.file(&of("one", html("x"))).await;
    for (name, page) in pages(MESSY) {
        let before = farm.warm_pages().await;
        let messy = of("one", html(page));
        farm.file(&messy).await;
        is_clean(&farm, "one").await;
        // The page is reused unless it could not be proven clean.
        let after = farm.warm_pages().await - before;
        assert!(
            after == 1 || ["scale", "frames", "stop", "moves", "powers"].contains(&name),
            "{name}: {after}"
        );
        is_clean(&farm, "two").await;
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
            "<script>new Worker('data:text/javascript,const c = new BroadcastChannel(`leak`); setInterval(() => c.postMessage(1), 5)')</script>",
        ),
        html(&format!("<script>location = '{cookie}'</script>")),
        url(&site.at("/speculates")),
    ];
    for (number, page) in pages.into_iter().enumerate() {
        let page = waiting(page, 200.0);
        for account in ["one", "two"] {
            farm.file(&of("one", page.clone())).await;
            let before = farm.warm_pages().await;
            is_clean(&farm, account).await;
            assert!(account == "two" || farm.warm_pages().await == before, "page {number}");
            farm.expect_green(&of(account, url(&cookie))).await;
        }
    }
    farm.end().await;
}

async fn replaced(_: Arc<Shared>) {
    let farm = FarmProcess::start(&["--browsers", "1"]).await;
    for _ in 0..253 {
        farm.file(&of("one", html("x"))).await;
    }
    // The first job leaves no page, because a second job is not expected, and the page of the second one is replaced after
    // its 250th job.
    assert_eq!(farm.warm_pages().await, 250);
    farm.end().await;
}

async fn failed(_: Arc<Shared>) {
    let farm = FarmProcess::start(&["--browsers", "1"]).await;
    let pages = ["<script>while (true);</script>", "<script>onpagehide = () => { while (true); }</script>"];
    for (account, page) in ["one", "two"].into_iter().zip(pages) {
        // The page of an account's second job is kept unless the job fails.
        send(&farm, &of(account, html("x")), MAX_WAIT_MS).await;
        send(&farm, &of(account, html(page)), 2_000).await;
        let before = farm.warm_pages().await;
        is_clean(&farm, account).await;
        assert_eq!(farm.warm_pages().await, before, "{page}");
    }
    farm.end().await;
}

async fn pictured(shared: Arc<Shared>) {
    for round in 0..30_u32 {
        // A reused page or a new one, of the same size or another.
        let account = if round % 3 == 0 { format!("new {round}") } else { "same".to_owned() };
        let mut job = of(&account, html(&green_if("true")));
        job.options.viewport = viewport(320 + round / 2 % 3 * 100, 240, 1.0);
        tokio::join!(shared.expect_green(&job), shared.expect_green(&job));
    }
}

async fn crowded(_: Arc<Shared>) {
    let farm = FarmProcess::start(&["--browsers", "1", "--warm-memory", "64"]).await;
    for (account, expected) in
        [("a", 0), ("b", 0), ("a", 0), ("b", 0), ("a", 1), ("c", 1), ("c", 1), ("b", 1), ("c", 2), ("a", 2)]
    {
        farm.file(&of(account, html("x"))).await;
        assert_eq!(farm.warm_pages().await, expected, "{account}");
    }
    farm.end().await;
}
