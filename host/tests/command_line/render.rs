//! Exit statuses of `platen render`, and what it does again with `--watch`.

use std::{fs, time::Duration};

use nix::sys::signal::Signal;
use platen_harness::{process::Process, wait::until_some};

use super::Platen;

#[test]
fn a_render_has_exit_statuses() {
    let platen = Platen::new();
    platen.write("page.html", "<h1>{{ name }}</h1>");
    platen.write("old.pdf", "old");
    for (arguments, expected, message) in [
        (&["render", "page.html", "-o", "a.pdf"][..], 0, ""),
        (&["render", "page.html", "-o", "b.pdf", "--variables", r#"{"name":"x"}"#], 0, ""),
        (&["render", "page.html", "-o", "old.pdf", "--variables", "{}"], 2, "\"name\""),
        (&["render", "page.html", "-o", "old.pdf", "--scale", "9"], 2, "\"scale\""),
        (&["render", "page.html", "-o", "old.pdf", "--no-such-option"], 2, "--no-such-option"),
        (&["render", "missing.html", "-o", "old.pdf"], 2, "missing.html"),
        (&["render", "http://site.invalid/", "-o", "old.pdf"], 3, "could not be resolved"),
        (&["render", "page.html", "-o", "missing/a.pdf"], 1, "missing/a.pdf"),
        (&["render", "page.html", "-o", "a.pdf", "--chromium", "/nonexistent"], 1, "/nonexistent"),
        (&["render", "-", "-o", "a.pdf", "--watch"], 2, "--watch"),
        (&["render", "page.html", "-o", "-", "--watch"], 2, "--output"),
    ] {
        let (status, output, errors) = platen.run(arguments);
        assert!(status == expected && output.is_empty(), "{arguments:?}: {status} {errors}");
        assert!(errors.contains(message) && (expected != 0 || errors.is_empty()), "{arguments:?}: {errors}");
    }
    let (status, _, errors) = platen.run(&["render", "page.html", "-o", "a.pdf", "--verbose"]);
    let is_told = errors.contains("sheets: 1\nerrors: 0\nfailed requests: 0\n");
    assert!(status == 0 && is_told, "{status} {errors}");
    assert!(fs::read(platen.path("a.pdf")).expect("a file").starts_with(b"%PDF"));
    assert_eq!(fs::read(platen.path("old.pdf")).expect("a file"), b"old");

    let output = platen.pipe(&["render", "-", "-o", "-", "--format", "webp"], "<p>hello");
    assert!(output.status.success() && output.stdout.starts_with(b"RIFF"));
}

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
