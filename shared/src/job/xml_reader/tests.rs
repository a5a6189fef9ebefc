//! Texts that are well-formed, not well-formed, or over a limit.

use super::*;

/// The events, of which each is written as an element is.
fn read(text: &str) -> Result<String, XmlError> {
    let (mut reader, mut read) = (XmlReader::new(text), Vec::new());
    while let Some(event) = reader.next()? {
        read.push(match event {
            XmlEvent::Start { namespace, name } => format!("<{namespace} {name}>"),
            XmlEvent::End => "</>".to_owned(),
            XmlEvent::Text(text) => text.into_owned(),
        });
    }
    Ok(read.concat())
}

#[test]
fn names_have_the_namespaces_that_are_declared_around_them() {
    for (text, expected) in [
        ("<a/>", "< a></>"),
        ("<?xml version='1.0' encoding='utf-8'?><!-- - -->\n<a>b<?x y?>c</a>\n<!---->", "< a>bc</>"),
        (
            "<a xmlns='u'><b xmlns=''/><c xmlns:p='v' p:x='' x=''><p:d/></c></a>",
            "<u a>< b></><u c><v d></></></>",
        ),
        ("<p:a xmlns:p='u'><p:b xmlns:p='v'/><p:c/></p:a>", "<u a><v b></><u c></></>"),
        ("<a xmlns='&#x75;&amp;'>&lt;&#10;&gt;&quot;&apos;&#x1F600;</a>", "<u& a><\n>\"'\u{1f600}</>"),
        ("<a><![CDATA[<&]]>]]</a>", "< a><&]]</>"),
        ("<a xml:lang='de' lang='de' xmlns:xml='http://www.w3.org/XML/1998/namespace'/>", "< a></>"),
        ("<größe\n/>", "< größe></>"),
    ] {
        assert_eq!(read(text).as_deref(), Ok(expected), "{text}");
    }
}

#[test]
fn what_is_not_well_formed_is_refused() {
    for text in [
        "",
        " ",
        "a",
        "<a>",
        "<a",
        "<a b",
        "<a/",
        "<a/><b/>",
        "<a/>b",
        "</a>",
        "<a></b>",
        "<a></p:a>",
        "<a><b></a></b>",
        "<a b/>",
        "<a b=c/>",
        "<a b='c'd='e'/>",
        "<a b='<'/>",
        "<a b='' b=''/>",
        "<a xmlns='u' xmlns='u'/>",
        "<a xmlns:p='u' xmlns:q='u' p:b='' q:b=''/>",
        "<p:a/>",
        "<a p:b=''/>",
        "<a xmlns:p=''/>",
        "<a xmlns:xml='u'/>",
        "<a xmlns:p='http://www.w3.org/XML/1998/namespace'/>",
        "<a xmlns:xmlns='u'/>",
        "<a xmlns:p='http://www.w3.org/2000/xmlns/'/>",
        "<xmlns:a/>",
        "<a:b:c xmlns:a='u'/>",
        "<1/>",
        "<:a/>",
        "<a :b=''/>",
        "<a></:a>",
        "<a>&b;</a>",
        "<a>&</a>",
        "<a>&amp</a>",
        "<a>&#0;</a>",
        "<a>&#xD800;</a>",
        "<a>&#+65;</a>",
        "<a>&#;</a>",
        "<a>&#X41;</a>",
        "<a>&#x110000;</a>",
        "<a b='&c;'/>",
        "<a>]]></a>",
        "<a>\u{1}</a>",
        "<a>\u{ffff}</a>",
        "<a><!-- -- --></a>",
        "<a><![CDATA[</a>",
        "<a><?XML x?></a>",
        " <?xml version='1.0'?><a/>",
        "<?xml version='1.0'?><?xml version='1.0'?><a/>",
    ] {
        assert!(matches!(read(text), Err(XmlError::Syntax(_))), "{text}: {:?}", read(text));
    }
    assert_eq!(read("<a>\n</b>"), Err(XmlError::Syntax("2:1 another end tag is expected".to_owned())));
    for text in ["<!DOCTYPE a><a/>", "<!DOCTYPE a [<!ENTITY b 'c'>]><a/>", "<!DOCTYPE", "<!DOCTYPE a [<a/>"] {
        assert_eq!(read(text), Err(XmlError::Dtd), "{text}");
    }
    for text in ["<?xml version='1.1'?><a/>", "<?xml version='1.0' encoding='latin1'?><a/>"] {
        assert_eq!(read(text), Err(XmlError::Declaration), "{text}");
    }
}

#[test]
fn what_is_looked_up_for_an_element_is_limited() {
    let nested = |depth| format!("{}{}", "<a>".repeat(depth), "</a>".repeat(depth));
    let elements = |count: usize| format!("<a>{}</a>", "<a/>".repeat(count - 1));
    let attributes =
        |count| format!("<a{}/>", (0..count).map(|at| format!(" a{at}=''")).collect::<Vec<_>>().concat());
    // Declared by two elements.
    let namespaces = |count: usize| {
        let declared = (1..count).map(|at| format!(" xmlns:n{at}='u'")).collect::<Vec<_>>().concat();
        format!("<a xmlns='u'><a{declared}/><a{declared}/></a>")
    };
    for (is_within, is_over) in [
        (nested(MAX_NESTING), nested(MAX_NESTING + 1)),
        (elements(MAX_ELEMENTS), elements(MAX_ELEMENTS + 1)),
        (attributes(MAX_ATTRIBUTES), attributes(MAX_ATTRIBUTES + 1)),
        (namespaces(MAX_NAMESPACES), namespaces(MAX_NAMESPACES + 1)),
    ] {
        assert!(read(&is_within).is_ok(), "{is_within:.200}");
        assert_eq!(read(&is_over), Err(XmlError::Complexity), "{is_over:.200}");
    }
}
