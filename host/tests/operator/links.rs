//! `platen link`.

use super::*;

#[test]
fn a_link_is_created_signed_and_deleted() {
    let operator = Operator::migrated();
    let account = operator.json(&["account", "create", "acme"]);
    operator.write("card.html", "{{ title }}");
    let template = operator.json(&["template", "put", "--account", "acme", "--name", "Card", "card.html"]);
    let template = template["id"].as_str().expect("an id");
    let create = ["link", "create", "--account", "acme", "--template", template, "--name", "Blog"];
    let created = operator.json(&[&create, ["--format", "png,webp", "--max-age", "60"].as_slice()].concat());
    let (id, secret) =
        (created["id"].as_str().expect("an id"), created["secret"].as_str().expect("a secret"));
    for (name, value) in [
        ("account", account["id"].clone()),
        ("name", json!("Blog")),
        ("template", json!(template)),
        ("formats", json!(["png", "webp"])),
        ("max_age", json!(60)),
        ("daily_limit", json!(1000)),
        ("disabled", json!(false)),
    ] {
        assert_eq!(created[name], value, "{name}");
    }
    let list = operator.text(&["link", "list"]);
    assert!(list.contains(id) && list.contains("png,webp") && !list.contains(secret), "{list}");
    assert_eq!(operator.json(&["link", "list", "--account", "acme"])[0]["id"], json!(id));

    let signing = operator::Operator::in_directory(Path::new(env!("CARGO_BIN_EXE_platen")), operator.path());
    let signed = signing.clone().env("PLATEN_LINK_SECRET", secret);
    let sign = ["link", "sign", id, "title=Größe + 1", "author=O'Neil", "--url", "https://cards.example/"];
    let url = signed.json(&sign).expect("an address")["url"].as_str().expect("a text").to_owned();
    assert!(url.starts_with(&format!("https://cards.example/v1/links/{id}/")), "{url}");
    assert!(url.ends_with("/card.png?author=O%27Neil&title=Gr%C3%B6%C3%9Fe%20%2B%201"), "{url}");
    operator.write("secret", format!("{secret}\n"));
    let of_file = operator.text(&[sign.as_slice(), &["--secret-file", "secret"]].concat());
    assert_eq!(of_file.trim(), url);

    let rolled = operator.json(&["link", "roll", id]);
    assert_ne!(rolled["secret"], json!(secret));
    assert!(rolled["old_secret_until"].is_string(), "{rolled}");
    assert_eq!(operator.json(&["link", "disable", id])["disabled"], json!(true));
    assert_eq!(operator.json(&["link", "enable", id])["disabled"], json!(false));
    let sign = |more: &[&'static str]| [["link", "sign", id].as_slice(), more].concat();
    let with_secret = |more| [sign(more), vec!["--secret-file", "secret"]].concat();
    operator.errors(&[
        (&[create.as_slice(), &["--template", "tpl_x"]].concat(), "cannot be used multiple times"),
        (&["link", "create", "--account", "acme", "--template", "tpl_x"], "has no template"),
        (
            &["link", "create", "--account", "acme", "--template", template, "--format", "gif"],
            "png, jpg, webp",
        ),
        (&["link", "disable", "lnk_x"], "there is no link"),
        (&["link", "roll", "key_x"], "there is no link"),
        (&["key", "delete", id], "there is no key"),
        (&sign(&["a=1"]), "PLATEN_LINK_SECRET or --secret-file"),
        (&with_secret(&["a"]), "NAME=VALUE"),
        (&with_secret(&["a=1", "a=2"]), "two values"),
        (&with_secret(&["--file", "card"]), "the name of the file"),
        (&["link", "sign", &id[..41], "--secret-file", "secret"], "it is no id of a link"),
        (&["link", "sign", id, "--secret-file", "card.html"], "no secret of a link"),
    ]);
    operator.json(&["link", "delete", id]);
    assert_eq!(operator.json(&["link", "list"]), json!([]));
}
