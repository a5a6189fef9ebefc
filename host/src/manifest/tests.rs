//! Manifests that are accepted, and the errors of others.

use super::*;

const GOOD: &str = r#"
spin_manifest_version = 2
[application]
name = "platen"
version = "0.1.0"
[variables]
farm_url = { default = "http://127.0.0.1:3001" }
farm_token = { required = true, secret = true }
[[trigger.http]]
route = "/..."
component = "edge"
[component.edge]
source = "edge.wasm"
allowed_outbound_hosts = ["{{ farm_url }}"]
sqlite_databases = ["default"]
[component.edge.variables]
farm_url = "{{ farm_url }}"
[component.edge.build]
command = "cargo build"
watch = ["edge/src/**/*.rs"]
"#;

fn parse(text: &str) -> Result<Manifest> {
    Manifest::parse(text, Path::new("spin.toml"))
}

#[test]
fn a_valid_manifest_is_read() {
    let manifest = parse(GOOD).unwrap();
    assert_eq!(manifest.application.name, "platen");
    assert_eq!(manifest.routes()[0].route, "/...");
    let edge = &manifest.components["edge"];
    assert!(edge.uses_database());
    assert_eq!(edge.build_command().as_deref(), Some("cargo build"));
}

#[test]
fn a_manifest_with_a_key_or_value_that_is_not_provided_is_refused() {
    for (name, from, to, message) in [
        (
            "key-value store",
            "sqlite_databases = [\"default\"]",
            "key_value_stores = [\"default\"]",
            "spin.toml: component \"edge\" asks for \"key_value_stores\", which platen up does not provide",
        ),
        (
            "environment",
            "[component.edge.build]",
            "[component.edge.environment]\nA = \"b\"\n[component.edge.build]",
            "spin.toml: component \"edge\" asks for \"environment\", which platen up does not provide",
        ),
        (
            "files",
            "sqlite_databases = [\"default\"]",
            "files = [\"a\"]",
            "spin.toml: component \"edge\" asks for \"files\", which platen up does not provide",
        ),
        (
            "another trigger",
            "[[trigger.http]]",
            "[[trigger.redis]]\nchannel = \"c\"\n[[trigger.http]]",
            "spin.toml: a trigger asks for \"redis\", which platen up does not provide",
        ),
        (
            "executor",
            "component = \"edge\"",
            "component = \"edge\"\nexecutor = { type = \"wagi\" }",
            "spin.toml: the trigger of \"/...\" asks for \"executor\", which platen up does not provide",
        ),
        (
            "a misspelling",
            "required = true",
            "requird = true",
            "spin.toml: variable \"farm_token\" asks for \"requird\", which platen up does not provide",
        ),
        (
            "top level",
            "[variables]",
            "[extra]\n[variables]",
            "spin.toml: the manifest asks for \"extra\", which platen up does not provide",
        ),
        (
            "another database",
            "[\"default\"]",
            "[\"default\", \"audit\"]",
            "spin.toml: component \"edge\" asks for the database \"audit\"; platen up has one, \"default\"",
        ),
        ("version 1", "version = 2", "version = 1", "spin.toml: spin_manifest_version must be 2"),
        (
            "variable without a value",
            "required = true, ",
            "",
            "spin.toml: variable \"farm_token\" needs either a default or required = true",
        ),
        (
            "a variable's name",
            "farm_token",
            "Farm__Token",
            "spin.toml: \"Farm__Token\" is not a variable's name: lower-case letters, digits and single underscores",
        ),
        (
            "no component",
            "component = \"edge\"",
            "component = \"egde\"",
            "spin.toml: the route \"/...\" leads to component \"egde\", which does not exist",
        ),
        (
            "a named segment",
            "\"/...\"",
            "\"/:user/...\"",
            "spin.toml: \"/:user/...\" is not a route: it begins with a slash, and only \"/...\" at its end is a wildcard",
        ),
        (
            "the same route",
            "[component.edge]",
            "[[trigger.http]]\nroute = \"/...\"\ncomponent = \"edge\"\n[component.edge]",
            "spin.toml: the route \"/...\" is defined twice",
        ),
    ] {
        assert!(GOOD.contains(from), "{name}");
        let error = parse(&GOOD.replacen(from, to, 1)).map(drop).unwrap_err();
        assert_eq!(error.to_string(), message, "{name}");
    }
}

#[test]
fn the_error_of_a_wrong_type_has_its_line() {
    let error =
        parse(&GOOD.replacen("source = \"edge.wasm\"", "source = { url = \"https://x\" }", 1)).unwrap_err();
    assert!(error.to_string().starts_with("spin.toml is not a Spin manifest: "), "{error}");
    assert!(error.to_string().contains("line 13"), "{error}");
    assert!(error.is::<toml::de::Error>());
}

#[test]
fn only_spins_forms_of_routes_are_valid() {
    for route in ["/", "/...", "/a", "/a/b/...", "/.well/x.y"] {
        assert!(is_route(route), "{route}");
    }
    for route in ["", "a", "/*", "/:a", "/a/.../b", "/a?b"] {
        assert!(!is_route(route), "{route}");
    }
}
