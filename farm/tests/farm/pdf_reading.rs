//! What a screen reader finds in files of PDF/UA: all text of the page, once, where it stands, and each link.

use std::sync::Arc;

use lopdf::Document;
use serde_json::{Value, json};

use crate::{
    pdf_metadata::documented,
    pdf_standards::PAGES,
    support::{Shared, paged, pages, pdf_reader::Reader, with},
};

tests! {
    "a screen reader finds text that is not of the markup" => text,
    "a screen reader finds empty cells of tables where they are" => empty_cells,
    "a screen reader finds what is repeated once" => repeated,
    "a screen reader finds no header and nothing that is hidden" => hidden,
    "each link of a file for screen readers is one" => links,
    "content with effects keeps its marks" => effects,
    "a page that changes between its prints is refused for screen readers" => moving,
    "headings and captions of a file for screen readers conform" => conforming,
}

const START: &str = "<!doctype html><html lang=en><title>T</title><style>@page{size:A5;margin:1cm}</style>";

/// What a file says: its elements with a meaning, each with its alternative text and its content.
struct Said {
    tree: String,
    /// What is no part of it.
    artifacts: String,
    pages: usize,
}

/// What a page says as PDF/UA.
async fn said(shared: &Shared, html: &str, fields: Value) -> Said {
    let fields =
        with(json!({ "html": format!("{START}{html}"), "preferCssPageSize": true, "tagged": true }), &fields);
    let job = documented(fields, json!({ "standard": { "ua1": true } }));
    let file = match shared.render(&job).await {
        Ok(file) => file,
        Err(refusal) => return Said { tree: refusal.to_string(), artifacts: String::new(), pages: 0 },
    };
    let document = Document::load_mem(&file.bytes).unwrap();
    let pages = document.page_iter().count();
    let mut reader = Reader::new(document);
    let tree = reader.tree();
    let tree = tree.strip_prefix("Document(").unwrap().strip_suffix(')').unwrap().to_owned();
    let artifacts = reader.artifacts.split_whitespace().collect::<Vec<_>>().join(" ");
    Said { tree, artifacts, pages }
}

async fn check(shared: &Shared, cases: &[(&str, &str)]) {
    let mut wrong = Vec::new();
    for (html, expected) in cases {
        let found = said(shared, html, json!({})).await.tree;
        if found != *expected {
            wrong.push((*html, found, *expected));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

async fn text(shared: Arc<Shared>) {
    check(
        &shared,
        &[
            ("<style>p::before{content:'A '}p::after{content:' Z'}</style><p>one<p><b>two</b><p>", "P(Span(A )oneSpan( Z))P(Span(A )twoSpan( Z))P(Span(A )Span(Z))"),
            ("<style>p::before{content:'A ';position:absolute;right:0}</style><p>one<p>two", "P(Span(A)one)P(Span(A)two)"),
            ("<p>He said <q>yes</q> and <q><b>no</b></q>.", "P(He said Span(“)yesSpan(”) and Span(“)noSpan(”).)"),
            ("<style>body{counter-reset:c}h2::before{counter-increment:c;content:counter(c) '. '}</style><h1>T</h1><h2>a</h2><h2>b</h2>", "H1(T)H2(Span(1. )a)H2(Span(2. )b)"),
            ("<style>tr{counter-increment:r}td:first-child::before{content:counter(r)}td+td::after{content:' €'}</style><table><tr><th>n<th>v<tr><td><td>5<tr><td><td>6</table><p>end", "Table(TR(TH(n)TH(v))TR(TD(Span(2))TD(5Span( €)))TR(TD(Span(3))TD(6Span( €))))P(end)"),
            ("<style>td::before{content:attr(title)}</style><p>a<table><tr><td title=x><td title=y></table><p>b", "P(a)Table(TR(TD(Span(x))TD(Span(y))))P(b)"),
            ("<style>tr::before{content:'n';display:table-cell}</style><table><tr><td>5<tr><td>6</table>", "Span(n)5Span(n)6"),
            ("<style>li{list-style:none}li::before{content:'* '}</style><ul><li>a<li><li>b</ul>", "L(LI(LBody(Span(* )a))LI(LBody(Span(*)))LI(LBody(Span(* )b)))"),
            ("<style>h2::before{content:'Two'}</style><h1>One</h1><h2></h2><p>x", "H1(One)H2(Span(Two))P(x)"),
            ("<style>i::before{content:'icon'}</style><p>Some <i></i> text<span role=img aria-label=Star><i></i></span>", "P(Some Span(icon) textFigure([Star]Span(icon)))"),
            ("<style>p{opacity:.5}p::before{content:'A '}i::before{content:'B';opacity:.5}</style><p>one<p>two <i></i>", "P(Span(A )one)P(Span(A )two Span(B))"),
            ("<h1>One</h1>before<iframe title=F srcdoc='<h2>Frame</h2><p>text <b>bold</b><ul><li>x</ul>'></iframe><p>after", "H1(One)beforeH2(Span(Frame))P(Span(text )Span(bold))L(LI(LBody(Span(x))))P(after)"),
            ("<p>before<iframe title=F sandbox srcdoc='<p>closed <b>frame</b>'></iframe><p>after", "P(beforeSpan(closed frame))P(after)"),
            ("<p><label>Pick <select><option>one<option selected>two</select></label> now <input placeholder=hint>", "P(Pick Span(two) now Span(hint)Form())"),
            ("<h1>a</h1><div inert><h2>Two</h2><p>x <b>y</b> z<table><tr><th scope=row>h<td>d</table></div><p>b", "H1(a)H2(Span(Two))P(Span(x )Span(y)Span( z))Table(TR(TH(Span(h))TD(Span(d))))P(b)"),
            ("<div id=h></div><p>end<script>h.attachShadow({mode:'open'}).innerHTML='<style>p::before{content:\"in \"}</style><p>shadow <slot></slot>';h.append('light')</script>", "P(Span(in )shadow light)P(end)"),
            ("<img alt='broken picture' src='data:image/png;base64,AAAA'><p>x", "Span(broken picture)P(x)"),
            ("<style>p::before{content:'soft\\AD hyphen';display:block;width:30px}</style><p>x", "Span(soft ‐hyphen)x"),
            (
                "<h1>a</h1><p>rest <b>x</b><dialog id=d>dialog</dialog><script>d.showModal()</script>",
                "H1(Span(a))P(Span(rest )Span(x))dialog",
            ),
            ("<p>a <select size=2><option>one<option>two</select><input type=file><p>b", "P(a Span(one)Span(two)Span(Choose FileNo file chosen))P(b)"),
            ("<style>p::before{content:'A '}td::before{content:'B '}</style><table><tr><td><p>x<td>y</table>", "Span(B)P(Span(A )x)Span(B )y"),
            (
                "<p>a<iframe title=F srcdoc='<style>p::before{content:counter(x)}</style><p>b<iframe srcdoc=c></iframe>'></iframe><p>d",
                "P(aP(Span(0)Span(b)Span(c)))P(d)",
            ),
            ("<style>.f{float:right}.f::before{content:'float '}</style><p>a<span class=f>b</span><p>c", "P(aSpan(float )b)P(c)"),
            ("<style>p{position:relative;z-index:2}p+p{z-index:1}p::after{content:'!'}</style><p>a<p>b<p>c", "P(aSpan(!))P(bSpan(!))P(cSpan(!))"),
        ],
    )
    .await;
}

async fn empty_cells(shared: Arc<Shared>) {
    check(
        &shared,
        &[
            ("<table><tr><th>a<th>b<tr><td>1<td></table>", "Table(TR(TH(a)TH(b))TR(TD(1)TD()))"),
            ("<table><tr><th></th><th>Q1<th>Q2<tr><th>a<td></td><td>5<tr><td><td><td></table>", "Table(TR(TH()TH(Q1)TH(Q2))TR(TH(a)TD()TD(5))TR(TD()TD()TD()))"),
            // Rows of as many cells with content, in other columns.
            ("<table><tr><th>a<th><th>c<tr><td><td>2<td>3</table>", "Table(TR(TH(a)TH()TH(c))TR(TD()TD(2)TD(3)))"),
            ("<table><tr><th>a<td>&nbsp;<td><br><td><!-- --> <td><p></p><tr><th>b<td><td><td><td>x</table>", "Table(TR(TH(a)TD( )TD()TD()TD())TR(TH(b)TD()TD()TD()TD(x)))"),
            ("<table><caption>C<tr><th>a<th>b<th>c<tr><td colspan=2><td rowspan=2><tr><td>1<td><tfoot><tr><td><td><td></table>", "Table(Caption(C)TR(TH(a)TH(b)TH(c))TR(TD()TD())TR(TD(1)TD())TR(TD()TD()TD()))"),
            ("<table><tr><th>a<td><table><caption>in<tr><td><td>1<tr><td>2<td></table><tr><td><td></table>", "Table(TR(TH(a)TD(Table(Caption(in)TR(TD()TD(1))TR(TD(2)TD()))))TR(TD()TD()))"),
            ("<style>td:empty{background:red}td:empty::before{content:'none'}</style><table><tr><th>a<td><tr><th>b<td>1</table>", "Table(TR(TH(a)TD(Span(none)))TR(TH(b)TD(1)))"),
            ("<style>i::before{content:'icon'}</style><table><tr><th>a<td><i></i><td><i aria-hidden=true></i><td><q></q></table>", "Table(TR(TH(a)TD(Span(icon))TD()TD(Span(“)Span(”))))"),
            ("<style>@media print{.n{display:none}}</style><table><tr><th>a<th class=n>b<td><button class=n>x</button><td class=n></table>", "Table(TR(TH(a)TD()))"),
            ("<div role=table><div role=row><span role=columnheader></span><span role=columnheader>b</span></div><div role=row><span role=rowheader>c</span><span role=cell></span></div></div>", "Table(TR(TH()TH(b))TR(TH(c)TD()))"),
            ("<p>x<div id=h></div><script>h.attachShadow({mode:'open'}).innerHTML='<table><caption>S<tr><th>a<td><tr><td><td>1</table>'</script>", "P(x)Table(Caption(S)TR(TH(a)TD())TR(TD()TD(1)))"),
            ("<table><tr><th>a<td><input type=checkbox aria-label=c><td><img alt=Logo width=9 src=\"data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg'><circle r='9'/></svg>\"><td><tr><th>b<td><b>1</b><td><td></table>", "Table(TR(TH(a)TD(Form())TD(Figure([Logo]))TD())TR(TH(b)TD(1)TD()TD()))"),
            // Of a table that only places its content nothing is in the tree.
            ("<p>a<table><tr><td><td>b<tr><td></table>c<table><tr><td></table>", "P(a)bc"),
            ("<p>a<table hidden><tr><th>a<td></table><div style='height:0;overflow:hidden'><table><tr><th>a<td></table></div><div style='position:absolute;left:-9999px'><table><tr><th>a<td></table></div>", "P(a)"),
            ("<p>a<div style='max-height:0;overflow:hidden'><table><tr><th><th>b<tr><th scope=row>c<td><td>1<tr><td><td></table></div><p>b", "P(a)P(b)"),
        ],
    )
    .await;
    let rows = "<tr style='height:6cm'><th>row<td><td>1<tr><td><td><td>".repeat(6);
    let table = format!("<table><thead><tr><th>Head<th><th>2</thead>{rows}</table>");
    for (ranges, count) in
        [(json!({}), 6), (json!({ "pageRanges": "1" }), 3), (json!({ "pageRanges": "2" }), 3)]
    {
        let found = said(&shared, &table, ranges).await.tree;
        let [rows, empty] = ["TR(TH(row)TD()TD(1))", "TR(TD()TD()TD())"].map(|it| found.matches(it).count());
        assert_eq!((found.contains("TR(TH(Head)TH()TH(2))"), rows), (true, count), "{found}");
        assert!((count - 1..=count).contains(&empty), "{found}");
    }
    let filled = "<style>@page{size:10cm;margin:0}*{margin:0;padding:0}table{border-spacing:0}</style><table><tr><th>a<tr style='height:9cm'><td>b<tr><td></table>";
    for (html, header) in
        [(filled, json!({})), (table.as_str(), json!({ "headerHtml": "Every", "headerFirstHtml": "First" }))]
    {
        let tagged = said(&shared, html, header.clone()).await;
        let plain =
            paged(with(json!({ "html": format!("{START}{html}"), "preferCssPageSize": true }), &header));
        let pages = |file: &[u8]| Document::load_mem(file).unwrap().page_iter().count();
        assert_eq!(tagged.pages, pages(&shared.file(&plain).await.bytes), "{}", tagged.tree);
    }
}

async fn repeated(shared: Arc<Shared>) {
    let rows = "<tr><td>1".repeat(90);
    let table = format!("<table><thead><tr><th>Head</thead>{rows}</table>");
    let found = said(&shared, &table, json!({})).await;
    assert_eq!(
        (found.tree.matches("Head").count(), found.artifacts.as_str()),
        (1, "HeadHead"),
        "{}",
        found.tree
    );
    let generated = format!("<style>th::after{{content:'!'}}</style>{table}");
    let found = said(&shared, &generated, json!({})).await;
    assert_eq!(found.tree.matches("TH(HeadSpan(!))").count(), 1, "{}", found.tree);
    let fixed = "<style>.f{position:fixed;bottom:0}.f::after{content:'ed'}p{break-after:page}</style><div class=f>Fix</div><p>a<p>b<p>c";
    let found = said(&shared, fixed, json!({})).await;
    assert_eq!((found.tree.as_str(), found.artifacts.as_str()), ("FixSpan(ed)P(a)P(b)P(c)", "FixedFixed"));
    // A row that is broken is no copy.
    let broken = format!("<table><tr><th>Head<tr><td>{}</table>", "same<br>".repeat(60));
    let found = said(&shared, &broken, json!({})).await;
    assert_eq!(found.tree.matches("same").count(), 60);
}

async fn hidden(shared: Arc<Shared>) {
    let html = "<style>@page{@bottom-center{content:'Margin'}}i::before{content:'icon'}p::before{content:'A '}</style>\
        <p>one<i aria-hidden=true></i><p aria-hidden=true>hid <a href='https://example.com/'>den</a>\
        <iframe aria-hidden=true srcdoc='frame'></iframe><img alt='' src=\"data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg'><text y='20'>drawn</text></svg>\">";
    let header =
        json!({ "headerHtml": "<b>Head</b> <a href='https://example.com/'>link</a>", "margin": "2cm" });
    let found = said(&shared, html, header).await;
    assert_eq!(found.tree, "P(Span(A )one)");
    for text in ["Margin", "icon", "hid", "den", "frame", "drawn", "Head", "link"] {
        assert!(found.artifacts.contains(text), "{}", found.artifacts);
    }
}

async fn links(shared: Arc<Shared>) {
    check(
        &shared,
        &[
            ("<p><a href='https://example.com/'>text</a> <a href='https://example.com/'><img alt=Logo width=9 src=\"data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg'><circle r='9'/></svg>\"></a>", "P(Link(text→text) Link(Figure([Logo])→Logo→Logo))"),
            ("<p><a role=button href='https://example.com/'>button</a> <a role=tab href='https://example.com/'>tab</a> <a role=doc-noteref href='https://example.com/'>1</a>", "P(Form(Link(button→button)) Link(tab→tab) Link(1→1))"),
            ("<p><a role=img aria-label=Label href='https://example.com/'>img</a><svg role=img aria-label=Svg width=90 height=20><a href='https://example.com/'><text y=15>svg</text></a></svg>", "P(Link(Figure([Label]img)→Label)Link(Figure([Svg]svg)→Svg))"),
            ("<h1>x</h1><a role=heading aria-level=2 href='https://example.com/'>heading</a>", "H1(x)H2(Link(heading→heading))"),
            ("<style>.i::before{content:'icon'}</style><p>x <a class=i href='https://example.com/'></a>", "P(x Link(→iconSpan(icon)))"),
            ("<p>x<iframe title=F srcdoc=\"<p>In <a href='https://example.com/'>the <b>frame</b></a> here\"></iframe>", "P(xP(Span(In )Link(Span(the )Span(frame)→the frame→the frame)Span( here)))"),
            ("<p style='width:60px'><a href='https://example.com/'>two lines of text</a>", "P(Link(two linesof text→two lines of text→two lines of text))"),
        ],
    )
    .await;
}

/// Text and pictures in forms of their own.
const EFFECTS: [&str; 12] = [
    "<p style=opacity:0>zero",
    "<p>a <span style=opacity:.5>b</span> c<a href=https://example.com/ style=opacity:.5>link</a>",
    "<div style=opacity:.5>a<div style=opacity:.5>b<p>c</div>d</div>",
    "<ul style=opacity:.5><li>a<li>b</ul><ol><li style=opacity:.5>c</ol>",
    "<table style=opacity:.5><tr><th>a<tr><td>b</table>",
    "<div style='opacity:.5;background:red'>x<p style=background:blue>z</div>",
    "<p>a<svg role=img aria-label=x width=50 height=50><g opacity=.5><rect width=9 height=9 /><text y=20>t</text></g></svg>",
    "<p>a<input value=b style=opacity:.5><button disabled style=opacity:.4>c</button><hr style=opacity:.5>",
    "<div style='opacity:.5;overflow:hidden;height:20px'>a<p>b<p>c</div>",
    "<p style='mask-image:linear-gradient(black,transparent)'>m <b>n</b>",
    "<p>a<div style='opacity:.5;position:absolute;left:-999px'>off</div>",
    "<style>p::before{content:'x';opacity:.5}</style><div style=opacity:.5><p>a<p style=break-before:page>b</div>",
];

async fn effects(shared: Arc<Shared>) {
    for html in EFFECTS {
        said(&shared, html, json!({})).await;
    }
    for (_, html) in pages(PAGES) {
        for fields in
            [json!({}), json!({ "headerHtml": "<b>Head</b>", "margin": "2cm", "printBackground": true })]
        {
            let job =
                documented(with(json!({ "html": html }), &fields), json!({ "standard": { "ua1": true } }));
            let file = shared.file(&job).await;
            Reader::new(Document::load_mem(&file.bytes).unwrap()).tree();
        }
    }
}

async fn moving(shared: Arc<Shared>) {
    for (html, is_right) in [
        (
            "<style>p::before{content:'A '}</style><p>one<script>onbeforeprint=()=>p.hidden=false;onafterprint=()=>p.hidden=true</script><p id=p hidden>two",
            true,
        ),
        (
            "<style>p::before{content:'A '}</style><p>one<script>let n=0;onbeforeprint=()=>document.body.style.paddingTop=`${n+=50}px`</script>",
            false,
        ),
        (
            "<p>one<iframe title=F srcdoc='<p>two'></iframe><script>let n=0;onbeforeprint=()=>frames[0].document.body.style.paddingTop=`${n+=50}px`</script>",
            false,
        ),
    ] {
        let found = said(&shared, html, json!({})).await.tree;
        assert_eq!(!found.contains("while it is printed"), is_right, "{html}: {found}");
    }
}

async fn conforming(shared: Arc<Shared>) {
    let levels = "<h1>1</h1><h2>2</h2><h3>3</h3><h4>4</h4><h5>5</h5><h6>6</h6>";
    check(
        &shared,
        &[
            (
                &format!("{levels}<div role=heading aria-level=7>7</div>"),
                "H1(1)H2(2)H3(3)H4(4)H5(5)H6(6)H6(7)",
            ),
            ("<figure><pre>code</pre><figcaption>caption</figcaption></figure>", "Div(codeP(caption))"),
            ("<figure><p>a<figcaption><p>one<p>two</figcaption></figure>", "Div(P(a)Div(P(one)P(two)))"),
        ],
    )
    .await;
    let job = documented(
        json!({ "html": format!("{START}<h1>1</h1><div role=heading aria-level=7>7</div>") }),
        json!({ "standard": { "ua1": true } }),
    );
    let refused = shared.render(&job).await.map(|_| ()).unwrap_err();
    assert!(refused.to_string().contains("heading"), "{refused}");
}
