//! `platen mcp`, called by the client of the protocol's TypeScript SDK (`tests/clients/mcp.mjs`).

mod directory;

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::Command,
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use platen_harness::{
    operator::Operator,
    settings::{Settings, tests_dir},
    site::{HOST, Reply, Site},
};
use platen_shared::key::ApiKey;
use tempfile::TempDir;

use crate::prelude::*;

pub(crate) fn cases(settings: &Settings) -> Vec<Case> {
    let is_installed = settings.clients.is_some();
    let cases = [Case::own_server("mcp/server", server), Case::files("mcp/no_server", no_server)];
    cases.map(|case| case.needs(is_installed, "PLATEN_CLIENTS")).into()
}

const MAX_TOOLS_BYTES: usize = 12_000;
/// A link, its secret and the signature of a file, as in the tests of `shared/src/link.rs`.
const LINK: &str = "lnk_000000000000000000000000000000001tCLNu";
const LINK_SECRET: &str = "lks_000000000000000000000000000000004asxwk";
const SIGNED: &str =
    "47K2p96GXDoX4D2if43YegR2UHCYQSUhfARpOXXHVZg/card.png?author=O%27Neil&title=Gr%C3%B6%C3%9Fe%20%2B%201";
const GREEN_PAGE: &str = "<body style='background: lime'>";

/// The directory of the client, with one for files and one for temporary files of the server.
struct Client {
    directory: TempDir,
}

impl Client {
    fn new(stage: &Stage) -> Result<Self> {
        let installed = stage.suite.settings().clients.clone().context("no PLATEN_CLIENTS")?;
        let directory = tempfile::tempdir_in(stage.suite.directory())?;
        // The browsers' user may enter it.
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o711))?;
        symlink(installed.join("node_modules"), directory.path().join("node_modules"))?;
        fs::copy(tests_dir().join("clients/mcp.mjs"), directory.path().join("mcp.mjs"))?;
        fs::create_dir(directory.path().join("files"))?;
        fs::create_dir(directory.path().join("temporary"))?;
        fs::set_permissions(directory.path().join("temporary"), fs::Permissions::from_mode(0o711))?;
        Ok(Self { directory })
    }

    fn path(&self, file: &str) -> PathBuf {
        self.directory.path().join(file)
    }

    /// Starts the server, lists the tools, calls some of them, and ends the server.
    async fn run(&self, mode: &str, server: &Command, calls: &[(&str, Value)]) -> Result<Report> {
        let text = |text: &std::ffi::OsStr| text.to_string_lossy().into_owned();
        let environment = server.get_envs().filter_map(|(name, value)| Some((text(name), text(value?))));
        let mut environment: std::collections::BTreeMap<_, _> = environment.collect();
        environment.insert("TMPDIR".to_owned(), text(self.path("temporary").as_os_str()));
        if let Ok(chromium) = std::env::var("PLATEN_CHROMIUM") {
            environment.insert("PLATEN_CHROMIUM".to_owned(), chromium);
        }
        let calls: Vec<_> = calls.iter().map(|(name, it)| json!({ "name": name, "arguments": it })).collect();
        let input = json!({
            "server": {
                "command": text(server.get_program()),
                "args": server.get_args().map(text).collect::<Vec<_>>(),
                "env": environment,
                "cwd": server.get_current_dir().unwrap_or(&self.path("files")),
            },
            "mode": mode,
            "calls": calls,
        });
        let mut node = Command::new("node");
        node.arg("mcp.mjs").arg(input.to_string()).current_dir(&self.directory);
        let output = tokio::task::spawn_blocking(move || node.output()).await??;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "the client failed: {errors}");
        let report = Report(serde_json::from_slice(&output.stdout)?);
        ensure!(report.0["name"] == "platen" && report.0["faults"] == json!([]), "{}", report.0["faults"]);
        // A client gives all of it to its model, in every conversation.
        let tools = report.0["tools"].to_string().len();
        ensure!(tools <= MAX_TOOLS_BYTES, "the list of tools has {tools} bytes");
        wait::until_true("the server has deleted its files", async || {
            Ok(fs::read_dir(self.path("temporary"))?.next().is_none())
        })
        .await?;
        Ok(report)
    }
}

struct Report(Value);

impl Report {
    fn tools(&self) -> Vec<&str> {
        let tools = self.0["tools"].as_array().into_iter().flatten();
        tools.filter_map(|tool| tool["name"].as_str()).collect()
    }

    /// The first content of a result that is not an error.
    fn content(&self, call: usize) -> Result<&Value> {
        let result = &self.0["results"][call];
        ensure!(result["isError"] == false, "call {call}: {result}");
        Ok(&result["content"][0])
    }

    fn text(&self, call: usize) -> Result<&str> {
        self.content(call)?["text"].as_str().with_context(|| format!("call {call} has no text"))
    }

    /// The bytes of an image or of an embedded file.
    fn file(&self, call: usize, media_type: &str) -> Result<Vec<u8>> {
        let content = self.content(call)?;
        let (file, data) = match content["type"].as_str() {
            Some("image") => (content, &content["data"]),
            _ => (&content["resource"], &content["resource"]["blob"]),
        };
        ensure!(file["mimeType"] == media_type, "call {call} has another type: {}", file["mimeType"]);
        Ok(BASE64_STANDARD.decode(data.as_str().with_context(|| format!("call {call} has no file"))?)?)
    }

    fn error(&self, call: usize, expected: &str) -> Result<()> {
        let result = &self.0["results"][call];
        let text = result["content"][0]["text"].as_str().unwrap_or_default();
        ensure!(result["isError"] == true && text.contains(expected), "call {call}: {result}");
        Ok(())
    }
}

fn has_colour(file: &[u8], media_type: &str) -> Result<()> {
    let picture = Picture::decode(file, media_type)?;
    ensure!(picture.size() == (60, 40), "{:?}", picture.size());
    picture.expect(30, 20, [0, 255, 0])
}

async fn server(stage: Stage) -> Result<()> {
    let (real, target, client) = (stage.real().await?, stage.target().await?, Client::new(&stage)?);
    let template = target.template_id.clone().context("a template")?;
    let missing = real.site.put("/mcp", Reply::page(GREEN_PAGE).with_status(http::StatusCode::NOT_FOUND));
    let command = |url: &str, key: &str| {
        let mut command = real.app.operator.command(&["mcp"]);
        command.envs([("PLATEN_URL", url), ("PLATEN_KEY", key), ("PLATEN_LOG", "trace")]);
        command.env("PLATEN_LINK_SECRET", LINK_SECRET);
        command
    };
    let size = |page: Value| {
        let Value::Object(mut page) = page else { return page };
        page.extend([("width".to_owned(), 60.into()), ("height".to_owned(), 40.into())]);
        page.into()
    };
    let values = json!({ "customer": "Ann", "total": 10.5, "markup": "<b>Paid</b>" });
    let calls = [
        ("render", size(json!({ "html": GREEN_PAGE }))),
        ("render", json!({ "html": "<p>Hello", "path": "page.pdf" })),
        ("render", size(json!({ "url": missing, "format": "webp" }))),
        ("render", json!({ "templateId": template, "variables": values, "format": "pdf" })),
        ("list_templates", json!({})),
        ("describe_option", json!({ "name": "quality" })),
        ("render", json!({ "html": "x", "width": 0 })),
        ("render", json!({ "html": "x", "widht": 1 })),
        ("render", json!({ "templateId": "tpl_nothing" })),
        ("render", json!({ "html": "x", "path": "../page.png" })),
        ("no_such_tool", json!({})),
        ("render", json!({ "file": "page.html" })),
        (
            "sign_link",
            json!({ "link": LINK, "fileName": "card.png", "values": { "title": "Größe + 1", "author": "O'Neil" } }),
        ),
        ("sign_link", json!({ "link": "lnk_x", "fileName": "card.png" })),
    ];
    let report = client.run("auto", &command(&target.base_url, &target.key), &calls).await?;
    let tools = ["render", "list_templates", "sign_link", "describe_option"];
    ensure!(report.tools() == tools, "{:?}", report.tools());
    has_colour(&report.file(0, "image/png")?, "image/png")?;
    let written = report.text(1)?;
    ensure!(written.starts_with("wrote /") && written.ends_with(" KB, 1 page"), "{written}");
    let page = Pdf::parse(&fs::read(client.path("files/page.pdf"))?)?.text()?;
    ensure!(page.contains("Hello"), "{page}");
    has_colour(&report.file(2, "image/webp")?, "image/webp")?;
    ensure!(report.0["results"][2].to_string().contains("the page has status 404"), "{}", report.0);
    let text = Pdf::parse(&report.file(3, "application/pdf")?)?.text()?;
    ensure!(["Customer: Ann", "Total: 10.5", "Paid"].iter().all(|part| text.contains(part)), "{text}");
    let templates: Value = serde_json::from_str(report.text(4)?)?;
    let (found, listed) = (&templates["found"], &templates["templates"][0]);
    ensure!(found == 1 && listed["id"] == template && listed["placeholders"][0] == "customer", "{templates}");
    let option: Value = serde_json::from_str(report.text(5)?)?;
    ensure!(option["maximum"] == 100, "{option}");
    report.error(6, "\"width\" must be a whole number from 1 to 7680 (code invalid_field, field width)")?;
    report.error(7, "Did you mean \"width\"? (code unknown_field, field widht)")?;
    report.error(8, "Template not found (code template_not_found, field templateId)")?;
    report.error(9, "\"path\" must be below")?;
    ensure!(report.0["results"][10]["refused"].is_string(), "{}", report.0["results"][10]);
    report.error(11, "\"file\" cannot be read, because a server renders")?;
    let signed = format!("{}/v1/links/{LINK}/{SIGNED}", target.base_url);
    ensure!(report.text(12)? == signed, "{}", report.text(12)?);
    report.error(13, "\"link\" is no id of a link")?;
    let log = report.0["log"].as_str().unwrap_or_default();
    ensure!(
        log.contains("TRACE")
            && !log.contains(&target.key)
            && !log.contains(LINK_SECRET)
            && !log.contains("lime")
            && !log.contains("Paid"),
        "{log}"
    );

    let unknown = ApiKey::from_random([7; 32]);
    let page = [("render", json!({ "html": "x" }))];
    let report = client.run("legacy", &command(&target.base_url, unknown.expose()), &page).await?;
    report.error(0, "Invalid API key")?;
    ensure!(!report.tools().contains(&"list_templates"), "{:?}", report.tools());
    let other = real.site.put("/other/v1/render", Reply::page("<p>another server"));
    let other = other.trim_end_matches("/v1/render");
    let other = other.replace(HOST, "127.0.0.1");
    let report = client.run("legacy", &command(&other, &target.key), &page).await?;
    report.error(0, "PLATEN_URL answered with status 200")?;
    let report = client.run("legacy", &command("http://127.0.0.1:9", &target.key), &page).await?;
    report.error(0, "the server of PLATEN_URL cannot be reached")
}

async fn no_server(stage: Stage) -> Result<()> {
    let client = Client::new(&stage)?;
    let site = Site::start().await?;
    let page = site.put("/mcp", Reply::page(GREEN_PAGE));
    let operator = |directory: &Path| Operator::in_directory(&stage.suite.settings().platen, directory);
    let command =
        |directory: &Path| operator(directory).command(&["mcp", "--resolve", "site.test=127.0.0.1"]);
    let files = client.path("files");
    let markup = json!({ "width": 60, "height": 40, "html": GREEN_PAGE });

    let calls = [("render", markup.clone())];
    let report = client.run("auto", &command(&files), &calls).await?;
    ensure!(report.tools() == ["render", "describe_option"], "{:?}", report.tools());
    has_colour(&report.file(0, "image/png")?, "image/png")?;

    let calls = [("render", json!({ "html": "x", "path": "page.png" }))];
    let report = client.run("legacy", &command(Path::new("/")), &calls).await?;
    report.error(0, "files cannot be read or written")?;

    let commands = operator(&files);
    commands.run(&["migrate"]).await?;
    let account = commands.run(&["account", "create", "acme"]).await?;
    let options = client.path("options.json");
    fs::write(&options, r#"{"format": "pdf", "headerHtml": "<b>{{ title }}</b>"}"#)?;
    let account = account["id"].as_str().context("an id")?;
    let template = commands.template_with(account, "Letter", "<p>Dear {{ name }}", Some(&options)).await?;
    let outside = client.path("outside.png");
    fs::write(&outside, "outside")?;
    symlink(&outside, files.join("link.png"))?;
    symlink(client.directory.path(), files.join("up"))?;
    fs::write(files.join("old.png"), "old")?;
    fs::write(files.join("page.html"), GREEN_PAGE)?;
    let with_path = |path: &str| {
        let mut arguments = markup.clone();
        arguments["path"] = path.into();
        ("render", arguments)
    };
    let letter = json!({ "title": "T", "name": "Ann" });
    let calls = [
        with_path("old.png"),
        with_path("link.png"),
        with_path("up/new.png"),
        with_path("/nonexistent/new.png"),
        with_path("page.html"),
        ("render", json!({ "url": page, "format": "jpeg", "width": 60, "height": 40 })),
        ("render", json!({ "url": "http://127.0.0.1/" })),
        ("render", json!({ "url": "http://site.invalid/" })),
        ("list_templates", json!({})),
        ("render", json!({ "templateId": template, "variables": letter })),
        ("render", json!({ "templateId": template, "variables": letter, "path": "letter.png" })),
        ("render", json!({ "templateId": template })),
        ("render", json!({ "templateId": "tpl_nothing" })),
    ];
    let report = client.run("legacy", &command(&files), &calls).await?;
    ensure!(report.text(0)?.contains("old.png: image/png"), "{}", report.text(0)?);
    let file = fs::read(files.join("old.png"))?;
    has_colour(&file, "image/png")?;
    let render = ["render", "page.html", "-o", "same.png", "--width", "60", "--height", "40"];
    let rendered = commands.output(&render)?;
    ensure!(rendered.status.success() && fs::read(files.join("same.png"))? == file, "another file");
    report.error(1, "\"path\" must be below")?;
    report.error(2, "\"path\" must be below")?;
    report.error(3, "\"path\" must be below")?;
    report.error(4, "\"path\" must end in .png")?;
    ensure!(fs::read(&outside)? == b"outside" && !client.path("new.png").exists(), "a file outside");
    has_colour(&report.file(5, "image/jpeg")?, "image/jpeg")?;
    report.error(6, "(code invalid_field, field url)")?;
    report.error(7, "could not be resolved (code name_not_found, field url)")?;
    let templates: Value = serde_json::from_str(report.text(8)?)?;
    let listed = &templates["templates"][0];
    let listed = (&listed["placeholders"], &listed["options"]["format"]);
    ensure!(listed == (&json!(["name", "title"]), &json!("pdf")), "{templates}");
    let text = Pdf::parse(&report.file(9, "application/pdf")?)?.text()?;
    ensure!(text.contains("Dear Ann"), "{text}");
    ensure!(report.text(10)?.contains("image/png"), "{}", report.text(10)?);
    report.error(11, "Missing template variables \"name\", \"title\" (code missing_template_variable")?;
    report.error(12, "Template not found (code template_not_found, field templateId)")?;
    directory::pages(&client, &command(&files)).await?;
    directory::files_are_shown(&client, &command(&files)).await?;
    directory::templates_are_searched(&client, &commands, account).await
}
