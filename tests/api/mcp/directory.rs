//! Files of a server of the protocol that renders itself.

use std::{fs, os::unix::fs::symlink, process::Command};

use super::{Client, has_colour};
use crate::prelude::*;

/// `render` with the pages of files in place of markup.
pub(super) async fn pages(client: &Client, server: &Command) -> Result<()> {
    let files = client.path("files");
    let page = "<link rel=stylesheet href=style.css>";
    fs::create_dir_all(files.join("site/.hidden"))?;
    for (file, content) in [
        ("files/site/style.css", "html { background: lime }"),
        ("files/site/index.html", page),
        ("files/site/.hidden.html", page),
        ("files/site/.hidden/page.html", page),
        (
            "files/broken.html",
            "<link rel=stylesheet href=style.css><script>throw new Error('thrown')</script>",
        ),
        ("outside.html", page),
    ] {
        fs::write(client.path(file), content)?;
    }
    symlink("../../outside.html", files.join("site/link.html"))?;
    symlink(".hidden", files.join("site/shown"))?;
    let of = |file: &str| ("render", json!({ "file": file, "width": 60, "height": 40 }));
    let absolute = files.join("site/index.html");
    let calls = [
        of("site/index.html"),
        of(absolute.to_str().context("UTF-8")?),
        of("broken.html"),
        of("../outside.html"),
        of("up/outside.html"),
        of("site/link.html"),
        of("/etc/hostname"),
        of("site/.hidden.html"),
        of("site/.hidden/page.html"),
        of("site/shown/page.html"),
        of("site"),
        of("none.html"),
        ("render", json!({ "file": "site/index.html", "html": "x" })),
        ("render", json!({ "file": 1 })),
        ("render", json!({ "file": "site/index.html", "url": "https://example.com/" })),
        ("render", json!({ "width": 60 })),
    ];
    let report = client.run("legacy", server, &calls).await?;
    for call in [0, 1] {
        has_colour(&report.file(call, "image/png")?, "image/png")?;
    }
    let text = report.0["results"][2]["content"][1]["text"].as_str().unwrap_or_default();
    for part in [
        "; errors of the page: 1; failed requests of the page: 1",
        "\n- style.css: not found",
        "\n- Error: thrown",
    ] {
        ensure!(text.contains(part), "{text}");
    }
    for (call, expected) in [
        (3, "\"file\" must be below"),
        (4, "\"file\" must be below"),
        (5, "cannot be read: a hidden file, a link out of the folder"),
        (6, "\"file\" must be below"),
        (7, "\"file\" is hidden"),
        (8, "\"file\" is hidden"),
        (9, "\"file\" is hidden"),
        (10, "cannot be read"),
        (11, "none.html cannot be read: not found"),
        (12, "one of \"html\", \"url\", \"file\" and \"templateId\""),
        (13, "\"file\" has the wrong type"),
        (14, "one of \"html\""),
        (15, "one of \"html\""),
    ] {
        report.error(call, expected)?;
    }
    Ok(())
}
