//! `platen check`, `platen render`, completions, manual pages and settings: runs the binary.

mod documentation;
mod render;
mod render_folder;
mod render_local;
mod watch;

use std::{
    collections::BTreeSet,
    fs,
    io::Write as _,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Output, Stdio},
};

use hyper::body::Incoming;
use platen_harness::{
    loopback::{Loopback, full},
    operator::Operator,
    settings::built_components,
};
use serde_json::{Value, json};

/// The binary in a new directory, with no other environment than that which a test sets.
struct Platen {
    directory: tempfile::TempDir,
    commands: Operator,
}

impl Platen {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let platen = Path::new(env!("CARGO_BIN_EXE_platen"));
        let commands = Operator::in_directory(platen, directory.path());
        let platen = Self { directory, commands };
        let temporary = platen.path("");
        let platen = platen.env("TMPDIR", temporary.to_str().expect("UTF-8"));
        match std::env::var("PLATEN_CHROMIUM") {
            Ok(chromium) => platen.env("PLATEN_CHROMIUM", &chromium),
            Err(_) => platen,
        }
    }

    fn env(self, name: &str, value: &str) -> Self {
        Self { commands: self.commands.env(name, value), ..self }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("a file");
    }

    /// The names of the files in the directory.
    fn files(&self) -> BTreeSet<String> {
        let files = fs::read_dir(self.directory.path()).expect("a directory");
        files.map(|file| file.expect("a file").file_name().to_string_lossy().into_owned()).collect()
    }

    /// Runs a command with this standard input.
    fn pipe(&self, arguments: &[&str], input: &str) -> Output {
        let mut command = self.commands.command(arguments);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the binary runs");
        child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("it reads");
        child.wait_with_output().expect("it ends")
    }

    /// The exit status, standard output and standard error.
    fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        let Output { status, stdout, stderr } = self.commands.output(arguments).expect("the binary runs");
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        (status.code().unwrap_or(-1), text(stdout), text(stderr))
    }

    /// A report, and the exit status.
    fn check(&self, arguments: &[&str]) -> (i32, Report) {
        let components = built_components();
        let components = components.to_str().expect("UTF-8");
        let common = ["check", "--json", "--components", components, "--listen", "127.0.0.1:0"];
        let (status, output, errors) = self.run(&[&common[..], arguments].concat());
        let report = serde_json::from_str(&output).unwrap_or_else(|_| panic!("{output}{errors}"));
        (status, Report(report))
    }
}

struct Report(Value);

impl Report {
    /// The severities, texts and cures of a subject.
    fn of(&self, subject: &str) -> Vec<[&str; 3]> {
        let findings = self.0["findings"].as_array().expect("an array").iter();
        let found: Vec<_> = findings
            .filter(|finding| finding["subject"] == subject)
            .map(|finding| {
                ["severity", "text", "cure"].map(|name| finding[name].as_str().unwrap_or_default())
            })
            .collect();
        assert!(!found.is_empty(), "{subject}: {}", self.0);
        found
    }

    fn severity(&self, subject: &str) -> &str {
        self.of(subject)[0][0]
    }
}

#[test]
fn an_unknown_variable_stops_the_start() {
    let platen = Platen::new().env("PLATEN_BROWSER", "4");
    for arguments in [&["up"][..], &["migrate"], &["render", "-", "-o", "a.png"]] {
        let (status, output, errors) = platen.run(arguments);
        assert_eq!((status, output.as_str()), (2, ""), "{errors}");
        assert!(errors.contains("PLATEN_BROWSER is set, but Platen has no setting of this name"), "{errors}");
    }
    assert!(!platen.path(".platen").exists());
}

#[test]
fn secrets_can_be_files() {
    let platen = Platen::new();
    let server = ["account", "list", "--db", "http://127.0.0.1:9", "--db-token-file", "token"];
    let (_, _, errors) = platen.run(&server);
    assert!(errors.contains("the file token of PLATEN_DB_TOKEN_FILE cannot be read"), "{errors}");
    platen.write("token", "\n");
    assert!(platen.run(&server).2.contains("PLATEN_DB_TOKEN_FILE is empty"));
    platen.write("token", "s3cret\n");
    let (_, _, errors) = platen.run(&server);
    assert!(errors.contains("cannot be reached") && !errors.contains("s3cret"), "{errors}");
    let platen = platen.env("PLATEN_DB_TOKEN", "0ther");
    let (_, _, errors) = platen.run(&server);
    assert!(errors.contains("PLATEN_DB_TOKEN and PLATEN_DB_TOKEN_FILE are both set"), "{errors}");
    platen.write("proxy", "http://user:s3cret@proxy.example:1/path");
    let (status, _, errors) =
        platen.run(&["render", "http://a.example/", "-o", "a.png", "--egress-proxy-file", "proxy"]);
    assert!(status == 2 && errors.contains("no path") && !errors.contains("s3cret"), "{errors}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_tries_the_machine() {
    let site = Loopback::start(async |_: http::Request<Incoming>| Ok(http::Response::new(full("hi"))));
    let site = site.await.expect("a port");
    let platen = Platen::new().env("PLATEN_QUEUE", "7").env("SPIN_VARIABLE_DEADLINE", "5");
    let url = format!("http://site.example:{}/", site.address().port());
    let resolve = ["--outbound", &url, "--resolve", "site.example=127.0.0.1"];
    let (status, report) = platen.check(&resolve);
    assert_eq!(status, 0, "{}", report.0);
    for subject in
        ["components", "database", "listen", "chromium", "sandbox", "render", "outbound", "open files"]
    {
        assert_eq!(report.severity(subject), "ok", "{}", report.0);
    }
    let setting = json!({"name": "--queue", "value": "7", "source": "PLATEN_QUEUE"});
    assert!(report.0["settings"].as_array().expect("an array").contains(&setting), "{}", report.0);
    assert!(report.of("settings")[0][1].contains("SPIN_VARIABLE_DEADLINE"));
    assert_eq!(platen.files(), BTreeSet::new(), "a check creates nothing");
}

#[test]
fn a_check_names_what_is_missing_and_the_cure() {
    let platen = Platen::new();
    platen.write("fonts.conf", "<?xml version='1.0'?><fontconfig><dir>/nonexistent</dir></fontconfig>");
    let fonts = platen.path("fonts.conf");
    let platen = platen.env("FONTCONFIG_FILE", fonts.to_str().expect("UTF-8"));
    let (status, report) = platen.check(&["--outbound", "http://site.invalid/"]);
    assert_eq!(status, 0, "{}", report.0);
    let [severity, text, cure] = report.of("fonts")[0];
    assert!(severity == "warning" && text.contains("Korean") && cure.contains("fonts-noto-cjk"), "{text}");
    assert_eq!(report.severity("outbound"), "warning");

    let proxy = "http://user:s3cret@proxy.example:1";
    let (status, report) = platen.check(&[
        "--chromium",
        "/nonexistent/chromium",
        "--data",
        "fonts.conf/data",
        "--outbound",
        "",
        "--egress-proxy",
        proxy,
    ]);
    assert_eq!(status, 1, "{}", report.0);
    let setting = json!({"name": "--egress-proxy", "value": "(secret)", "source": "command line"});
    assert!(report.0["settings"].as_array().expect("an array").contains(&setting), "{}", report.0);
    assert!(!report.0.to_string().contains("s3cret"), "{}", report.0);
    assert!(report.of("chromium")[0][1].contains("/nonexistent/chromium"));
    assert_eq!(report.severity("database"), "problem");

    let (status, report) = platen.check(&["--db", "http://127.0.0.1:9", "--farm-url", "http://127.0.0.1:10"]);
    assert_eq!(status, 1, "{}", report.0);
    assert!(report.of("farm")[0][1].contains("PLATEN_FARM_TOKEN"));
    assert!(report.of("database")[0][2].contains("--db"));
    let platen = platen.env("PLATEN_FARM_TOKEN", "t0ken");
    let (_, report) = platen.check(&["--farm-url", "http://127.0.0.1:10"]);
    assert_eq!(report.of("farm")[0][0], "problem");
    assert!(!report.0.to_string().contains("t0ken"));
}

#[test]
fn an_mcp_server_names_the_setting_that_is_wrong() {
    let key = "plt_0123456789abcdefghijABCDEFGHIJ0123456789";
    for (name, value, expected, exit) in [
        ("PLATEN_KEY", key, "PLATEN_URL is not", 2),
        ("PLATEN_URL", "http://127.0.0.1:9", "PLATEN_KEY is not", 2),
        ("PLATEN_URL", "127.0.0.1:9", "PLATEN_URL or --url must be an http or https URL", 2),
        ("PLATEN_URL", "http://user:s3cret@127.0.0.1:9", "without a user", 2),
        ("PLATEN_DB", "nothing.db", "there is no database at nothing.db", 1),
        ("PLATEN_DB", "http://127.0.0.1:9", "cannot be reached", 1),
    ] {
        let (status, output, errors) = Platen::new().env(name, value).run(&["mcp"]);
        assert!(status == exit && output.is_empty(), "{name}={value}: {status} {output}");
        assert!(errors.contains(expected) && !errors.contains("s3cret"), "{name}={value}: {errors}");
    }
    let server = Platen::new().env("PLATEN_URL", "http://127.0.0.1:9").env("PLATEN_KEY", key);
    let (_, _, errors) = server.run(&["mcp"]);
    assert!(errors.contains("PLATEN_KEY is not an API key") && !errors.contains(key), "{errors}");
    let (_, _, errors) = Platen::new().run(&["mcp", "--directory", "missing"]);
    assert!(errors.contains("the directory missing of --directory"), "{errors}");
}

#[test]
fn an_mcp_server_ends_with_its_input_and_leaves_nothing() {
    let platen = Platen::new();
    assert_eq!(platen.run(&["mcp"]), (0, String::new(), String::new()));
    let input = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"render","arguments":{"html":"<p>hello"}}}
"#;
    let output = platen.pipe(&["mcp"], input);
    let lines: Vec<Value> = String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).expect("a message"))
        .collect();
    assert!(output.status.success() && lines[0]["result"]["serverInfo"]["name"] == "platen", "{lines:?}");
    // A render that takes longer than the server waits for calls gets no answer.
    assert!(lines.get(1).is_none_or(|line| line["result"]["content"][0]["type"] == "image"), "{lines:?}");
    assert_eq!(platen.files(), BTreeSet::new());
}

#[test]
fn a_backup_is_a_private_copy_that_can_be_used() {
    let platen = Platen::new();
    assert_eq!(platen.run(&["migrate"]).0, 0);
    assert_eq!(platen.run(&["account", "create", "acme"]).0, 0);
    let (status, output, errors) = platen.run(&["backup", "copy.db", "--json"]);
    assert_eq!(status, 0, "{errors}");
    let report: Value = serde_json::from_str(&output).expect("JSON");
    let copied = fs::metadata(platen.path("copy.db")).expect("a file");
    assert_eq!((report["bytes"].as_u64(), copied.permissions().mode() & 0o777), (Some(copied.len()), 0o600));
    let (_, accounts, _) = platen.run(&["account", "list", "--db", "copy.db", "--json"]);
    assert!(accounts.contains("acme"), "{accounts}");
    for (arguments, message) in [
        (&["backup", "copy.db"][..], "copy.db exists"),
        (&["backup", "missing/copy.db"], "missing/copy.db"),
        (&["backup", "other.db", "--db", "nothing.db"], "there is no database"),
        (&["backup", "other.db", "--db", "http://127.0.0.1:9"], "libSQL server"),
    ] {
        let (status, _, errors) = platen.run(arguments);
        assert!(status == 1 && errors.contains(message), "{errors}");
    }
    let left =
        platen.files().into_iter().filter(|name| !matches!(name.as_str(), "copy.db-wal" | "copy.db-shm"));
    assert_eq!(left.collect::<Vec<_>>(), [".platen", "copy.db"]);
}

#[test]
fn no_error_has_the_name_of_a_temporary_file() {
    let platen = Platen::new();
    let without_space = Platen::new().env("TMPDIR", "/nonexistent");
    for platen in [&platen, &without_space] {
        platen.write("page.html", "<p>x");
    }
    assert_eq!(platen.run(&["migrate"]).0, 0);
    let render = ["render", "page.html", "-o"];
    for (platen, arguments, message) in [
        (
            &platen,
            &[&render[..], &["missing/page.png"]].concat()[..],
            "missing/page.png cannot be written: there is no such directory",
        ),
        (
            &platen,
            &["backup", "missing/copy.db"],
            "missing/copy.db cannot be created: there is no such directory",
        ),
        (
            &without_space,
            &["render", "page.html", "-o", "page.png"],
            "can be created under /nonexistent; check TMPDIR: there is no such directory",
        ),
    ] {
        let (status, _, errors) = platen.run(arguments);
        assert!(status == 1 && errors.trim_end().ends_with(message), "{errors}");
    }
}

/// What `scripts/up` and `scripts/spin-up` print last.
fn first_steps(variables: &str) -> String {
    let script = format!(
        "source scripts/lib.sh; platen=/bin/platen operator=ann@example.com database_option='--data d'; {variables}
         print_first_steps http://127.0.0.1:3100 invoice.pdf"
    );
    let mut bash = std::process::Command::new("bash");
    bash.args(["-c", &script]).current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let output = bash.output().expect("bash runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn a_start_ends_with_the_link_and_a_request() {
    let first = first_steps("key=plt_x invite=/dashboard/invite/abc");
    let (_, last) = first.split_once("once within 24 hours:").expect("a link");
    let blocks: Vec<&str> = last.trim().split("\n\n").collect();
    let [link, _, request] = blocks[..] else { panic!("{last}") };
    assert_eq!(link, "http://127.0.0.1:3100/dashboard/invite/abc");
    for part in
        ["curl --fail-with-body -o ", " http://127.0.0.1:3100/v1/render ", "'authorization: Bearer plt_x'"]
    {
        assert!(request.contains(part) && request.lines().count() == 1, "{request}");
    }
    let again = first_steps("key= invite=");
    assert!(
        again.contains("platen key create --account default --data d") && !again.contains("curl"),
        "{again}"
    );
}

#[test]
fn completions_and_manual_pages() {
    let platen = Platen::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let (status, script, _) = platen.run(&["completions", shell]);
        assert!(status == 0 && script.contains("header-html"), "{shell}");
    }
    let (status, script, _) = platen.run(&["completions", "bash", "--program", "platen-farm"]);
    assert!(status == 0 && script.contains("_platen__farm") && script.contains("--token-file"), "{script}");
    let (status, _, _) = platen.run(&["man", "man1"]);
    assert_eq!(status, 0);
    let page = |name: &str| fs::read_to_string(platen.path("man1").join(name)).expect("a page");
    assert!(page("platen-render.1").contains("header"));
    assert!(
        page("platen-up.1").contains("SPIN_VARIABLE_DEADLINE_MS") && page("platen-farm.1").contains("token")
    );
}
