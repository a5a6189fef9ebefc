//! Files and templates of a server of the protocol that renders itself.

use std::{fs, os::unix::fs::symlink, process::Command};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use platen_harness::operator::Operator;

use super::{Client, has_colour};
use crate::prelude::*;

/// A written file comes with a picture of its first page, and gets the folders that it needs.
pub(super) async fn files_are_shown(client: &Client, server: &Command) -> Result<()> {
    let files = client.path("files");
    fs::write(files.join("taken"), "a file")?;
    symlink(client.path("nothing"), files.join("nowhere"))?;
    let pages = "<body style='background: lime'>One<p style='break-before: page; background: red'>Two";
    let to = |path: &str, options: Value| {
        ("render", json!({ "html": pages, "path": path, "printBackground": true, "options": options }))
    };
    let calls = [
        to("made/of/pages.pdf", json!({})),
        to("made/page.png", json!({ "omitBackground": true })),
        to("made/secret.pdf", json!({ "protection": { "userPassword": "x" } })),
        to("missing/../../outside.pdf", json!({})),
        to("up/made/outside.pdf", json!({})),
        to("nowhere/outside.pdf", json!({})),
        to("taken/page.pdf", json!({})),
        to("bad/page.pdf", json!({ "scale": 99 })),
        to("bad/page.pdf", json!({ "path": "x.pdf" })),
        ("describe_option", json!({ "name": "scal" })),
    ];
    let report = client.run("legacy", server, &calls).await?;
    let picture = |call: usize| -> Result<Picture> {
        report.content(call)?;
        let content = &report.0["results"][call]["content"][1];
        ensure!(content["type"] == "image" && content["mimeType"] == "image/jpeg", "call {call}: {content}");
        Picture::decode(
            &BASE64_STANDARD.decode(content["data"].as_str().context("a picture")?)?,
            "image/jpeg",
        )
    };
    let wrote = report.text(0)?;
    ensure!(wrote.contains("made/of/pages.pdf: application/pdf") && wrote.ends_with(", 2 pages"), "{wrote}");
    ensure!(Pdf::parse(&fs::read(files.join("made/of/pages.pdf"))?)?.text()?.contains("Two"), "another file");
    let first = picture(0)?;
    ensure!(first.size().1 == 800 && first.size().0 < 600, "{:?}", first.size());
    first.expect(first.size().0 / 2, 400, [0, 255, 0])?;
    ensure!(picture(1)?.size() == (800, 450), "{:?}", picture(1)?.size());
    ensure!(
        report.text(2)?.ends_with("; no picture: pdftoppm does not show this file"),
        "{}",
        report.text(2)?
    );
    for (call, expected) in [
        (3, "cannot be used"),
        (4, "\"path\" must be below"),
        (5, "cannot be used"),
        (6, "taken/page.pdf cannot be written"),
        (7, "(code invalid_field, field scale)"),
        (8, "\"path\" is given twice"),
        (9, "there is no option \"scal\": the options are format,"),
    ] {
        report.error(call, expected)?;
    }
    for name in ["outside.pdf", "made", "nothing", "files/missing", "files/bad"] {
        ensure!(!client.path(name).exists(), "{name} was made");
    }
    Ok(())
}

/// 500 templates are not all listed, and are found by words of their names.
pub(super) async fn templates_are_searched(
    client: &Client,
    commands: &Operator,
    account: &str,
) -> Result<()> {
    let file = client.path("files/loop.html");
    fs::write(&file, "{{ rows | length }}")?;
    let file = file.to_str().context("UTF-8")?;
    let put =
        ["template", "put", "--account", account, "--name", "Packing list", "--language", "jinja", file];
    let id = commands.run(&put).await?["id"].as_str().context("an id")?.to_owned();
    let path = client.path("files/.platen/platen.db");
    let database = libsql::Builder::new_local(path).build().await?.connect()?;
    let columns = "account_id, packed_html, placeholders, options, created_at, updated_at, samples, saved_by, language, files";
    database
        .execute(
            &format!(
                "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 500)
                 INSERT INTO templates (id, name, {columns})
                 SELECT 'tpl_' || n, 'Delivery note ' || n, {columns} FROM templates, n WHERE id = ?1"
            ),
            [id.as_str()],
        )
        .await?;
    let list = |arguments: Value| ("list_templates", arguments);
    let calls = [
        list(json!({})),
        list(json!({ "limit": 100 })),
        list(json!({ "search": "NOTE 500 delivery" })),
        list(json!({ "search": id })),
        list(json!({ "search": "nothing" })),
        list(json!({ "limit": 101 })),
        list(json!({ "limit": "all" })),
    ];
    let report = client.run("legacy", &commands.command(&["mcp"]), &calls).await?;
    let found = |call: usize| -> Result<(Value, usize)> {
        let list: Value = serde_json::from_str(report.text(call)?)?;
        let count = list["templates"].as_array().context("a list")?.len();
        Ok((list, count))
    };
    let (first, count) = found(0)?;
    ensure!(count == 20 && first["found"] == 502 && report.text(0)?.len() < 4_000, "{first}");
    ensure!(found(1)?.1 == 100, "another limit");
    let (note, count) = found(2)?;
    ensure!(count == 1 && note["templates"][0]["name"] == "Delivery note 500", "{note}");
    ensure!(
        note["templates"][0]["data"] == json!({}) && note["templates"][0]["options"] == json!({}),
        "{note}"
    );
    ensure!(found(3)?.0["templates"][0]["name"] == "Packing list", "not found by its id");
    ensure!(found(4)?.0 == json!({ "templates": [], "found": 0 }), "{:?}", found(4)?);
    report.error(5, "\"limit\" must be from 1 to 100")?;
    report.error(6, "\"limit\" has the wrong type")
}

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
