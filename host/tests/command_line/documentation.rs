//! The documentation of vis, a package of npm with pages, style sheets, scripts, fonts and pictures in several folders: the same
//! pictures from its folder, over HTTP, and in a browser without Platen. Each page shows the path of its address, which is the same
//! because the folder is the root of the site.

use std::{fs, path::PathBuf};

use http::StatusCode;
use platen_harness::{
    browser::{Browser, Page, Theme},
    image_file::Picture,
    site::{HOST, Reply, Site},
};

use super::Platen;

/// Ten of its 16 pages. The start page leads to an address above the folder; the others are made as these are.
const PAGES: [&str; 10] = [
    "data/dataset.html",
    "data/dataview.html",
    "data/index.html",
    "graph2d/index.html",
    "graph3d/index.html",
    "network/edges.html",
    "network/index.html",
    "network/manipulation.html",
    "network/nodes.html",
    "network/physics.html",
];
/// Its listings are coloured after it has loaded.
const IS_COLOURED: &str =
    "[...document.querySelectorAll('pre.prettyprint')].every(it => it.querySelector('span'))";
/// The hosts of others from which it has a picture and a script, so that the network has no part in the pictures.
const OTHERS: [&str; 3] = ["*.amazonaws.com", "*.githubusercontent.com", "*.google-analytics.com"];

fn decoded(file: &[u8]) -> Picture {
    Picture::decode(file, "image/png").expect("a picture")
}

/// The picture of a page in a browser without Platen.
async fn in_browser(page: &Page, url: &str) -> Picture {
    page.go(url).await.expect("a page").wait(IS_COLOURED).await.expect("listings");
    decoded(&page.screenshot().await.expect("a picture"))
}

// The site answers while a command runs.
#[tokio::test(flavor = "multi_thread")]
async fn a_documentation_looks_the_same_from_its_folder_and_over_http() {
    let Some(clients) = std::env::var("PLATEN_CLIENTS").ok().filter(|directory| !directory.is_empty()) else {
        eprintln!("PLATEN_CLIENTS is not set: scripts/install-clients");
        return;
    };
    let folder = PathBuf::from(clients).join("node_modules/vis/docs");
    let root = folder.clone();
    let site = Site::start_with(move |uri, _| {
        let Ok(file) = fs::read(root.join(uri.path().trim_start_matches('/'))) else {
            return Reply::page("").with_status(StatusCode::NOT_FOUND);
        };
        let of_type = match uri.path().rsplit('.').next() {
            Some("html") => "text/html",
            Some("css") => "text/css",
            Some("js") => "text/javascript",
            Some("png") => "image/png",
            Some("svg") => "image/svg+xml",
            _ => "application/octet-stream",
        };
        Reply::of(of_type, file)
    });
    let site = site.await.expect("a site");
    let rules = format!("--host-resolver-rules=MAP {HOST} 127.0.0.1,MAP * ~NOTFOUND");
    let browser = Browser::start_with(&[rules]).await.expect("a browser").page().await.expect("a page");
    browser.set_viewport(1280, 900, Theme::Light).await.expect("a size");
    let platen = Platen::new();
    let others = OTHERS.map(|host| ["--egress-deny", host]).concat();
    let resolve = format!("{HOST}=127.0.0.1");
    let picture = |page: &str, options: &[&str]| {
        let common = ["--width", "1280", "--height", "900", "--full-page"];
        let arguments = [&["render", page, "-o", "a.png"], options, &common, &others].concat();
        let (status, _, errors) = platen.run(&arguments);
        assert_eq!(status, 0, "{page}: {errors}");
        (decoded(&fs::read(platen.path("a.png")).expect("a file")), errors)
    };
    let folder = folder.to_str().expect("UTF-8");
    let mut wrong = Vec::new();
    for page in PAGES {
        let (file, url) = (format!("{folder}/{page}"), site.url(&format!("/{page}")));
        let wait = ["--wait-for-function", IS_COLOURED];
        let (of_folder, warnings) = picture(&file, &[&["--assets", folder][..], &wait].concat());
        assert!(warnings.lines().all(|warning| warning.ends_with(" not public")), "{page}: {warnings}");
        let (of_url, _) = picture(&url, &[&["--resolve", &resolve][..], &wait].concat());
        let of_browser = in_browser(&browser, &url).await;
        for (other, name) in [(of_url, "over HTTP"), (of_browser, "in a browser")] {
            let different = of_folder.differences(&other);
            if different > 0 {
                let sizes = [of_folder.size(), other.size()];
                wrong.push(format!("{page} {name}: {different} pixels, {sizes:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // Without its folder a page has no style.
    let page = format!("{folder}/{}", PAGES[0]);
    let [with, without] = [folder, "{}"].map(|assets| picture(&page, &["--assets", assets]).0);
    assert!(with.differences(&without) > 0);
}
