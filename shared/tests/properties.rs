//! Properties of everything that reads what callers send: no panic, limits hold, and what is printed is read again as
//! the same value. `PROPTEST_CASES` is the number of cases of each; `bench/fuzz` runs them for longer.

use platen_shared::{
    endpoint::Endpoint,
    file_name,
    id::AccountId,
    job::{PdfStandard, RenderJob},
    key::{ApiKey, RANDOM_BYTES},
    length::Length,
    limits,
    locale::{Locale, TimeZone},
    page_ranges::PageRanges,
    request::{FieldKind, FieldName, RenderRequest, SavedTemplate, TemplateOptions},
    template::{self, FillError, Language},
    url_rule,
};
use proptest::{collection::vec, option, prelude::*, sample::select};
use serde_json::{Value, json};

fn language() -> impl Strategy<Value = Language> {
    select(Language::ALL.to_vec())
}

/// Any JSON, not deep.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<f64>().prop_map(|number| json!(number)),
        any::<i64>().prop_map(|number| json!(number)),
        ".{0,12}".prop_map(Value::String),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::Array),
            vec((".{0,6}", inner), 0..4).prop_map(|members| members.into_iter().collect()),
        ]
    })
}

fn length() -> impl Strategy<Value = Value> {
    let text = (0.0..500_f64, select(vec!["px", "in", "cm", "mm", "pt", "em", ""]));
    prop_oneof![
        (0.0..2_000_f64).prop_map(|pixels| json!(pixels)),
        text.prop_map(|(number, unit)| json!(format!("{number}{unit}"))),
        select(vec!["10mm", "1in", ".5cm", "1.pt", "-1mm", "1 mm", "1e3px", "NaNmm"])
            .prop_map(|text| json!(text)),
    ]
}

/// Values of a field that are likely to be valid, or just not.
fn value(name: FieldName) -> BoxedStrategy<Value> {
    match name.spec().kind {
        FieldKind::Boolean => any::<bool>().prop_map(Value::Bool).boxed(),
        FieldKind::Choice(names) => {
            prop_oneof![4 => select(names.to_vec()).prop_map(|text| json!(text)), 1 => any_json()].boxed()
        }
        FieldKind::Number { min, max, whole } => {
            let number = prop_oneof![min..=max, Just(min), Just(max), Just(max + 1.0), min - 1.0..=max];
            #[expect(clippy::cast_possible_truncation, reason = "the ranges are small")]
            let number =
                number.prop_map(move |number| if whole { json!(number as i64) } else { json!(number) });
            number.boxed()
        }
        FieldKind::Length => length().boxed(),
        FieldKind::Margin => {
            let side = || option::of(length());
            let sides = (side(), side(), side(), side(), option::weighted(0.05, length()));
            let object = sides.prop_map(|(top, right, bottom, left, other)| {
                let sides =
                    [("top", top), ("right", right), ("bottom", bottom), ("left", left), ("other", other)];
                sides.into_iter().filter_map(|(name, side)| Some((name.to_owned(), side?))).collect::<Value>()
            });
            prop_oneof![length(), object].boxed()
        }
        FieldKind::Clip => (0.0..900_f64, -1.0..900_f64, 0.5..900_f64, 1.0..900_f64)
            .prop_map(|(x, y, width, height)| json!({ "x": x, "y": y, "width": width, "height": height }))
            .boxed(),
        FieldKind::Variables => {
            let value =
                prop_oneof![".{0,9}".prop_map(Value::String), any::<f64>().prop_map(|number| json!(number))];
            vec(("[a-z]{1,3}", value), 0..5).prop_map(|members| members.into_iter().collect()).boxed()
        }
        FieldKind::Data => select(vec![json!({ "a": [1, 2.5, { "é": null }] }), json!([1])]).boxed(),
        FieldKind::Metadata => select(vec![
            json!({ "title": "\u{0} A & B", "author": "", "date": "2026-11-27T06:34:51.5+01:00" }),
            json!({ "language": "de-CH", "date": "2026-02-30T00:00:00Z" }),
        ])
        .boxed(),
        FieldKind::Standard => {
            let both = (select(PdfStandard::NAMES.to_vec()), select(PdfStandard::NAMES.to_vec()));
            let both = both.prop_map(|(first, second)| json!([first, second]));
            prop_oneof![select(PdfStandard::NAMES.to_vec()).prop_map(|name| json!(name)), both].boxed()
        }
        FieldKind::Attachments => {
            let (name, content) = (select(vec!["a", "b", "../c"]), select(vec!["", "QQ==", "QR=="]));
            let file =
                (name, content).prop_map(|(name, content)| json!({ "name": name, "content": content }));
            vec(file, 0..3).prop_map(Value::Array).boxed()
        }
        FieldKind::Assets => {
            let (path, name) = (select(vec!["a", "b/c", "../c"]), select(vec!["content", "text"]));
            let file = (path, name, select(vec!["", "QQ==", "QR=="]))
                .prop_map(|(path, name, content)| (path.to_owned(), json!({ name: content })));
            vec(file, 0..3).prop_map(|files| files.into_iter().collect()).boxed()
        }
        FieldKind::Protection => {
            (".{0,3}", select(vec![json!([]), json!(["copy", "fill"]), json!(["copy", "copy"])]))
                .prop_map(|(password, allow)| json!({ "userPassword": password, "allow": allow }))
                .boxed()
        }
        FieldKind::Texts { .. } => vec(
            select(vec!["ads.example", "*.example.com", "10.0.0.1", "pageErrors", "failedRequests"]),
            0..3,
        )
        .prop_map(|names| json!(names))
        .boxed(),
        FieldKind::Text { .. } => {
            let known = select(vec![
                "https://example.com/",
                "tpl_0123456789abcdefghij",
                "1-3, 5",
                "7",
                "3-1",
                "de-CH",
                "Europe/Zurich",
                "#a > b",
                "body { color: red }",
                "<p>{{ a }} {{{ b }}}",
            ]);
            prop_oneof![3 => known.prop_map(|text| json!(text)), 1 => ".{0,40}".prop_map(Value::String)]
                .boxed()
        }
    }
}

/// An object of some fields, most of them with values of their kind.
fn body() -> impl Strategy<Value = Value> {
    let fields: Vec<_> = FieldName::all()
        .map(|name| {
            let weight = if matches!(name, FieldName::Html | FieldName::TemplateId) { 0.8 } else { 0.1 };
            option::weighted(weight, value(name))
                .prop_map(move |value| value.map(|value| (name.to_string(), value)))
        })
        .collect();
    let other = option::weighted(0.05, (".{0,12}", any_json()));
    (fields, other).prop_map(|(fields, other)| fields.into_iter().flatten().chain(other).collect::<Value>())
}

fn endpoint() -> impl Strategy<Value = Endpoint> {
    select(vec![Endpoint::Render, Endpoint::Template])
}

/// Reads a body; what it is refused for is complete.
fn parse(endpoint: Endpoint, body: &[u8]) -> Option<RenderRequest> {
    match RenderRequest::parse(endpoint, body) {
        Ok(request) => Some(request),
        Err(error) => {
            assert!(!error.to_string().is_empty() && error.reason().status() == 400, "{error:?}");
            assert!(error.to_string().len() < 2_000, "{error}");
            None
        }
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn bodies_of_bytes_are_read_or_refused(endpoint in endpoint(), body in vec(any::<u8>(), 0..200)) {
        parse(endpoint, &body);
    }

    #[test]
    fn bodies_of_text_are_read_or_refused(
        endpoint in endpoint(),
        body in prop_oneof![
            r#"[{}\[\]":,0-9eE+.\\untfalsehmwidgr -]{0,80}"#,
            any_json().prop_map(|json| json.to_string()),
        ],
    ) {
        parse(endpoint, body.as_bytes());
    }

    #[test]
    fn changed_bodies_are_read_or_refused(
        endpoint in endpoint(),
        body in body(),
        position in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut bytes = body.to_string().into_bytes();
        let position = position.index(bytes.len());
        bytes[position] = byte;
        parse(endpoint, &bytes);
    }

    #[test]
    fn a_job_is_read_as_it_was_printed(endpoint in endpoint(), language in language(), body in body()) {
        let Some(request) = parse(endpoint, body.to_string().as_bytes()) else { return Ok(()) };
        let account: AccountId = serde_json::from_value(json!("acc_0123456789abcdefghij")).unwrap();
        let options = TemplateOptions::default();
        let template = SavedTemplate { html: "<p>{{ a }}</p>", language, options: &options };
        let template = (endpoint == Endpoint::Template).then_some(template);
        let placeholders = template.map(|template| template::placeholders(template.html));
        let checked = request.check_values(language, placeholders.unwrap_or_default());
        match request.into_job(account, template) {
            Ok(job) => {
                prop_assert!(checked.is_ok());
                let printed = serde_json::to_string(&job).unwrap();
                let read: RenderJob = serde_json::from_str(&printed).unwrap();
                prop_assert_eq!(&read, &job);
                prop_assert_eq!(serde_json::to_string(&read).unwrap(), printed);
            }
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }

    #[test]
    fn templates_are_filled_within_the_limit(
        template in r"([{}]{0,4}( ?[a-c.é]{0,2} ?)[{}]{0,4}|.{0,6}){0,8}",
        value in ".{0,20}",
        max_bytes in 0..200_usize,
    ) {
        let names = template::placeholders(&template);
        match template::fill(&template, max_bytes, |_| Some(value.as_str())) {
            Ok(filled) => {
                prop_assert!(filled.len() <= max_bytes);
                prop_assert!(!names.is_empty() || filled == template);
            }
            Err(error) => prop_assert!(matches!(error, FillError::TooLarge)),
        }
        let unknown = template::fill(&template, usize::MAX, |_| None);
        match unknown {
            Ok(filled) => prop_assert!(names.is_empty() && filled == template),
            Err(error) => prop_assert!(matches!(error, FillError::Missing(missing) if missing == names)),
        }
        // A placeholder that is replaced by itself changes nothing.
        if let [name] = names.as_slice() {
            let same = format!("{{{{{{{name}}}}}}}");
            let once = template::fill(&template, usize::MAX, |_| Some(same.as_str()));
            prop_assert!(once.is_ok_and(|filled| !template::placeholders(&filled).is_empty()));
        }
    }

    #[test]
    fn a_value_cannot_leave_its_text(value in ".{0,60}") {
        let filled = template::fill("<p title=\"{{ a }}\">{{ a }}</p>", usize::MAX, |_| Some(value.as_str())).unwrap();
        prop_assert_eq!(filled.matches(['<', '>']).count(), 4);
        prop_assert_eq!(filled.matches('"').count(), 2);
    }

    #[test]
    fn templates_are_unpacked_as_they_were_packed(html in ".{0,300}", bytes in vec(any::<u8>(), 0..100)) {
        prop_assert_eq!(template::unpack(&template::pack(&html)).unwrap(), html);
        let _ = template::unpack(&bytes);
    }

    #[test]
    fn file_names_are_safe(text in ".{0,120}") {
        let Some(slug) = file_name::slugify(&text) else { return Ok(()) };
        prop_assert!(slug.len() <= limits::MAX_FILE_STEM_CHARS && !slug.starts_with('-') && !slug.ends_with('-'));
        prop_assert!(!slug.contains("--"), "{}", slug);
        prop_assert!(slug.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'));
        prop_assert_eq!(file_name::slugify(&slug), Some(slug));
    }

    #[test]
    fn keys_are_read_as_they_were_printed(random in any::<[u8; RANDOM_BYTES]>(), position in 0..42_usize, other in "[0-9a-zA-Z]") {
        let key = ApiKey::from_random(random);
        let text = key.expose().to_owned();
        prop_assert_eq!(ApiKey::parse(&text), Some(key));
        let mut changed = text.clone();
        changed.replace_range(position..=position, &other);
        prop_assert!(changed == text || ApiKey::parse(&changed).is_none(), "one changed character");
    }

    #[test]
    fn page_ranges_are_read_as_they_were_printed(text in "[0-9]{0,3}( ?[-,] ?[0-9]{1,4}){0,6}") {
        let Ok(ranges) = text.parse::<PageRanges>() else { return Ok(()) };
        let printed = ranges.to_string();
        prop_assert_eq!(printed.parse::<PageRanges>().unwrap(), ranges.clone());
        // The same pages as counted one by one.
        let mut pages = std::collections::BTreeSet::new();
        for part in printed.split(',') {
            let (from, to) = part.trim().split_once('-').unwrap_or((part.trim(), part.trim()));
            pages.extend(from.parse::<u32>().unwrap()..=to.parse::<u32>().unwrap());
        }
        prop_assert_eq!(ranges.count(), pages.len() as u64);
        prop_assert_eq!(Some(&ranges.last()), pages.last());
    }

    #[test]
    fn lengths_are_read_as_they_were_printed(number in 0.0..1e6_f64, unit in select(vec!["px", "in", "cm", "mm", "pt"])) {
        let length = Length::parse(&format!("{number}{unit}")).unwrap();
        prop_assert_eq!(Length::parse(&length.to_string()), Some(length));
        prop_assert!(length.pixels().is_finite() && length.pixels() >= 0.0);
    }

    #[test]
    fn other_text_is_read_or_refused(text in ".{0,60}") {
        prop_assert!(ApiKey::parse(&text).is_none());
        let _ = text.parse::<PageRanges>();
        let _ = Length::parse(&text);
        if let Ok(locale) = Locale::try_from(text.clone()) {
            assert!(locale.as_str().eq_ignore_ascii_case(&text));
            assert_eq!(Locale::try_from(locale.as_str().to_owned()).unwrap(), locale);
        }
        let _ = TimeZone::try_from(text.clone()).map(|zone| assert!(TimeZone::names().any(|name| name == zone.as_str())));
        if let Ok(url) = url_rule::parse(&text) {
            assert!(matches!(url.scheme(), "http" | "https") && url.username().is_empty() && url.has_host());
        }
    }

    #[test]
    fn urls_lead_to_public_hosts(
        scheme in select(vec!["http", "https", "HTTP", "ftp", "file"]),
        user in option::weighted(0.1, "[a-z:@]{1,5}"),
        host in prop_oneof![
            "[a-z0-9.-]{1,20}",
            any::<u32>().prop_map(|number| number.to_string()),
            any::<[u8; 4]>().prop_map(|parts| parts.map(|part| part.to_string()).join(".")),
            any::<[u8; 4]>().prop_map(|parts| parts.map(|part| format!("0x{part:x}")).join(".")),
            any::<[u16; 8]>().prop_map(|parts| format!("[{}]", parts.map(|part| format!("{part:x}")).join(":"))),
            select(vec!["localhost", "a.localhost", "127.1", "[::1]", "[::ffff:10.0.0.1]", "x.internal", "0"]).prop_map(str::to_owned),
        ],
        rest in "(:[0-9]{0,6})?(/.{0,9})?",
    ) {
        let user = user.map(|user| format!("{user}@")).unwrap_or_default();
        let Ok(url) = url_rule::parse(&format!("{scheme}://{user}{host}{rest}")) else { return Ok(()) };
        prop_assert!(url.username().is_empty() && url.password().is_none());
        match url.host().unwrap() {
            url::Host::Domain(name) => prop_assert!(!url_rule::is_local_name(name), "{}", url),
            url::Host::Ipv4(address) => prop_assert!(
                !address.is_loopback() && !address.is_private() && !address.is_unspecified() && !address.is_link_local(),
                "{}", url
            ),
            url::Host::Ipv6(address) => prop_assert!(!address.is_loopback() && !address.is_unspecified(), "{}", url),
        }
    }
}

/// Failing cases are printed; they are not kept in a file.
fn config() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }
}
