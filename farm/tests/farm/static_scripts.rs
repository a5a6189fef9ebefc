//! Waits of pages whose scripts have built the document: skipped if no script can run again, and if one can, its change
//! is in the file.

use std::sync::Arc;

use platen_shared::{format::WaitUntil, job::RenderJob};

use crate::support::{
    GREEN, GREEN_PAGE, Shared, colour, farm_process::FarmProcess, html, pages, pdf, picture, site::Site, to,
    url, waiting,
};

tests! {
    "a page changes within its wait, whatever its scripts have left to happen" => changing,
    "a wait is skipped if no script of the page can run again" => skipped,
}

/// Longer than any page takes to change, in milliseconds.
const WAIT_MS: f64 = 2_000.0;

/// The job of a page after its beginning, which has a function that makes it green.
fn job(page: &str) -> RenderJob {
    let page = format!(
        "<!doctype html><html style='background:red'><script>\
         function done() {{ document.documentElement.style.background = 'green' }}</script>{page}"
    );
    waiting(html(&page), WAIT_MS)
}

async fn changing(shared: Arc<Shared>) {
    let farm = FarmProcess::start(&["--browsers", "1"]).await;
    let pages = pages(include_str!("static_scripts/changing.html"));
    assert!(pages.len() >= 40);
    let (mut wrong, mut before) = (Vec::new(), 0);
    for (name, page) in pages {
        let colour = colour(&farm.file(&job(&shared.site.fill(page))).await);
        let after = farm.waits("skipped").await;
        if colour != GREEN || after > before {
            wrong.push((name, colour, after > before));
        }
        before = after;
    }
    assert!(wrong.is_empty(), "page, colour, skipped: {wrong:?}");
    farm.end().await;
}

async fn skipped(shared: Arc<Shared>) {
    let farm = FarmProcess::start(&["--browsers", "1"]).await;
    let mut wrong = Vec::new();
    for (name, page) in pages(include_str!("static_scripts/static.html")) {
        let mut idle = job(page);
        idle.options.wait_until = WaitUntil::NetworkIdle;
        let before = farm.waits("skipped").await;
        let file = farm.file(&job(page)).await;
        farm.file(&idle).await;
        farm.file(&to(pdf(), job(page))).await;
        // The same page with the frames of its wait.
        let in_frames =
            shared.file(&job(&format!("{page}<script>setTimeout(() => 0, 60000)</script>"))).await;
        let is_same = picture(&file) == picture(&in_frames.bytes);
        let skipped = farm.waits("skipped").await - before;
        if colour(&file) != GREEN || skipped != 3 || !is_same {
            wrong.push((name, colour(&file), skipped, is_same));
        }
    }
    assert!(wrong.is_empty(), "page, colour, skipped waits of 3, same picture as with frames: {wrong:?}");
    let before = farm.waits("skipped").await;
    for script in ["1", "setTimeout(() => 0)"] {
        let page = format!("{GREEN_PAGE}<script>{script}</script>");
        farm.expect_green(&waiting(url(&shared.site.at(&Site::markup(&page))), WAIT_MS)).await;
    }
    assert_eq!(farm.waits("skipped").await - before, 1, "of a page by its URL");
    farm.end().await;
}
