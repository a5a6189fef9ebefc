//! The operator's commands: runs the binary on a database file.

mod exit_status;
mod links;
mod people;

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, process::Output};

use platen_harness::operator;
use serde_json::{Value, json};

/// The commands in a new directory.
struct Operator {
    commands: operator::Operator,
    directory: tempfile::TempDir,
}

impl Operator {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let platen = Path::new(env!("CARGO_BIN_EXE_platen"));
        Self { commands: operator::Operator::in_directory(platen, directory.path()), directory }
    }

    fn migrated() -> Self {
        let operator = Self::new();
        operator.json(&["migrate"]);
        operator
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path().join(name), content).expect("a file");
    }

    /// Runs statements on the database.
    fn execute(&self, sql: &str) {
        let path = self.path().join(".platen/platen.db");
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let connection =
                libsql::Builder::new_local(path).build().await.and_then(|database| database.connect());
            let connection = connection.expect("a connection");
            connection.execute_batch(sql).await.expect("statements that run");
        });
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.commands.output(arguments).expect("the binary runs")
    }

    fn json(&self, arguments: &[&str]) -> Value {
        self.commands.json(arguments).expect("the command prints JSON")
    }

    fn text(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    fn error(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(!output.status.success(), "{arguments:?} succeeded");
        assert!(output.stdout.is_empty(), "{arguments:?} printed to standard output");
        String::from_utf8(output.stderr).expect("UTF-8")
    }

    /// Checks that each command fails with its message.
    fn errors(&self, table: &[(&[&str], &str)]) {
        for (arguments, message) in table {
            let error = self.error(arguments);
            assert!(error.contains(message), "{arguments:?}: {error}");
        }
    }
}

#[test]
fn with_the_json_log_format_errors_are_json_lines() {
    let operator = Operator::new();
    for (arguments, message) in [
        (&["account", "list", "--log-format", "json"][..], "there is no database at"),
        (&["account", "lists", "--log-format=json"], "unrecognized subcommand"),
        (&["up", "--listen", "nowhere", "--log-format", "json"], "invalid value 'nowhere'"),
        (&["up", "--farm-url", "http://127.0.0.1:9", "--log-format", "json"], "--farm-url needs a token"),
    ] {
        let error = operator.error(arguments);
        let lines: Vec<Value> = error.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let last = lines.last().unwrap();
        assert_eq!(last["level"], "ERROR", "{error}");
        assert!(
            last["timestamp"].is_string() && last["message"].as_str().unwrap().contains(message),
            "{error}"
        );
    }
}

#[test]
fn the_tables_are_created_once_in_a_private_file() {
    let operator = Operator::new();
    let created: usize = std::thread::scope(|scope| {
        let runs: Vec<_> = (0..8).map(|_| scope.spawn(|| operator.json(&["migrate"]))).collect();
        runs.into_iter().map(|run| run.join().unwrap()["applied"].as_array().unwrap().len()).sum()
    });
    assert_eq!(created, 1);
    assert_eq!(operator.json(&["migrate"])["applied"], json!([]));
    for (file, mode) in [(".platen", 0o700), (".platen/platen.db", 0o600)] {
        let metadata = operator.path().join(file).metadata().unwrap();
        assert_eq!(metadata.permissions().mode() & 0o777, mode, "{file}");
    }
}

#[test]
fn the_error_for_a_missing_or_outdated_database_names_the_cure() {
    let operator = Operator::new();
    let error = operator.error(&["account", "list"]);
    assert!(error.contains("there is no database at .platen/platen.db: run `platen migrate`"), "{error}");
    assert!(!operator.path().join(".platen").exists());

    operator.write("empty.db", "");
    let error = operator.error(&["account", "list", "--db", "empty.db"]);
    assert!(error.contains("run `platen migrate`"), "{error}");

    operator.write("note.txt", "not a database, but long enough to be read as one");
    let error = operator.error(&["account", "list", "--db", "file:note.txt"]);
    assert!(error.contains("note.txt"), "{error}");
}

#[test]
fn a_newer_database_is_refused() {
    let operator = Operator::migrated();
    operator.execute("UPDATE schema_version SET version = 1000");
    for command in [&["account", "list"][..], &["migrate"]] {
        let error = operator.error(command);
        assert!(error.contains("use a newer platen"), "{error}");
    }
}

#[test]
fn accounts() {
    let operator = Operator::migrated();
    let acme = operator.json(&["account", "create", "Acme & Söhne", "--quota", "50"]);
    let id = acme["id"].as_str().unwrap();
    assert!(id.starts_with("acc_") && id.len() == 24, "{id}");
    assert_eq!(
        (&acme["quota"], &acme["attempts"], &acme["disabled"]),
        (&50.into(), &0.into(), &false.into())
    );
    assert_eq!(operator.json(&["account", "create", "free"])["quota"], Value::Null);

    assert_eq!(operator.json(&["account", "quota", "Acme & Söhne", "unlimited"])["quota"], Value::Null);
    assert_eq!(operator.json(&["account", "quota", id, "7"])["quota"], 7);
    assert_eq!(operator.json(&["account", "disable", id])["disabled"], true);
    assert_eq!(operator.json(&["account", "disable", id])["disabled"], true);
    assert_eq!(operator.json(&["account", "enable", "Acme & Söhne"])["disabled"], false);
    let list = operator.json(&["account", "list"]);
    assert_eq!(list.as_array().unwrap().len(), 2);
    assert!(operator.text(&["account", "list"]).contains("Acme & Söhne"));

    operator.errors(&[
        (&["account", "create", "free"][..], "there is an account \"free\" already"),
        (&["account", "create", " "], "a name has 1 to 200 characters"),
        (&["account", "create", "x", "--quota=-1"], "a whole number"),
        (&["account", "create", "x", "--quota", "many"], "a whole number"),
        (&["account", "disable", "missing"], "there is no account \"missing\""),
        (
            &["account", "delete", "free"],
            "free has 0 keys, 0 templates, 0 links, 0 recorded requests, 0 members and 0 invites",
        ),
        (&["account", "delete", "missing", "--yes"], "there is no account \"missing\""),
    ]);
    assert_eq!(operator.json(&["account", "delete", "free", "--yes"])["deleted"]["keys"], 0);
    assert_eq!(operator.json(&["account", "list"]).as_array().unwrap().len(), 1);
}

#[test]
fn keys() {
    let operator = Operator::migrated();
    let account = operator.json(&["account", "create", "acme"])["id"].clone();
    let created = operator.json(&["key", "create", "--account", "acme", "--name", "first"]);
    let key = platen_shared::key::ApiKey::parse(created["key"].as_str().unwrap()).unwrap();
    assert_eq!((&created["account"], &created["name"]), (&account, &"first".into()));
    assert_eq!(created["prefix"], key.display_prefix());

    let other = operator.text(&["key", "create", "--account", account.as_str().unwrap()]);
    assert!(platen_shared::key::ApiKey::parse(other.lines().next().unwrap()).is_some(), "{other}");

    let id = created["id"].as_str().unwrap();
    assert_eq!(operator.json(&["key", "disable", id])["disabled"], true);
    assert_eq!(operator.json(&["key", "list", "--account", "acme"])[0]["disabled"], true);
    assert_eq!(operator.json(&["key", "enable", id])["disabled"], false);
    assert!(!operator.text(&["key", "list"]).contains(key.expose()));
    // Only its hash is stored.
    let stored = fs::read(operator.path().join(".platen/platen.db")).unwrap();
    assert!(!stored.windows(42).any(|window| window == key.expose().as_bytes()));

    operator.errors(&[
        (&["key", "create", "--account", "missing"][..], "there is no account \"missing\""),
        (&["key", "disable", "key_x"], "there is no key \"key_x\""),
        (&["key", "list", "--account", "missing"], "there is no account \"missing\""),
    ]);
}

#[test]
fn templates() {
    let operator = Operator::migrated();
    for account in ["acme", "other"] {
        operator.json(&["account", "create", account]);
    }
    let markup = "<p>{{ name }}</p>{{{ body }}}<style>a{b:c}</style>\n";
    operator.write("invoice.html", markup);
    let put = ["template", "put", "--account", "acme", "--name", "Invoice", "invoice.html"];
    let saved = operator.json(&put);
    let id = saved["id"].as_str().unwrap();
    assert_eq!(saved["placeholders"], json!(["body", "name"]));
    assert_eq!(operator.text(&["template", "show", id]), markup);
    assert_eq!(operator.json(&["template", "show", id])["html"], markup);

    operator.write("new.html", "<p>{{ total }}</p>");
    let replaced =
        operator.json(&["template", "put", "--account", "acme", "--name", "Bill", "--id", id, "new.html"]);
    assert_eq!((&replaced["id"], &replaced["name"]), (&saved["id"], &"Bill".into()));
    assert_eq!(replaced["placeholders"], json!(["total"]));
    assert_eq!(operator.json(&["template", "list"]).as_array().unwrap().len(), 1);
    assert_eq!(operator.json(&["template", "list", "--account", "other"]), json!([]));

    // Without a name, the template keeps its own. What a save replaces is a version.
    let kept = operator.json(&["template", "put", "--account", "acme", "--id", id, "invoice.html"]);
    assert_eq!(kept["name"], "Bill");
    let versions = operator.json(&["template", "versions", id]);
    let shown = |at: usize| (&versions[at]["number"], &versions[at]["name"], &versions[at]["saved_by"]);
    assert_eq!(shown(0), (&2.into(), &"Bill".into(), &"command line".into()));
    assert_eq!(shown(1), (&1.into(), &"Invoice".into(), &"command line".into()));
    let restored = operator.json(&["template", "restore", id, "2"]);
    assert_eq!((&restored["name"], &restored["placeholders"]), (&"Bill".into(), &json!(["total"])));
    assert_eq!(operator.text(&["template", "show", id]), "<p>{{ total }}</p>");
    let listed = operator.text(&["template", "versions", id]);
    assert!(listed.starts_with("VERSION  NAME") && listed.lines().count() == 4, "{listed}");

    operator.write("foreign.html", "{{#if größe}}{{größe}}{{else}}{{/if}}");
    let output = operator.run(&["template", "put", "--account", "acme", "--name", "x", "foreign.html"]);
    let warning = String::from_utf8(output.stderr).unwrap();
    assert!(
        output.status.success() && warning.contains("as they are: {{#if größe}} {{else}} {{/if}} ("),
        "{warning}"
    );
    let saved = String::from_utf8(output.stdout).unwrap();
    assert!(saved.ends_with(": else, größe\n"), "{saved}");

    operator.write("loop.html", "{% for row in rows %}{{ row }}{% endfor %}");
    let put = ["template", "put", "--account", "acme", "--name", "x", "--language", "jinja", "loop.html"];
    let output = operator.run(&put);
    assert!(output.status.success() && output.stderr.is_empty());
    let saved = String::from_utf8(output.stdout).unwrap();
    assert!(saved.ends_with(": Jinja\n"), "{saved}");

    operator.write("empty.html", "");
    operator.write("binary.html", [0xff, 0xfe]);
    let put = |account, id, file| ["template", "put", "--account", account, "--name", "x", "--id", id, file];
    operator.errors(&[
        (&put("other", id, "new.html")[..], "belongs to another account"),
        (&put("acme", "tpl_x", "new.html"), "there is no template \"tpl_x\""),
        (&["template", "put", "--account", "acme", "new.html"], "--name <NAME>"),
        (&["template", "restore", id, "9"], "has no version 9"),
        (&["template", "versions", "tpl_x"], "there is no template \"tpl_x\""),
        (&["template", "put", "--account", "acme", "--name", "x", "empty.html"], "not empty"),
        (&["template", "put", "--account", "acme", "--name", "x", "binary.html"], "is not UTF-8 text"),
        (&["template", "put", "--account", "acme", "--name", "x", "missing.html"], "cannot be read"),
        (&["template", "show", "tpl_x"], "there is no template \"tpl_x\""),
    ]);
    assert_eq!(operator.json(&["template", "delete", id])["id"], id);
    assert!(operator.error(&["template", "delete", id]).contains("there is no template"));
}

#[test]
fn invites() {
    let operator = Operator::migrated();
    let account = operator.json(&["account", "create", "acme"]);
    let invite =
        operator.json(&["invite", "Ann@Example.com", "--account", "acme", "--url", "https://p.example/"]);
    assert_eq!((&invite["email"], &invite["account"]), (&"ann@example.com".into(), &account["id"]));
    let link = invite["link"].as_str().unwrap_or_default();
    let token = link.strip_prefix("https://p.example/dashboard/invite/").unwrap_or_default();
    assert_eq!(token.len(), 40, "{invite}");
    let again = operator.json(&["invite", "ann@example.com", "--operator", "--first"]);
    // The first operator works in the account `default`, others in that of the flag, or in none.
    let own = again["account"].as_str().unwrap_or_default();
    assert!(again["operator"] == true && own != account["id"] && again["role"] == "owner", "{again}");
    assert_eq!(operator.json(&["account", "list"])[1]["name"], "default");
    let with_account = operator.json(&["invite", "op@example.com", "--operator", "--account", "acme"]);
    assert_eq!((&with_account["account"], &with_account["role"]), (&account["id"], &"owner".into()));
    let member = operator.json(&["invite", "bob@example.com", "--account", "default"]);
    assert_eq!((&member["account"], &member["role"]), (&again["account"], &"owner".into()), "the first user");
    for bad in [
        &["invite", "ann"][..],
        &["invite", "ann@example.com"],
        &["invite", "ann@example.com", "--account", "missing"],
        &["invite", "ann@example.com", "--account", "acme", "--role", "boss"],
    ] {
        assert!(!operator.run(bad).status.success(), "{bad:?}");
    }
}

#[test]
fn up_names_what_is_missing() {
    let operator = Operator::new();
    let up = ["up", "--listen", "127.0.0.1:0", "--farm-url", "http://127.0.0.1:9", "--components", "out"];
    let error = operator.error(&up);
    assert!(error.contains("PLATEN_FARM_TOKEN"), "{error}");
    for (urls, problem) in [
        ("http://a:1,http://b", "\"http://a:1,http://b\" must be http://HOST[:PORT] or https://HOST[:PORT]"),
        ("ftp://b", "\"ftp://b\" must be http://HOST[:PORT] or https://HOST[:PORT]"),
        ("http://u:secret@a:1", "\"http://…@a:1\" must not contain a user name or password"),
    ] {
        let error = operator.error(&["up", "--farm-url", urls]);
        assert!(error.contains(problem), "{error}");
    }
    let operator =
        Operator { commands: operator.commands.env("PLATEN_FARM_TOKEN", "t"), directory: operator.directory };
    let error = operator.error(&up);
    assert!(error.contains("there is no out/platen_dashboard.wasm: build it"), "{error}");
}
