//! Signatures and spellings of addresses.

use proptest::{collection::btree_map, prelude::*};

use super::*;

/// Signed texts and their signatures, computed by another program with the id and the secret from 32 zero bytes each.
const SIGNED: [(&str, &str); 3] = [
    ("card.png", "Gk2p3Eo3uN3v9lV8IOavw7CBETQUpHuSZUjw2dzEVkc"),
    (
        "card.png?author=O%27Neil&title=Gr%C3%B6%C3%9Fe%20%2B%201",
        "47K2p96GXDoX4D2if43YegR2UHCYQSUhfARpOXXHVZg",
    ),
    ("a-1.pdf?a=&b=~._-", "6TPE11ZUyAJTFXiK437A1u8a5z-JBFkOhWhXeKHk7b4"),
];
const ID: &str = "lnk_000000000000000000000000000000001tCLNu";

fn secret() -> LinkSecret {
    LinkSecret::from_random([0; RANDOM_BYTES])
}

fn parse(rest: &str) -> Result<LinkAddress, InvalidAddress> {
    LinkAddress::parse(&format!("{PATH}{ID}/{rest}"))
}

#[test]
fn ids_and_secrets_have_a_checksum() {
    // A change would invalidate every existing link.
    assert_eq!(LinkId::from_random([0; RANDOM_BYTES]).as_str(), ID);
    assert_eq!(secret().expose(), "lks_000000000000000000000000000000004asxwk");
    assert!(LinkId::parse(ID).is_some() && LinkSecret::parse(secret().expose()).is_some());
    for bad in ["", "lnk_", &ID[..41], &ID.replace("1t", "1u"), &ID.replace("lnk", "plt"), &format!("{ID}0")]
    {
        assert_eq!(LinkId::parse(bad), None, "{bad}");
        assert_eq!(LinkSecret::parse(bad), None, "{bad}");
    }
    assert!(LinkId::parse(&"é".repeat(21)).is_none() && LinkId::parse(secret().expose()).is_none());
    assert!(!format!("{:?}", secret()).contains("lks_"));
}

#[test]
fn signatures_are_those_of_another_program() {
    for (text, signature) in SIGNED {
        let target = format!("{PATH}{ID}/{signature}/{text}");
        let address = LinkAddress::parse(&target).unwrap();
        assert!(address.is_spelled_so && address.is_signed_with(&secret()), "{text}");
        assert_eq!(address.spelling(), target);
        assert_eq!(address.file.clone().signed(&secret()).spelling(), target);
        assert!(!address.is_signed_with(&LinkSecret::from_random([1; RANDOM_BYTES])));
        let other = LinkFile { link: LinkId::from_random([1; RANDOM_BYTES]), ..address.file.clone() };
        assert!(!LinkAddress { file: other, ..address }.is_signed_with(&secret()));
    }
}

#[test]
fn every_spelling_of_the_values_has_one_address() {
    let signature = SIGNED[1].1;
    for query in [
        "title=Gr%C3%B6%C3%9Fe%20%2B%201&author=O%27Neil",
        "author=O'Neil&title=Größe+%2b+1",
        "author=O%27Neil&title=Gr%c3%b6%c3%9fe+%2B%201",
        "&author=O%27Neil&&title=Gr%C3%B6%C3%9Fe%20%2B%201&",
        "%61uthor=O%27N%65il&title=Gr%C3%B6%C3%9Fe%20%2B%201",
    ] {
        let address = parse(&format!("{signature}/card.png?{query}")).unwrap();
        assert!(!address.is_spelled_so && address.is_signed_with(&secret()), "{query}");
        assert!(address.spelling().ends_with(SIGNED[1].0), "{query}");
    }
    for (query, canonical) in [("", ""), ("a", "?a="), ("b=2&a=1", "?a=1&b=2"), ("*=%7E", "?%2A=~")] {
        let address = parse(&format!("{signature}/card.png?{query}")).unwrap();
        assert!(!address.is_spelled_so, "{query}");
        assert!(address.spelling().ends_with(&format!("card.png{canonical}")), "{query}");
    }
    for path in [format!("{ID}/{signature}/c%61rd.png"), format!("lnk%5F{}/{signature}/card.png", &ID[4..])] {
        let address = LinkAddress::parse(&format!("{PATH}{path}")).unwrap();
        assert!(!address.is_spelled_so, "{path}");
        assert_eq!(address.spelling(), format!("{PATH}{ID}/{signature}/card.png"), "{path}");
    }
    // Names are compared in NFC, and their order is that of their bytes. Values are as they are.
    let address = parse(&format!("{signature}/card.png?o%CC%88=o%CC%88&z=1&A=2")).unwrap();
    assert!(address.spelling().ends_with("?A=2&z=1&%C3%B6=o%CC%88"));
}

/// What functions of URLs write for two values.
#[test]
fn the_functions_of_languages_write_the_same_values() {
    let values = [("title", "Größe + 1/2 & 𝒜"), ("author", "O'Neil (!*) ~._-")];
    let values = values.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let file = LinkFile::new(LinkId::parse(ID).unwrap(), "card.png", values).unwrap();
    let good = file.signed(&secret()).spelling();
    let path = good.split_once('?').unwrap().0;
    for (functions, title, author) in [
        (
            "`URLSearchParams` of JavaScript, `URI.encode_www_form` of Ruby, `form_urlencoded` of Rust",
            "Gr%C3%B6%C3%9Fe+%2B+1%2F2+%26+%F0%9D%92%9C",
            "O%27Neil+%28%21*%29+%7E._-",
        ),
        (
            "`encodeURIComponent` of JavaScript",
            "Gr%C3%B6%C3%9Fe%20%2B%201%2F2%20%26%20%F0%9D%92%9C",
            "O'Neil%20(!*)%20~._-",
        ),
        (
            "`urlencode` of Python, `url.Values` of Go, `CGI.escape` of Ruby",
            "Gr%C3%B6%C3%9Fe+%2B+1%2F2+%26+%F0%9D%92%9C",
            "O%27Neil+%28%21%2A%29+~._-",
        ),
        (
            "`quote` of Python",
            "Gr%C3%B6%C3%9Fe%20%2B%201/2%20%26%20%F0%9D%92%9C",
            "O%27Neil%20%28%21%2A%29%20~._-",
        ),
        (
            "`http_build_query` of PHP",
            "Gr%C3%B6%C3%9Fe+%2B+1%2F2+%26+%F0%9D%92%9C",
            "O%27Neil+%28%21%2A%29+%7E._-",
        ),
    ] {
        for query in [format!("title={title}&author={author}"), format!("author={author}&title={title}")] {
            let address = LinkAddress::parse(&format!("{path}?{query}")).unwrap();
            assert!(address.is_signed_with(&secret()) && !address.is_spelled_so, "{functions}");
            assert_eq!(address.spelling(), good, "{functions}");
        }
    }
}

#[test]
fn what_is_no_address_has_its_reason() {
    let signature = SIGNED[0].1;
    let name = |stem: &str| format!("{signature}/{stem}");
    for path in [
        "",
        "card.png",
        &name("a/b.png"),
        &name("card"),
        &name(".png"),
        &name("card.gif"),
        &name("card.jpeg"),
        &name("card.PNG"),
        &name("Card.png"),
        &name("c_d.png"),
        &name("c%2Frd.png"),
        &name("c%6rd.png"),
        &name("é.png"),
        &name(&format!("{}.png", "a".repeat(81))),
    ] {
        assert_eq!(parse(path), Err(InvalidAddress::Path), "{path}");
    }
    let wrong = format!("{PATH}{}/{signature}/card.png", ID.replace("1t", "1u"));
    for target in [PATH, "/v1/links", "/v1/render", wrong.as_str()] {
        assert_eq!(LinkAddress::parse(target), Err(InvalidAddress::Path), "{target}");
    }
    // The last one has bits that no signature has.
    let cut = &signature[..42];
    for signature in ["", cut, &format!("{signature}="), &format!("{signature}A"), &format!("{cut}d"), "ä"] {
        assert_eq!(parse(&format!("{signature}/card.png")), Err(InvalidAddress::Signature), "{signature}");
    }
    for query in
        ["a=1&a=1", "a=1&%61=2", "o%CC%88=1&%C3%B6=2", "a=%", "a=%2", "a=%zz", "a=%%41", "a=%FF", "a=%C3"]
    {
        assert_eq!(parse(&name(&format!("card.png?{query}"))), Err(InvalidAddress::Query), "{query}");
    }
    let long = |value: &str, count: usize| parse(&name(&format!("card.png?a={}", value.repeat(count))));
    let room = limits::MAX_LINK_BYTES - format!("{PATH}{ID}/{signature}/card.png?a=").len();
    assert!(long("x", room).is_ok());
    // The second one is longer in its one spelling.
    assert_eq!([long("x", room + 1), long("+", room)].map(Result::err), [Some(InvalidAddress::Query); 2]);
    let many: Vec<String> = (0..=limits::MAX_VARIABLES).map(|number| format!("&{number:x}")).collect();
    let many = many.concat();
    assert_eq!(parse(&name(&format!("card.png?{many}"))), Err(InvalidAddress::Query));
}

#[test]
fn a_file_is_checked_before_it_is_signed() {
    let file = |name: &str, values: &[(&str, &str)]| {
        let values = values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        LinkFile::new(LinkId::parse(ID).unwrap(), name, values)
    };
    let signed = file("card.png", &[("title", "Größe + 1"), ("author", "O'Neil")]).unwrap().signed(&secret());
    assert!(signed.spelling().ends_with(&format!("{}/{}", SIGNED[1].1, SIGNED[1].0)));
    assert_eq!(file("card", &[]), Err(InvalidFile::Name));
    assert_eq!(file("card.png", &[("ö", "1"), ("o\u{308}", "2")]), Err(InvalidFile::Repeated));
    assert_eq!(file("card.png", &[("a", &"é".repeat(1_400))]), Err(InvalidFile::TooLong));
}

#[test]
fn formats_are_read_as_they_are_written() {
    let formats: LinkFormats = "jpeg, pdf".parse().unwrap();
    assert_eq!((formats.to_string().as_str(), formats.contain(OutputFormat::Pdf)), ("jpg,pdf", true));
    assert_eq!(formats.to_string().parse(), Ok(formats.clone()));
    assert_eq!(serde_json::to_string(&formats).unwrap(), r#"["jpg","pdf"]"#);
    for bad in ["", "png,", "png,png", "jpg,jpeg", "gif", "PNG"] {
        assert_eq!(bad.parse::<LinkFormats>(), Err(InvalidFormats), "{bad}");
    }
}

mod properties {
    use super::*;

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(target in "(/v1/links/)?\\PC{0,80}") {
            _ = LinkAddress::parse(&target);
        }

        #[test]
        fn an_address_that_is_read_has_one_spelling(query in "([a-zA-Zé~+%&=?/:*' .-]|%[0-9a-fA-F]{2}|&[ab]=){0,30}") {
            let target = format!("{PATH}{ID}/{}/card.png?{query}", SIGNED[0].1);
            if let Ok(address) = LinkAddress::parse(&target) {
                let spelling = address.spelling();
                prop_assert_eq!(address.is_spelled_so, spelling == target);
                let again = LinkAddress::parse(&spelling).unwrap();
                prop_assert!(again.is_spelled_so);
                prop_assert_eq!(again.spelling(), spelling);
                prop_assert_eq!(again.file, address.file);
            }
        }

        #[test]
        fn what_is_signed_is_read_again(values in btree_map("\\PC{0,12}", "\\PC{0,40}", 0..8), stem in "[a-z0-9-]{1,80}") {
            let link = LinkId::parse(ID).unwrap();
            let Ok(file) = LinkFile::new(link, &format!("{stem}.webp"), values) else { return Ok(()) };
            let signed = file.clone().signed(&secret());
            let read = LinkAddress::parse(&signed.spelling()).unwrap();
            prop_assert!(read.is_spelled_so && read.is_signed_with(&secret()));
            prop_assert_eq!(read.file, file);
        }
    }
}
