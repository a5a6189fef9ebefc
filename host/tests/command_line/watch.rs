//! `platen render --watch`.

use std::{fs, time::Duration};

use nix::sys::signal::Signal;
use platen_harness::{process::Process, wait::until_some};

use super::Platen;

#[tokio::test]
async fn a_watched_page_is_rendered_after_each_change() {
    let platen = Platen::new();
    platen.write("page.html", "<body style='background: {{ color }}'>");
    platen.write("data.json", r#"{"color": "red"}"#);
    let watch = ["render", "page.html", "-o", "a.png", "--watch", "--variables", "@data.json"];
    let mut process = Process::start("platen render", &platen.commands.command(&watch), Signal::SIGKILL)
        .expect("the binary runs");
    // A change that is made while the watch is being started would not be seen, so it is made again.
    let becomes = async |content: &str, data: &str, differs_from: &[u8]| {
        let file = until_some("the page is rendered", async || {
            platen.write("new.html", content);
            fs::rename(platen.path("new.html"), platen.path("page.html")).expect("a file");
            platen.write("data.json", data);
            tokio::time::sleep(Duration::from_millis(300)).await;
            let file = fs::read(platen.path("a.png")).unwrap_or_default();
            Ok((!file.is_empty() && file != differs_from).then_some(file))
        });
        let file = file.await.expect("a picture");
        assert!(file.starts_with(b"\x89PNG"));
        file
    };
    let page = "<body style='background: {{ color }}'>";
    let first = becomes(page, r#"{"color": "red"}"#, b"").await;
    let second = becomes(page, r#"{"color": "blue"}"#, &first).await;
    // An error does not end it.
    platen.write("data.json", "{");
    becomes("<p>{{ color }}", r#"{"color": "green"}"#, &second).await;
    process.signal(Signal::SIGINT).expect("it runs");
    assert!(process.ended().await.expect("it ends").success());
}

#[tokio::test]
async fn a_watched_page_is_rendered_after_a_change_of_its_folder() {
    let platen = Platen::new();
    fs::create_dir_all(platen.path("css")).expect("a folder");
    platen.write("index.html", "<!doctype html><link rel=stylesheet href=css/style.css>");
    let watch = ["render", "index.html", "-o", "a.png", "--watch"];
    let mut process = Process::start("platen render", &platen.commands.command(&watch), Signal::SIGKILL)
        .expect("the binary runs");
    let read = || fs::read(platen.path("a.png")).unwrap_or_default();
    let mut before = Vec::new();
    for colour in ["red", "blue", "green"] {
        let file = until_some("the page is rendered", async || {
            platen.write("css/style.css", &format!("html {{ background: {colour} }}"));
            tokio::time::sleep(Duration::from_millis(300)).await;
            let file = read();
            Ok((!file.is_empty() && file != before).then_some(file))
        });
        before = file.await.expect("another picture");
    }
    let written = || fs::metadata(platen.path("a.png")).and_then(|file| file.modified()).expect("a file");
    // The output, hidden files and reading are no changes.
    until_some("the page is not rendered again", async || {
        let last = written();
        platen.write(".hidden", "x");
        drop(fs::read(platen.path("css/style.css")));
        tokio::time::sleep(Duration::from_secs(1)).await;
        Ok((written() == last).then_some(()))
    })
    .await
    .expect("an end");
    process.signal(Signal::SIGINT).expect("it runs");
    assert!(process.ended().await.expect("it ends").success());
}
