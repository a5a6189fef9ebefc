//! Templates with their values: what is printed, and what is said of a template that does not fit them.

#![expect(clippy::unwrap_used, reason = "also in functions beside the tests")]

use platen_jinja::{FillError, Filler, InvalidData, Values, check};

const MAX_BYTES: usize = 5 * 1024 * 1024;

const DATA: &str = r#"{"name":"<A&'\">","total":10.50,"big":170141183460469231731687303715884105727,"none":null,
    "empty":[],"größe":"XL","名前":"佐藤","paid":"2026-11-28T23:30:00Z","day":"2026-11-28","self":"a reserved word",
    "items":[{"n":"Pen","price":1.1,"count":2,"group":"a"},{"n":"Ink","price":"2.20","count":1,"group":"b"},
    {"n":"Pad","price":3,"count":40,"group":"a"}]}"#;

fn fill(template: &str) -> Result<String, FillError> {
    Filler::new(Values::of_data(DATA).unwrap(), "Europe/Berlin").unwrap().fill(template, MAX_BYTES)
}

#[test]
fn templates_are_filled() {
    for (template, expected) in [
        ("{{ name }}", "&lt;A&amp;&#x27;&quot;&gt;"),
        ("{{ name | safe }}", "<A&'\">"),
        ("{{ name | upper }}", "&lt;A&amp;&#x27;&quot;&gt;"),
        ("{{ total }} {{ total | number(2) }} {{ total * 2 }}", "10.5 10.50 21.0"),
        (
            "{{ big }} {{ none }} {{ größe }} {{ 名前 }}",
            "170141183460469231731687303715884105727 None XL 佐藤",
        ),
        ("{{ self }}", "a reserved word"),
        ("{% for item in items %}{{ loop.index }}{{ item.n }} {% else %}-{% endfor %}", "1Pen 2Ink 3Pad "),
        ("{% for item in empty %}x{% else %}-{% endfor %}", "-"),
        ("{{ items | sum(\"price\") }} {{ items | sum(attribute=\"count\") }} {{ [] | sum }}", "6.3 43 0"),
        (
            "{% for g in items | groupby(\"group\") %}{{ g.grouper }}{{ g.list | length }} {% endfor %}",
            "a2 b1 ",
        ),
        ("{{ 1234567.005 | number(2, \".\", \",\") }}", "1.234.567,01"),
        ("{{ 1234.5 | number(digits=1, group=\" \") }} {{ \"0.5\" | number }}", "1 234.5 1"),
        (
            "{{ paid | date }} {{ paid | date(\"%A %-d %B %Y %H:%M %Z\") }}",
            "2026-11-29 Sunday 29 November 2026 00:30 CET",
        ),
        (
            "{{ day | date(\"%d.%m.%Y\") }} {{ 0 | date(\"%H:%M:%S\") }} {{ 1.5 | date(\"%S%.f\") }}",
            "28.11.2026 01:00:00 01.5",
        ),
        (
            "{% if x %}y{% endif %}{{ x is defined }}{{ x | default(\"-\") }}{% if not x %}n{% endif %}",
            "False-n",
        ),
        ("{% macro row(item) %}<td>{{ item.n }}</td>{% endmacro %}{{ row(items[0]) }}", "<td>Pen</td>"),
        (
            "{% set t = namespace(v=0) %}{% for i in items %}{% set t.v = t.v + i.count %}{% endfor %}{{ t.v }}",
            "43",
        ),
        ("{% raw %}{{ x }}{% endraw %}{# a comment #}a{width:5%}", "{{ x }}a{width:5%}"),
        (
            "<script>{{ items[0] | tojson }}</script>",
            r#"<script>{"n": "Pen", "price": 1.1, "count": 2, "group": "a"}</script>"#,
        ),
        ("{{ name ~ \"<\" }}", "&lt;A&amp;&#x27;&quot;&gt;&lt;"),
    ] {
        assert_eq!(fill(template).as_deref(), Ok(expected), "{template}");
    }
}

#[test]
fn errors_have_the_line_and_the_expression_as_it_is_written() {
    for (template, line, expected) in [
        ("{{ total }}\n{{ nope }}", 2, "\"nope\" is undefined"),
        ("{% for item in items %}\n\n{{ item.pric }}{% endfor %}", 3, "\"item.pric\" is undefined"),
        ("{{ items[0].a.b }}", 1, "\"items[0].a\" is undefined"),
        ("{{ items[7].n }}", 1, "\"items[7]\" is undefined"),
        ("\n\n{% for x in nope %}{% endfor %}", 3, "\"nope\" is undefined"),
        ("{{ nope | upper }}", 1, "\"nope\" is undefined"),
        ("{{ nope | number(2) }}", 1, "\"nope\" is undefined"),
        ("{{ nope.x | date }}", 1, "\"nope\" is undefined"),
        ("{{ items[0].x | date }}", 1, "\"items[0].x\" is undefined"),
        ("{{ nope | sum(\"price\") }}", 1, "\"nope\" is undefined"),
        ("{{ items | sum(\"prize\") }}", 1, "\"prize\" is undefined"),
        ("{{ 1 + nope }}", 1, "\"nope\" is undefined"),
        ("{{ name ~ nope }}", 1, "\"nope\" is undefined"),
        ("{{ name | number }}", 1, "number needs a number of at most 38 digits, not '<A&\\'\">'"),
        ("{{ none | number }}", 1, "number needs a number, not none"),
        ("{{ \"1e400\" | date }}", 1, "date needs an RFC 3339 text or seconds since 1970, not '1e400'"),
        ("{{ total | number(21) }}", 1, "\"digits\" is at most 20"),
        ("{{ total | number(digit=2) }}", 1, "unknown keyword argument 'digit'"),
        ("{{ debug() }}", 1, "debug is unknown"),
        ("{{ items | pprint }}", 1, "filter pprint is unknown"),
    ] {
        let Err(FillError::Failed { line: found, message }) = fill(template) else {
            panic!("{template}: {:?}", fill(template))
        };
        assert_eq!((found, message.as_str()), (line, expected), "{template}");
    }
}

#[test]
fn bad_syntax_has_its_line() {
    assert_eq!(
        check("{% for a in b %}{% if a %}{{ a.b | number(2) }}{% elif c %}{% endif %}{% endfor %}"),
        Ok(())
    );
    for (template, line) in [
        ("a\nb{{ 1 + }}", 2),
        ("\n\n{% if a %}", 3),
        ("{{ a", 1),
        ("{% include \"x\" %}", 1),
        ("{% extends \"x\" %}", 1),
        ("{% import \"x\" as x %}", 1),
        ("\n{% autoescape false %}{% endautoescape %}", 2),
        ("\n{%- autoescape false %}{% endautoescape %}", 2),
    ] {
        assert_eq!(check(template).unwrap_err().line, line, "{template}");
    }
}

#[test]
fn a_name_that_two_values_have_is_refused() {
    let mut values = Values::of_data(DATA).unwrap();
    values.add_text("title", "T");
    values.add_number("total", "1").unwrap();
    assert_eq!(Filler::new(values, "UTC").unwrap_err(), InvalidData::Repeated("total".into()));
    let mut values = Values::default();
    values.add_number("n", "10.50").unwrap();
    values.add_text("t", "<10.50");
    let filled = Filler::new(values, "no such zone").unwrap().fill("{{ n * 2 }}{{ t }}", MAX_BYTES);
    assert_eq!(filled.unwrap(), "21.0&lt;10.50");
}
