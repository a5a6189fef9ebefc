//! Templates with their values: what is printed, and what is said of a template that does not fit them.

#![expect(clippy::unwrap_used, reason = "also in functions beside the tests")]

use std::collections::BTreeMap;

use platen_jinja::{FillError, Filler, check};
use platen_shared::{
    job::TemplateData,
    limits::{MAX_DATA_BYTES, MAX_DATA_LEVELS, MAX_HTML_BYTES},
};

const DATA: &str = r#"{"name":"<A&'\">","total":10.50,"big":170141183460469231731687303715884105727,"none":null,
    "empty":[],"größe":"XL","名前":"佐藤","paid":"2026-11-28T23:30:00Z","day":"2026-11-28","self":"a reserved word",
    "items":[{"n":"Pen","price":1.1,"count":2,"group":"a"},{"n":"Ink","price":"2.20","count":1,"group":"b"},
    {"n":"Pad","price":3,"count":40,"group":"a"}],
    "for":{"if":"a","in":{"not":"b"},"class":"c","items":"d","a-b":"e","keys":"f"},"range":"shadowed","loop":"outer",
    "true":"no","ist":true,"zero":0,"nothing":"","small":1e-7,"large":1.7e308,"wide":340282366920938463463374607431768211455}"#;

fn fill(template: &str) -> Result<String, FillError> {
    fill_with(DATA, template)
}

fn fill_with(data: &str, template: &str) -> Result<String, FillError> {
    // Each is one that a request may have.
    let data: TemplateData = serde_json::from_str(data).unwrap();
    Filler::new(data.as_json(), &BTreeMap::new(), "Europe/Berlin").fill(template, MAX_HTML_BYTES)
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
        ("{{ \"</script>&'\" | tojson }}", r#""\u003c/script\u003e\u0026\u0027""#),
        ("<a href=\"{{ 'javascript:\"x' }}\">", "<a href=\"javascript:&quot;x\">"),
        ("{{ \"a b&c/é\" | urlencode }}", "a%20b%26c&#x2f;%C3%A9"),
        ("{{ \"\" }}{{ nothing }}{{ zero }}{{ ist }}", "0True"),
        (
            "{% if none %}y{% else %}n{% endif %}{% if nothing %}y{% else %}n{% endif %}{% if zero %}y{% else %}n{% endif %}",
            "nnn",
        ),
        ("{{ none is none }} {{ nope is undefined }} {{ items[0].x is defined }}", "True True False"),
        (
            "{{ none | default(\"-\") }} {{ none | default(\"-\", true) }} {{ nope | default(\"-\") }}",
            "None - -",
        ),
        (
            "{{ small }} {{ wide }} {{ -9223372036854775808 }}",
            "0.0000001 340282366920938463463374607431768211455 -9223372036854775808",
        ),
        (
            "{{ big - 1 }} {{ big | number(0) }}",
            "170141183460469231731687303715884105726 170141183460469231731687303715884105727",
        ),
        ("{{ range }} {{ loop }} {% for i in items %}{{ loop.index }}{% endfor %}", "shadowed outer 123"),
        (
            "{{ for.if }}{{ for.in.not }}{{ for[\"class\"] }}{{ for[\"a-b\"] }}{{ for.items }}{{ for.keys }}",
            "abcedf",
        ),
        ("{% for x in none %}x{% else %}-{% endfor %}", "-"),
        ("{{ true }} {{ for_ | default(\"-\") }}", "True -"),
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
        ("{% for x in total %}{% endfor %}", 1, "number is not iterable"),
        ("{{ none.x }}", 1, "\"none.x\" is undefined"),
        ("{{ total.x }}", 1, "\"total.x\" is undefined"),
        ("{{ name.x.y }}", 1, "\"name.x\" is undefined"),
        ("{{ name + 1 }}", 1, "tried to use + operator on unsupported types string and number"),
        ("{{ items * 1.5 }}", 1, "sequences and iterables can only be multiplied with integers"),
        ("\n{{ 1 / 0 }}", 2, "unable to calculate 1 / 0"),
        ("{{ 1 % 0 }}", 1, "unable to calculate 1 % 0"),
        ("{{ name() }}", 1, "value of type string is not callable"),
        ("{{ name.upper() }}", 1, "string has no method named upper"),
        ("{{ größ }}", 1, "\"größ\" is undefined"),
        ("{{ items | nofilter }}", 1, "filter nofilter is unknown"),
        ("{{ items is notest }}", 1, "test notest is unknown"),
        ("{{ total | number(\"x\") }}", 1, "cannot convert string to u32"),
        ("{{ total | number(-1) }}", 1, "cannot convert number to u32"),
        ("{{ total | number(1.5) }}", 1, "cannot convert number to u32"),
        ("{{ total | number(2, 3) }}", 1, "value is not a string"),
        ("{{ total | number(2, digits=3) }}", 1, "unknown keyword argument 'digits'"),
        ("{{ total | number(2, \"\", \"\", 1) }}", 1, "too many arguments"),
        ("{{ day | date(5) }}", 1, "value is not a string"),
        ("{{ day | date(\"%Y\", 1) }}", 1, "too many arguments"),
        ("{{ day | date(form=\"%Y\") }}", 1, "unknown keyword argument 'form'"),
        (
            "{{ day | date(\"%!\") }}",
            1,
            "date cannot use \"%!\": strftime formatting failed: found unrecognized specifier directive `!`",
        ),
        ("{{ items | date }}", 1, "date needs an RFC 3339 text or seconds since 1970, not sequence"),
        (
            "{{ \"2026-02-30\" | date }}",
            1,
            "date needs an RFC 3339 text or seconds since 1970, not '2026-02-30'",
        ),
        (
            "{{ \"2026-11-28T10:00:00\" | date }}",
            1,
            "date needs an RFC 3339 text or seconds since 1970, not '2026-11-28T10:00:00'",
        ),
        ("{{ large | date }}", 1, "date needs an RFC 3339 text or seconds since 1970, not 1.7e308"),
        ("{{ items | sum }}", 1, "sum needs a number, not map"),
        ("{{ items | sum(3) }}", 1, "value is not a string"),
        ("{{ items | sum(\"n\") }}", 1, "sum needs a number of at most 38 digits, not 'Pen'"),
        ("{{ total | sum }}", 1, "number is not iterable"),
        (
            "{{ wide | number }}",
            1,
            "number needs a number of at most 38 digits, not 340282366920938463463374607431768211455",
        ),
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
    let names = check(
        "{% for a in b.x %}{% if a %}{{ a.b | number(2) }}{% elif c %}{% endif %}{{ range(2) }}{% endfor %}",
    );
    assert_eq!(names.unwrap(), ["b", "c"].map(str::to_owned).into());
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
fn values_have_the_size_and_the_levels_that_a_request_may_have() {
    let deep = "{\"a\":".repeat(MAX_DATA_LEVELS) + "1" + &"}".repeat(MAX_DATA_LEVELS);
    assert_eq!(fill_with(&deep, &format!("{{{{ {}a }}}}", "a.".repeat(MAX_DATA_LEVELS - 1))).unwrap(), "1");
    assert_eq!(fill_with(&deep, "{{ a }}").unwrap().matches("&#x27;a&#x27;").count(), MAX_DATA_LEVELS - 1);
    let row = "{\"n\":\"Pen\",\"price\":1.1},";
    let rows = (MAX_DATA_BYTES - 20) / row.len();
    let large = format!("{{\"rows\":[{}]}}", row.repeat(rows).trim_end_matches(','));
    let sum = "{{ rows | length }} {{ rows[-1].n }} {{ rows[:5] | sum(\"price\") }}";
    assert_eq!(fill_with(&large, sum).unwrap(), format!("{rows} Pen 5.5"));
    let text = format!("{{\"t\":\"{}\"}}", "x".repeat(MAX_DATA_BYTES - 8));
    assert_eq!(fill_with(&text, "{{ t }}").map(|text| text.len()), Ok(MAX_DATA_BYTES - 8));
}
