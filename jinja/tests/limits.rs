//! Templates that try to take more than they may, and texts at random.

use std::collections::BTreeMap;

use platen_jinja::{FillError, Filler, check};
use platen_shared::{
    limits::MAX_HTML_BYTES,
    refusal::TemplateLimit::{self, Recursion, Text, Work},
};
use proptest::prelude::*;

fn filler() -> Filler {
    Filler::new("{\"a\":1}", &BTreeMap::new(), "UTC")
}

fn fill(template: &str) -> Result<String, FillError> {
    filler().fill(template, MAX_HTML_BYTES)
}

fn repeated(body: &str) -> String {
    format!(
        "{{% set ns = namespace(x=1, y=1, s='x') %}}{{% for i in range(10000) %}}{{% for j in range(10000) %}}{body}\
         {{% endfor %}}{{% endfor %}}"
    )
}

/// Those that `minijinja` does not count before it works are tested in the process of a farm.
#[test]
fn templates_end_within_their_limits() {
    let long = "x".repeat(100_000);
    let table: Vec<(String, TemplateLimit)> = [
        ("", Work),
        ("xxxxxxxxxxxxxxxxxxxxxxxxxxx", Text),
        ("{% set ns.s = ns.s ~ ns.s %}", Work),
        ("{% set ns.s = 'x' * 100000 %}", Work),
        ("{% set ns.s = range(10000) | sum %}", Work),
        ("{% set ns.s = range(10000) | map('number', 20) | list %}", Work),
        (
            "{% set ns.s = range(10000) | map('date', '%c%c%c%c%c%c%c%c%c%c%c%c%c%c%c%c%c%c%c%c') | list %}",
            Work,
        ),
        ("{% set ns.s = range(10000) | sort(reverse=true) | join(',') %}", Work),
        ("{% set ns.s = ('x' * 50000) | replace('x', 'yy') | upper | title | list | length %}", Work),
    ]
    .into_iter()
    .map(|(body, limit)| (repeated(body), limit))
    .chain([
        ("{{ 'x' * 10000000 }}".to_owned(), Text),
        ("{{ 'x' * 1000000000 }}".to_owned(), Work),
        ("{{ [1] * 1000000000 }}".to_owned(), Work),
        ("{% for i in range(1000000000) %}{% endfor %}".to_owned(), Work),
        ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}".to_owned(), Recursion),
        ("{% for i in [1] recursive %}{{ loop([1]) }}{% endfor %}".to_owned(), Recursion),
        (format!("{{% set s = '{long}' %}}{{% for i in range(100) %}}{{{{ s }}}}{{% endfor %}}"), Text),
    ])
    .collect();
    for (template, limit) in table {
        assert_eq!(fill(&template), Err(FillError::Exceeded(limit)), "{template:.200}");
    }
}

#[test]
fn the_parser_is_not_given_what_it_would_recurse_on() {
    let many = |text: &str| text.repeat(100_000);
    for expression in [
        "-", "not ", "1+", "1 ~", "1 and ", "1 ** ", "(", "[", "{1:", "a[", "a(", "1 if ", "a.", "[1,",
        "f(1,",
    ]
    .map(many)
    .into_iter()
    .chain(
        ["a|f", "a.b", "a[0]", "a()", "a is defined is defined"].map(|one| one.to_owned() + &many(&one[1..])),
    ) {
        assert!(check(&format!("{{{{ {expression}1 }}}}")).is_err(), "{expression:.30}");
        assert!(check(&format!("{{% set x = {expression}1 %}}")).is_err(), "{expression:.30}");
    }
    let elifs = |count: usize| format!("{{% if a %}}{}{{% endif %}}", "{% elif a %}".repeat(count));
    assert!(check(&elifs(100)).is_ok());
    assert!(check(&elifs(101)).is_err());
    assert!(check(&elifs(60).repeat(100)).is_ok());
    assert!(check(&many("{% if a %}")).is_err());
    assert!(check(&many("{% for a in b %}")).is_err());
    assert!(check(&"{{ a }}".repeat(20_000)).is_ok());
    assert!(check(&"{{ a }}".repeat(50_000)).is_err());
    let list: Vec<String> = (0..5000).map(|n| format!("{{\"a\": -{n}, \"b\": [1 + 2]}}")).collect();
    assert_eq!(check(&format!("{{% set x = [{}] %}}", list.join(", "))).map(drop), Ok(()));
    let sum = |count: usize| format!("{{{{ 1{} }}}}", " + 1".repeat(count));
    assert_eq!(check(&sum(200)).map(drop), Ok(()));
    assert!(check(&sum(201)).is_err());
}

#[test]
fn the_steps_are_those_of_all_texts_of_a_job() {
    let mut filler = filler();
    let template = "{% for i in range(100) %}{% for j in range(500) %}{% endfor %}{% endfor %}";
    let ends: Vec<bool> = (0..20).map(|_| filler.fill(template, MAX_HTML_BYTES).is_ok()).collect();
    assert!(ends[0] && !ends[19], "{ends:?}");
}

#[test]
fn a_text_has_its_maximum() {
    let fill = |text: &str, max_bytes| filler().fill(text, max_bytes);
    assert_eq!(fill("{{ 'é' * 4 }}", 8).unwrap(), "éééé");
    assert_eq!(fill("{{ 'é' * 4 }}", 7), Err(FillError::Exceeded(Text)));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_panics(parts in proptest::collection::vec(part(), 0..40)) {
        let template = parts.concat();
        let is_good = check(&template).is_ok();
        let filled = fill(&template);
        prop_assert!(is_good || filled.is_err());
        prop_assert!(filled.is_err() || filled.is_ok_and(|text| text.len() <= MAX_HTML_BYTES));
    }
}

fn part() -> impl Strategy<Value = String> {
    let known = [
        "{{",
        "}}",
        "{%",
        "%}",
        "{#",
        "#}",
        "{%-",
        "-}}",
        "for",
        "in",
        "if",
        "elif",
        "else",
        "endif",
        "endfor",
        "set",
        "macro",
        "endmacro",
        "raw",
        "endraw",
        "call",
        "endcall",
        "filter",
        "endfilter",
        "with",
        "do",
        "autoescape",
        "recursive",
        "a",
        "range(10000)",
        "loop",
        "ns",
        "namespace()",
        "|",
        "number(2)",
        "date",
        "sum",
        "tojson",
        "sort",
        "batch(3)",
        "list",
        "*",
        "~",
        "+",
        "-",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ".",
        ",",
        ":",
        "=",
        "==",
        "is",
        "not",
        "1",
        "9999999999",
        "'x'",
        "\"",
        "\\",
        "\n",
        "é",
        "\u{301}",
        "{{ a }}",
        "{% for i in range(9) %}",
        "{% endfor %}",
        "{% set a = [a] %}",
    ];
    prop_oneof![
        8 => proptest::sample::select(known.to_vec()).prop_map(|part| format!("{part} ")),
        1 => any::<String>(),
    ]
}
