//! The exit status of commands that fail.

use super::Operator;

#[test]
fn values_that_are_not_valid_have_one_exit_status() {
    let operator = Operator::migrated();
    operator.json(&["account", "create", "acme"]);
    operator.write("empty.html", "");
    operator.write("proxy", "ftp://proxy.example");
    let put = ["template", "put", "--account", "acme", "--name", "x"];
    for arguments in [
        &["account", "create", " "][..],
        &["account", "create", "x", "--quota", "many"],
        &["key", "create", "--account", "acme", "--name", ""],
        &["key", "create", "--account", "acme", "--last-day", "2020-01-01"],
        &["key", "create", "--account", "acme", "--last-day", "tomorrow"],
        &["invite", "ann"],
        &["user", "remove", "ann"],
        &["requests", "--account", "acme", "--status", "fine"],
        &["usage", "--account", "acme", "--days", "0"],
        &["mcp", "--directory", "missing"],
        &["render", "empty.html", "-o", "a.png", "--width", "0"],
        &["render", "empty.html", "-o", "a.png"],
        &["up", "--listen", "127.0.0.1:0", "--egress-proxy-file", "proxy"],
        &[&put[..], &["empty.html"]].concat(),
        &[&put[..], &["missing.html"]].concat(),
        &[&put[..], &["--language", "php", "empty.html"]].concat(),
    ] {
        let output = operator.run(arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {errors}");
    }
}
