//! Templates that try to take more than they may, and texts at random.

#![expect(clippy::unwrap_used, reason = "also in functions beside the tests")]

use std::time::{Duration, Instant};

use platen_jinja::{FillError, Filler, Limit, Values, check, fill_all};
use proptest::prelude::*;

const MAX_BYTES: usize = 5 * 1024 * 1024;
/// 200 ms in a release build. A debug build takes three times as long, and tests run beside others.
const MAX_TIME: Duration =
    if cfg!(debug_assertions) { Duration::from_secs(5) } else { Duration::from_millis(400) };

/// Fills a template with `{"a":1}`, and drops its values, on the stack of a fill.
fn fill(template: String) -> (Result<usize, FillError>, Duration) {
    fill_all(move || {
        let began = Instant::now();
        let values = Values::of_data("{\"a\":1}").unwrap();
        let filled = Filler::new(values, "UTC").unwrap().fill(&template, MAX_BYTES);
        (filled.map(|text| text.len()), began.elapsed())
    })
    .unwrap()
}

fn repeated(body: &str) -> String {
    format!(
        "{{% set ns = namespace(x=1, y=1, s='x') %}}{{% for i in range(10000) %}}{{% for j in range(10000) %}}{body}\
         {{% endfor %}}{{% endfor %}}"
    )
}

#[test]
fn hostile_templates_end_within_their_limits() {
    let long = "x".repeat(100_000);
    let table: Vec<(String, Limit)> = [
        ("", Limit::Work),
        ("xxxxxxxxxxxxxxxxxxxxxxxxxxx", Limit::Text),
        ("{% set ns.s = ns.s ~ ns.s %}", Limit::Work),
        ("{% set ns.s = [ns.s] + [ns.s] %}", Limit::Work),
        ("{% set ns.x = [ns.x] %}", Limit::Work),
        ("{% set ns.x = {1: ns.x} %}", Limit::Work),
        ("{% set ns.x = (1, ns.x) %}", Limit::Work),
        ("{% set ns.x = [ns.x, ns.x] %}{% set ns.s = ns.x == ns.x %}", Limit::Work),
        ("{% set ns.s = 'x' * 100000 %}", Limit::Work),
        ("{% set ns.s = range(10000) | sum %}", Limit::Work),
        ("{% set ns.s = range(10000) | map('number', 20) | list %}", Limit::Work),
        (
            "{% set ns.s = range(10000) | map('date', '%c%c%c%c%c%c%c%c%c%c%c%c%c%c%c%c%c%c%c%c') | list %}",
            Limit::Work,
        ),
        ("{% set ns.s = range(10000) | sort(reverse=true) | join(',') %}", Limit::Work),
        ("{% set ns.s = ('x' * 50000) | replace('x', 'yy') | upper | title | list | length %}", Limit::Work),
    ]
    .into_iter()
    .map(|(body, limit)| (repeated(body), limit))
    .chain([
        ("{{ 'x' * 10000000 }}".to_owned(), Limit::Text),
        ("{{ 'x' * 1000000000 }}".to_owned(), Limit::Work),
        ("{{ [1] * 1000000000 }}".to_owned(), Limit::Work),
        ("{% for i in range(1000000000) %}{% endfor %}".to_owned(), Limit::Work),
        ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}".to_owned(), Limit::Recursion),
        ("{% for i in [1] recursive %}{{ loop([1]) }}{% endfor %}".to_owned(), Limit::Recursion),
        (
            format!("{{% set s = '{long}' %}}{{% for i in range(100) %}}{{{{ s }}}}{{% endfor %}}"),
            Limit::Text,
        ),
    ])
    .collect();
    for (template, limit) in table {
        let shown: String = template.chars().take(200).collect();
        let (filled, time) = fill(template);
        assert_eq!(filled, Err(FillError::Exceeded(limit)), "{shown}");
        println!("{time:?}: {shown}");
        assert!(time < MAX_TIME, "{time:?}: {shown}");
    }
}

#[test]
fn values_that_a_template_nests_do_not_overflow_the_stack() {
    for end in [
        "",
        "{{ ns.x == ns.y }}",
        "{{ ns.x }}",
        "{{ ns.x | tojson }}",
        "{{ [ns.x, ns.y] | sort | length }}",
        "{{ ns.x in [ns.y] }}",
    ] {
        let template = format!(
            "{{% set ns = namespace(x=1, y=1) %}}{{% for i in range(500) %}}{{% for j in range(100) %}}\
             {{% set ns.x = [ns.x] %}}{{% set ns.y = [ns.y] %}}{{% endfor %}}{{% endfor %}}{end}"
        );
        let (filled, time) = fill(template);
        println!("{end}: {time:?} {filled:?}");
        assert!(time < MAX_TIME, "{time:?}: {end}");
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
    assert_eq!(check(&elifs(100)), Ok(()));
    assert!(check(&elifs(101)).is_err());
    assert_eq!(check(&elifs(60).repeat(100)), Ok(()));
    assert!(check(&many("{% if a %}")).is_err());
    assert!(check(&many("{% for a in b %}")).is_err());
    assert!(check(&"{{ a }}".repeat(20_000)).is_ok());
    assert!(check(&"{{ a }}".repeat(50_000)).is_err());
    let list: Vec<String> = (0..5000).map(|n| format!("{{\"a\": -{n}, \"b\": [1 + 2]}}")).collect();
    assert_eq!(check(&format!("{{% set x = [{}] %}}", list.join(", "))), Ok(()));
    let sum = |count: usize| format!("{{{{ 1{} }}}}", " + 1".repeat(count));
    assert_eq!(check(&sum(200)), Ok(()));
    assert!(check(&sum(201)).is_err());
}

#[test]
fn the_steps_are_those_of_all_texts_of_a_job() {
    let filled = fill_all(|| {
        let mut filler = Filler::new(Values::default(), "UTC").unwrap();
        let template = "{% for i in range(100) %}{% for j in range(500) %}{% endfor %}{% endfor %}";
        (0..20).map(|_| filler.fill(template, MAX_BYTES).is_ok()).collect::<Vec<_>>()
    })
    .unwrap();
    assert!(filled[0] && !filled[19], "{filled:?}");
}

#[test]
fn a_text_has_its_maximum() {
    let fill = |text: &str, max| Filler::new(Values::default(), "UTC").unwrap().fill(text, max);
    assert_eq!(fill("{{ 'é' * 4 }}", 8).unwrap(), "éééé");
    assert_eq!(fill("{{ 'é' * 4 }}", 7), Err(FillError::Exceeded(Limit::Text)));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_panics(parts in proptest::collection::vec(part(), 0..40)) {
        let template = parts.concat();
        let is_good = check(&template).is_ok();
        let (filled, time) = fill(template);
        prop_assert!(is_good || filled.is_err());
        prop_assert!(filled.is_err() || filled.is_ok_and(|bytes| bytes <= MAX_BYTES));
        prop_assert!(time < MAX_TIME, "{:?}", time);
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
