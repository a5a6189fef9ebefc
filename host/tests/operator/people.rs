//! Users, invites, usage and requests.

use serde_json::{Value, json};

use super::Operator;

/// An account with two users, an operator without an account, and an open invite.
fn with_users() -> (Operator, String) {
    let operator = Operator::migrated();
    let account =
        operator.json(&["account", "create", "acme"])["id"].as_str().expect("it is there").to_owned();
    for (email, account, is_owner, is_operator) in [
        ("ann@example.com", format!("'{account}'"), 1, 0),
        ("bob@example.com", format!("'{account}'"), 0, 0),
        ("op@example.com", "NULL".to_owned(), 0, 1),
    ] {
        operator.execute(&format!(
            "INSERT INTO users (id, email, account_id, is_owner, operator, password, created_at)
             VALUES ('usr_{email}', '{email}', {account}, {is_owner}, {is_operator}, '', 1700000000)"
        ));
    }
    operator.json(&["invite", "eve@example.com", "--account", "acme"]);
    (operator, account)
}

fn emails(list: &Value) -> Vec<&str> {
    list.as_array()
        .expect("it is there")
        .iter()
        .map(|user| user["email"].as_str().expect("it is there"))
        .collect()
}

#[test]
fn users_are_listed_and_removed() {
    let (operator, account) = with_users();
    let list = operator.json(&["user", "list"]);
    assert_eq!(emails(&list), ["ann@example.com", "bob@example.com", "op@example.com"]);
    assert_eq!((&list[0]["account_name"], &list[0]["role"]), (&"acme".into(), &"owner".into()));
    assert_eq!((&list[2]["account"], &list[2]["operator"]), (&Value::Null, &true.into()));
    let of_account = operator.json(&["user", "list", "--account", &account]);
    assert_eq!(emails(&of_account), ["ann@example.com", "bob@example.com"]);
    let text = operator.text(&["user", "list"]);
    assert!(text.contains("op@example.com") && text.contains("member, operator"), "{text}");

    operator.errors(&[
        (&["user", "remove", "ann@example.com"][..], "is the only owner of the account"),
        (&["user", "role", "ann@example.com", "member"], "is the only owner of the account"),
        (&["user", "role", "op@example.com", "owner"], "op@example.com has no account"),
        (&["user", "role", "eve@example.com", "owner"], "there is no user eve@example.com"),
        (&["user", "remove", "eve@example.com"], "there is no user eve@example.com"),
        (&["user", "list", "--account", "missing"], "there is no account \"missing\""),
    ]);
    for (email, role) in
        [("Bob@example.com", "owner"), ("ann@example.com", "member"), ("ann@example.com", "owner")]
    {
        assert_eq!(operator.json(&["user", "role", email, role])["role"], role);
        let list = operator.json(&["user", "list"]);
        assert_eq!((&list[0]["role"], &list[1]["role"]), (&role.into(), &"owner".into()));
    }
    for email in ["Bob@Example.com", "op@example.com", "ann@example.com"] {
        let removed = operator.json(&["user", "remove", email]);
        assert_eq!(removed["email"], email.to_lowercase());
    }
    assert_eq!(operator.json(&["user", "list"]), json!([]));
}

#[test]
fn invites_are_listed_and_revoked() {
    let (operator, _) = with_users();
    operator.json(&["invite", "new@example.com", "--operator", "--account", "acme"]);
    let list = operator.json(&["user", "invites"]);
    let mut all = emails(&list);
    all.sort_unstable();
    assert_eq!(all, ["eve@example.com", "new@example.com"]);
    assert_eq!(operator.json(&["user", "invites", "--account", "acme"]).as_array().unwrap().len(), 2);
    assert!(operator.text(&["user", "invites"]).contains("command line"));
    assert_eq!(operator.json(&["user", "revoke", "EVE@example.com"])["email"], "eve@example.com");
    assert_eq!(emails(&operator.json(&["user", "invites"])), ["new@example.com"]);
    let error = operator.error(&["user", "revoke", "eve@example.com"]);
    assert!(error.contains("there is no invite of eve@example.com"), "{error}");
}

#[test]
fn usage_and_requests_of_an_account() {
    let operator = Operator::migrated();
    let account = operator.json(&["account", "create", "acme", "--quota", "5"])["id"].clone();
    let other = operator.json(&["account", "create", "other"])["id"].clone();
    let key = operator.json(&["key", "create", "--account", "acme", "--name", "web"])["id"].clone();
    let row = |account: &Value, at: &str, number: u32, status: u16| {
        let account = account.as_str().unwrap();
        let key = key.as_str().unwrap();
        operator.execute(&format!(
            "INSERT INTO attempts (attempt_id, account_id, key_id, key_name, request_id, endpoint, format, status, code,
             counted, ms, bytes, at) VALUES ({number}, '{account}', '{key}', 'web', 'request-{number}', 'render', 'pdf',
             {status}, iif({status} < 400, NULL, 'name_not_found'), 1, 12, 345, {at})"
        ));
    };
    row(&account, "unixepoch()", 1, 200);
    row(&account, "unixepoch()", 2, 422);
    row(&account, "unixepoch() - 86400 * 3", 3, 200);
    row(&other, "unixepoch()", 4, 200);

    let usage = operator.json(&["usage", "--account", "acme"]);
    assert_eq!((&usage["account"], &usage["quota"], &usage["last_month"]), (&account, &5.into(), &0.into()));
    let days = usage["days"].as_array().unwrap();
    assert_eq!((days.len(), &days[0]["attempts"], &days[0]["failures"]), (2, &2.into(), &1.into()));
    assert_eq!((&usage["keys"][0]["name"], &usage["keys"][0]["attempts"]), (&"web".into(), &3.into()));
    let today = operator.json(&["usage", "--account", "acme", "--days", "1"]);
    assert_eq!(today["days"].as_array().unwrap().len(), 1);
    let text = operator.text(&["usage", "--account", "acme"]);
    assert!(text.contains(" of 5 attempts this month") && text.contains("\nweb "), "{text}");

    let ids = |arguments: &[&str]| -> Vec<String> {
        let list = operator.json(&[&["requests", "--account", "acme"], arguments].concat());
        let id = |request: &Value| {
            request["request_id"].as_str().unwrap().trim_start_matches("request-").to_owned()
        };
        list.as_array().unwrap().iter().map(id).collect()
    };
    assert_eq!(ids(&[]), ["2", "1", "3"]);
    assert_eq!(ids(&["--limit", "1"]), ["2"]);
    assert_eq!(ids(&["--status", "failed"]), ["2"]);
    assert_eq!(ids(&["--status", "ok"]), ["1", "3"]);
    assert_eq!(ids(&["--status", "422"]), ["2"]);
    assert_eq!(ids(&["--request-id", "request-3"]), ["3"]);
    assert_eq!(ids(&["--key", key.as_str().unwrap(), "--limit", "2"]), ["2", "1"]);
    assert!(ids(&["--template", "tpl_x"]).is_empty() && ids(&["--until", "2020-01-01"]).is_empty());
    let text = operator.text(&["requests", "--account", "acme", "--status", "failed"]);
    assert!(
        text.contains("name_not_found") && text.contains("request-2") && !text.contains("request-1"),
        "{text}"
    );
}
