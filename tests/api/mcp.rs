//! `platen mcp`, called by the client of the protocol's TypeScript SDK (`tests/clients/mcp.mjs`).

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
        command
    };
    let size = |page: Value| {
        let Value::Object(mut page) = page else { return page };
        page.extend([("width".to_owned(), 60.into()), ("height".to_owned(), 40.into())]);
        page.into()
    };
    let values = json!({ "customer": "Ann", "total": 10.5, "markup": "<b>Paid</b>" });
    let calls = [
        ("render_html", size(json!({ "html": GREEN_PAGE }))),
        ("render_html", json!({ "html": "<p>Hello", "path": "page.pdf" })),
        ("render_url", size(json!({ "url": missing, "format": "webp" }))),
        ("render_template", json!({ "templateId": template, "variables": values, "format": "pdf" })),
        ("list_templates", json!({})),
        ("describe_options", json!({})),
        ("render_html", json!({ "html": "x", "width": 0 })),
        ("render_html", json!({ "html": "x", "widht": 1 })),
        ("render_template", json!({ "templateId": "tpl_nothing" })),
        ("render_html", json!({ "html": "x", "path": "../page.png" })),
        ("no_such_tool", json!({})),
        ("render_html", json!({ "file": "page.html" })),
    ];
    let report = client.run("auto", &command(&target.base_url, &target.key), &calls).await?;
    let tools = ["render_html", "render_url", "render_template", "list_templates", "describe_options"];
    ensure!(report.tools() == tools, "{:?}", report.tools());
    has_colour(&report.file(0, "image/png")?, "image/png")?;
    ensure!(report.text(1)?.starts_with("wrote /"), "{}", report.text(1)?);
    let page = Pdf::parse(&fs::read(client.path("files/page.pdf"))?)?.text()?;
    ensure!(page.contains("Hello"), "{page}");
    has_colour(&report.file(2, "image/webp")?, "image/webp")?;
    ensure!(report.0["results"][2].to_string().contains("the page has status 404"), "{}", report.0);
    let text = Pdf::parse(&report.file(3, "application/pdf")?)?.text()?;
    ensure!(["Customer: Ann", "Total: 10.5", "Paid"].iter().all(|part| text.contains(part)), "{text}");
    let templates: Value = serde_json::from_str(report.text(4)?)?;
    ensure!(templates.as_array().is_some_and(|list| list.len() == 1), "{templates}");
    ensure!(templates[0]["id"] == template && templates[0]["placeholders"][0] == "customer", "{templates}");
    let options: Value = serde_json::from_str(report.text(5)?)?;
    ensure!(options["quality"]["maximum"] == 100, "{options}");
    report.error(6, "\"width\" must be a whole number from 1 to 7680 (code invalid_field, field width)")?;
    report.error(7, "Did you mean \"width\"? (code unknown_field, field widht)")?;
    report.error(8, "Template not found (code template_not_found, field templateId)")?;
    report.error(9, "\"path\" must be below")?;
    ensure!(report.0["results"][10]["refused"].is_string(), "{}", report.0["results"][10]);
    report.error(11, "(code unknown_field, field file)")?;
    let log = report.0["log"].as_str().unwrap_or_default();
    ensure!(
        log.contains("TRACE") && !log.contains(&target.key) && !log.contains("lime") && !log.contains("Paid"),
        "{log}"
    );

    let unknown = ApiKey::from_random([7; 32]);
    let page = [("render_html", json!({ "html": "x" }))];
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

    let calls = [("render_html", markup.clone())];
    let report = client.run("auto", &command(&files), &calls).await?;
    ensure!(report.tools() == ["render_html", "render_url", "describe_options"], "{:?}", report.tools());
    has_colour(&report.file(0, "image/png")?, "image/png")?;

    let calls = [("render_html", json!({ "html": "x", "path": "page.png" }))];
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
        ("render_html", arguments)
    };
    let letter = json!({ "title": "T", "name": "Ann" });
    let calls = [
        with_path("old.png"),
        with_path("link.png"),
        with_path("up/new.png"),
        with_path("/nonexistent/new.png"),
        with_path("page.html"),
        ("render_url", json!({ "url": page, "format": "jpeg", "width": 60, "height": 40 })),
        ("render_url", json!({ "url": "http://127.0.0.1/" })),
        ("render_url", json!({ "url": "http://site.invalid/" })),
        ("list_templates", json!({})),
        ("render_template", json!({ "templateId": template, "variables": letter })),
        ("render_template", json!({ "templateId": template, "variables": letter, "path": "letter.png" })),
        ("render_template", json!({ "templateId": template })),
        ("render_template", json!({ "templateId": "tpl_nothing" })),
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
    report.error(3, "cannot be used")?;
    report.error(4, "\"path\" must end in .png")?;
    ensure!(fs::read(&outside)? == b"outside" && !client.path("new.png").exists(), "a file outside");
    has_colour(&report.file(5, "image/jpeg")?, "image/jpeg")?;
    report.error(6, "(code invalid_field, field url)")?;
    report.error(7, "could not be resolved (code name_not_found, field url)")?;
    let templates: Value = serde_json::from_str(report.text(8)?)?;
    let listed = (&templates[0]["placeholders"], &templates[0]["options"]["format"]);
    ensure!(listed == (&json!(["name", "title"]), &json!("pdf")), "{templates}");
    let text = Pdf::parse(&report.file(9, "application/pdf")?)?.text()?;
    ensure!(text.contains("Dear Ann"), "{text}");
    ensure!(report.text(10)?.contains("image/png"), "{}", report.text(10)?);
    report.error(11, "Missing template variables \"name\", \"title\" (code missing_template_variable")?;
    report.error(12, "Template not found (code template_not_found, field templateId)")?;
    pages_of_the_directory(&client, &command(&files)).await
}

/// `render_html` with the pages of files in place of markup.
async fn pages_of_the_directory(client: &Client, server: &Command) -> Result<()> {
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
    let of = |file: &str| ("render_html", json!({ "file": file, "width": 60, "height": 40 }));
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
        ("render_html", json!({ "file": "site/index.html", "html": "x" })),
        ("render_html", json!({ "file": 1 })),
        ("render_url", json!({ "file": "site/index.html" })),
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
        (12, "exclude each other"),
        (13, "must be a string"),
        (14, "(code unknown_field, field file)"),
    ] {
        report.error(call, expected)?;
    }
    Ok(())
}
