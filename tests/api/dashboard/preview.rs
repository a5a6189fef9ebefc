//! The preview of a template has the size of what is rendered, and keeps its scroll position.

use std::sync::atomic::{AtomicUsize, Ordering};

use platen_harness::browser::Theme;
use tokio::net::TcpListener;

use super::support::{accept_invite, choose, new_email};
use crate::prelude::*;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::any_database("dashboard/preview/shows_the_paper_and_its_pages", paper),
        Case::any_database("dashboard/preview/shows_the_viewport", viewport),
        Case::any_database("dashboard/preview/shows_the_full_page", full_page),
        Case::any_database("dashboard/preview/shows_header_and_footer", header),
        Case::any_database("dashboard/preview/shows_part_media_and_backgrounds", parts),
        Case::any_database("dashboard/preview/asks_before_it_calls_other_hosts", other_hosts),
    ]
}

async fn template(app: &Service, page: &Page, html: &str) -> Result<()> {
    let account = app.operator.account(Quota::Of(1)).await?;
    accept_invite(page, app, &new_email("pre"), &["--account", &account.id]).await?;
    page.go(&format!("{}/dashboard/templates/new", app.base_url)).await?;
    page.submit(&[("#name", "Preview"), ("#html", html)], "Create template").await?;
    page.shows("Template created.").await
}

async fn paper(stage: Stage) -> Result<()> {
    const HTML: &str = "<!doctype html><style>
        @page { margin: 2cm 3cm }
        @media print { .screen { display: none } }
        @media screen { .print { display: none } }
        body { margin: 0; background: #ffe }
        section { break-after: page }
        </style><section id=one>One<p class=screen>on screens</p><p class=print>on paper</p></section>
        <section>Two</section><div id=tall style='height: 1200px'>Three</div><p id=end>Four {{ x }}</p>";
    let app = &*stage.service().await?;
    let page = Browser::start().await?.page().await?;
    template(app, &page, HTML).await?;
    page.shows("A viewport of 1280 × 720 pixels.").await?;
    page.in_frames("document.querySelector('#one')?.innerText.includes('on screens')").await?;
    choose(&page, "format", "pdf").await?;
    // 1,200 pixels are more than a page of 297 mm without 4 cm has.
    page.shows("About 4 pages of 210 × 297 mm.").await?;
    page.in_frames(
        "document.querySelector('#one')?.innerText.includes('on paper') && !document.body.innerText.includes('on screens')",
    )
    .await?;
    // What is behind the sheets has the colours of the theme, also after it changes.
    let desk = |colour: &str| {
        format!("getComputedStyle(document.documentElement).backgroundColor === 'rgb({colour})'")
    };
    page.in_frames(&desk("217, 215, 209")).await?;
    page.set_viewport(1280, 900, Theme::Dark).await?;
    page.in_frames(&desk("58, 63, 68")).await?;
    page.set_viewport(1280, 900, Theme::Light).await?;
    // The margins are those of the page, until the options have some.
    let left = |pixels: f64| {
        format!("Math.abs(document.querySelector('#one')?.getBoundingClientRect().left - {pixels}) < 1")
    };
    page.in_frames(&left(3.0 / 2.54 * 96.0)).await?;
    choose(&page, "margin", "10mm").await?;
    page.in_frames(&left(1.0 / 2.54 * 96.0)).await?;
    choose(&page, "landscape", "true").await?;
    page.shows("of 297 × 210 mm.").await?;
    choose(&page, "pdfFormat", "Letter").await?;
    page.shows("of 279 × 216 mm.").await?;
    for (option, value) in [("pdfFormat", ""), ("landscape", ""), ("pdfWidth", "100mm"), ("pdfHeight", "6in")]
    {
        choose(&page, option, value).await?;
    }
    page.shows("of 100 × 152 mm.").await?;
    // The options are saved with the template, and the preview shows them.
    page.press("Save").await?.shows("Template saved.").await?;
    page.go(&page.text("location.origin + location.pathname").await?).await?.shows("of 100 × 152 mm.").await
}

async fn viewport(stage: Stage) -> Result<()> {
    const HTML: &str =
        "<style>#wide { display: none } @media (min-width: 1000px) { #wide { display: block } }
        #line { height: 3000px }</style><p id=wide>wide</p><p id=line></p>";
    let app = &*stage.service().await?;
    let browser = Browser::start().await?;
    let page = browser.page().await?;
    page.set_viewport(1200, 900, platen_harness::browser::Theme::Light).await?;
    template(app, &page, HTML).await?;
    let is_quirky = "document.compatMode === 'BackCompat'";
    page.in_frames(&format!("innerWidth === 1280 && innerHeight === 720 && document.querySelector('#wide')?.checkVisibility() && {is_quirky}")).await?;
    let box_width = "document.querySelector('.preview-box').clientWidth";
    let shown = page.eval("document.querySelector('#preview').getBoundingClientRect().width").await?;
    ensure!(page.eval(box_width).await?.as_f64() >= shown.as_f64(), "the preview is wider than its box");
    choose(&page, "width", "600").await?;
    page.in_frames("innerWidth === 600 && document.querySelector('#wide')?.checkVisibility() === false")
        .await?;
    // An edit keeps the scroll position.
    page.in_frames("document.querySelector('#line') && (scrollTo(0, 1500), scrollY === 1500)").await?;
    page.eval("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 100)))").await?;
    page.fill("#html", &format!("{HTML}<p id=more>more</p>")).await?;
    page.in_frames("document.querySelector('#more') && scrollY === 1500").await
}

async fn full_page(stage: Stage) -> Result<()> {
    const HTML: &str = "<!doctype html><style>body { margin: 0 }</style>";
    let app = &*stage.service().await?;
    let page = Browser::start().await?.page().await?;
    template(app, &page, &format!("{HTML}<p style='height: 3000px; margin: 0'>tall</p>")).await?;
    page.in_frames("document.body?.innerText === 'tall' && innerHeight === 720").await?;
    choose(&page, "fullPage", "true").await?;
    page.in_frames("innerWidth === 1280 && innerHeight === 3000").await?;
    page.shows("The full page: 1280 × 3000 pixels.").await?;
    // The frame is as large as its page, in the middle of what is scrolled.
    let middle = "((box, frame) => Math.abs(box.left + box.right - frame.left - frame.right) < 4 && frame.height > box.height)\
        (...['.preview-box', '#preview'].map((it) => document.querySelector(it).getBoundingClientRect()))";
    page.wait(middle).await?;
    page.eval("document.querySelectorAll('details').forEach((it) => { it.open = true })").await?;
    page.fill("#option-css", "p { height: 2000px !important }").await?;
    page.in_frames("innerHeight === 2000").await?;
    page.fill("#option-css", "").await?;
    // A page whose height depends on that of the viewport keeps its viewport.
    page.fill(
        "#html",
        &format!(
            "{HTML}<p style='height: 100vh; margin: 0'>hero</p><p style='height: 900px; margin: 0'>rest</p>"
        ),
    )
    .await?;
    page.in_frames("document.body?.innerText.includes('hero') && innerHeight === 720 && document.body.scrollHeight === 1620").await
}

async fn header(stage: Stage) -> Result<()> {
    let app = &*stage.service().await?;
    let page = Browser::start().await?.page().await?;
    template(
        app,
        &page,
        "<title>Title</title><style>b { display: none } p { break-after: page }</style><p>1</p><p>2</p>",
    )
    .await?;
    choose(&page, "format", "pdf").await?;
    page.eval("document.querySelectorAll('details').forEach((it) => { it.open = true })").await?;
    page.fill(
        "#option-headerHtml",
        "<b>{{ x }}</b> <span class=title></span><script>document.title = 'ran'</script>",
    )
    .await?;
    page.fill("#option-footerHtml", "<i class=pageNumber></i>/<i class=totalPages></i>").await?;
    page.wait("document.querySelector('[data-sample=x]')").await?;
    page.fill("[data-sample=x]", "top").await?;
    let texts = "[...document.documentElement.children].map((it) => it.shadowRoot?.textContent).filter(Boolean).join()";
    page.in_frames(&format!("{texts} === 'top Title,1/2,top Title,2/2'")).await?;
    // At the edges of the paper, with none of the page's styles.
    page.in_frames(
        "((first, last) => getComputedStyle(first.shadowRoot.querySelector('b')).display !== 'none' && first.getBoundingClientRect().top === 0 \
         && Math.abs(last.getBoundingClientRect().bottom - innerHeight) < 2)\
         (...((all) => [all[0], all.at(-1)])([...document.documentElement.children].filter((it) => it.shadowRoot)))",
    )
    .await?;
    page.fill("#option-headerFirstHtml", "first").await?;
    page.in_frames(&format!("{texts} === 'first,1/2,top Title,2/2'")).await
}

async fn parts(stage: Stage) -> Result<()> {
    const HTML: &str = "<!doctype html><style>body { margin: 0; background: #ffe; height: 3000px }
        #part { position: absolute; left: 300px; top: 1000px; width: 200px; height: 100px; background: gold }
        #exact { print-color-adjust: exact; background: tomato }
        @media print { .screen { display: none } }
        </style><p class=screen>on screens</p><p id=exact>exact</p><div id=part>part</div>";
    let app = &*stage.service().await?;
    let page = Browser::start().await?.page().await?;
    template(app, &page, HTML).await?;
    choose(&page, "selector", "#part").await?;
    page.shows("A part of 200 × 100 pixels.").await?;
    // The part fills what is seen of the frame.
    page.in_frames("document.querySelector('#part')?.getBoundingClientRect().bottom <= innerHeight").await?;
    let seen = "((frame, sheet) => Math.round(sheet.left - frame.left) === 300 && Math.round(sheet.width) === 200 && Math.round(sheet.height) === 100)\
        (...['#preview', '.preview-box > div'].map((it) => document.querySelector(it).getBoundingClientRect()))";
    page.wait(seen).await?;
    choose(&page, "selector", "#none").await?;
    page.shows("Nothing matches the selector.").await?;
    choose(&page, "selector", "").await?;
    for (option, value) in
        [("clip.x", "300"), ("clip.y", "1000"), ("clip.width", "200"), ("clip.height", "100")]
    {
        choose(&page, option, value).await?;
    }
    page.wait(seen).await?;
    choose(&page, "clip.x", "").await?;
    page.shows("A viewport of 1280 × 720 pixels.").await?;
    page.in_frames("document.body?.innerText.includes('on screens')").await?;
    choose(&page, "mediaType", "print").await?;
    page.in_frames("document.querySelector('#part') && !document.body.innerText.includes('on screens')")
        .await?;
    choose(&page, "timezone", "Europe/Rome").await?;
    page.shows("A viewport of 1280 × 720 pixels. Not in the preview: timezone.").await?;
    choose(&page, "format", "pdf").await?;
    choose(&page, "mediaType", "screen").await?;
    let color = |id: &str, color: &str| {
        format!(
            "getComputedStyle(document.querySelector('#{id}') ?? document.body).backgroundColor === '{color}'"
        )
    };
    page.in_frames(&format!(
        "document.body?.innerText.includes('on screens') && {} && {}",
        color("part", "rgba(0, 0, 0, 0)"),
        color("exact", "rgb(255, 99, 71)")
    ))
    .await?;
    choose(&page, "printBackground", "true").await?;
    page.in_frames(&color("part", "rgb(255, 215, 0)")).await
}

/// Connections to a port of this machine.
async fn connections() -> Result<(u16, Arc<AtomicUsize>)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let (port, count) = (listener.local_addr()?.port(), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&count);
    tokio::spawn(async move {
        while listener.accept().await.is_ok() {
            counted.fetch_add(1, Ordering::SeqCst);
        }
    });
    Ok((port, count))
}

/// All that makes a browser connect to a host without a script.
fn calling(url: &str) -> String {
    format!(
        "<link rel=stylesheet href={url}1><link rel='preconnect' href={url}2><link rel=icon href={url}3>
        <link rel=preload as=image href={url}4><link rel=prefetch href={url}5><link rel='stylesheet preconnect' href={url}6>
        <meta http-equiv=refresh content='0;url={url}7'><base href={url}>
        <style>@import '{url}8'; @font-face {{ font-family: f; src: url({url}9) }} p {{ font-family: f; cursor: url({url}10), auto;
        background: url({url}11); list-style: url({url}12) }} li::marker {{ content: url({url}13) }}</style>
        <p id=text style='mask: url({url}14)'>text<img src={url}15><img srcset='{url}16 1x'><picture><source srcset={url}17><img></picture>
        <video src={url}18 poster={url}19 autoplay></video><audio src={url}20 autoplay></audio><input type=image src={url}21>
        <object data={url}22></object><embed src={url}23><iframe src={url}24></iframe><iframe srcdoc='<img src={url}25>'></iframe>
        <svg><image href={url}26></image><use href={url}27></use></svg><table background={url}28></table>
        <img src=/relative><body background={url}29>"
    )
}

async fn other_hosts(stage: Stage) -> Result<()> {
    let app = &*stage.service().await?;
    let page = Browser::start().await?.page().await?;
    let ((http, of_http), (https, of_https)) = (connections().await?, connections().await?);
    let html =
        calling(&format!("http://127.0.0.1:{http}/")) + &calling(&format!("https://127.0.0.1:{https}/"));
    template(app, &page, &html).await?;
    let is_asked = "!document.querySelector('#preview-pictures').hidden";
    let template = page.text("location.origin + location.pathname").await?;
    choose(&page, "format", "pdf").await?;
    page.eval("document.querySelectorAll('details').forEach((it) => { it.open = true })").await?;
    page.fill("#option-headerHtml", &html).await?;
    page.press("Save").await?.shows("Template saved.").await?;
    let version = format!("{template}/versions/1");
    for (address, size) in [(&template, "About"), (&version, "A viewport")] {
        page.go(address).await?.shows(size).await?;
        page.wait(is_asked).await?;
        page.in_frames("document.querySelector('#text')").await?;
        let calls = (of_http.load(Ordering::SeqCst), of_https.load(Ordering::SeqCst));
        ensure!(calls == (0, 0), "{calls:?} connections before a click");
    }
    for address in [&template, &version] {
        let before = of_https.load(Ordering::SeqCst);
        page.go(address).await?.wait(is_asked).await?;
        page.click("#preview-load").await?;
        wait::until("a picture is requested", || of_https.load(Ordering::SeqCst) > before).await?;
        page.in_frames("document.querySelector('#text')").await?;
        page.wait("document.querySelector('#preview-pictures').hidden").await?;
        ensure!(of_http.load(Ordering::SeqCst) == 0, "a connection without TLS");
    }
    // A page that needs no other host is not asked about.
    page.go(&template).await?.wait(is_asked).await?;
    page.fill("#option-headerHtml", "").await?;
    page.fill("#html", "<p id=own>own<img src=data:image/gif;base64,R0lGODlhAQABAAAAACw=>").await?;
    page.in_frames("document.querySelector('#own')").await?;
    page.wait("document.querySelector('#preview-pictures').hidden").await
}
