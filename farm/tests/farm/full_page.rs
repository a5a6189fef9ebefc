//! A picture of more than the viewport is as a reader sees the page who scrolls through it.

use std::sync::Arc;

use platen_harness::image_file::{BLUE, Colour, RED};
use serde_json::{Value, json};

use crate::support::{GREEN, Shared, dimensions, picture, site::Site, small, with};

tests! {
    "a full page is as large as its content" => sizes,
    "a full page shows what scripts load and show while it is scrolled" => seen,
    "a full page has sticky and fixed elements once and sections of the viewport's height" => placed,
    "a full page that grows at its end is bounded" => endless,
    "a page does not see the capture of more than its viewport" => unseen,
    "what a capture does to the page is over in the file" => over,
    "a picture of more than the viewport leaves animations where they are" => unmoved,
    "an image is whole up to 100 megapixels" => tall,
}

/// `waitForTimeout` of a job in real time, and of one in virtual time. A page has three frames in real time first.
const WAITS: [f64; 2] = [0.0, 200.0];

/// Renders the page at 320 × 240, and returns the height and the colours in the middle of these lines.
async fn lines(shared: &Shared, html: &str, fields: Value, lines: &[u32]) -> (u32, Vec<Colour>) {
    let job = small(with(json!({ "html": html }), &fields));
    let picture = picture(&shared.file(&job).await.bytes);
    let colours = lines.iter().map(|line| picture.get_pixel(picture.width() / 2, *line).0);
    (picture.height(), colours.collect())
}

async fn unseen(shared: Arc<Shared>) {
    let page = "<!doctype html><style>html { background: green }</style><body style='margin:0;height:600px'><p id=p>x</p>\
        <script>const red = () => document.documentElement.style.background = 'red';\
        addEventListener('resize', red); addEventListener('resize', red, true); window.onresize = red;\
        visualViewport.addEventListener('resize', red)</script>";
    let elsewhere = shared.site.elsewhere("/green");
    let framed = format!(
        "<!doctype html><style>html {{ background: green }} noscript {{ display: block; background: red; height: 500px }}\
         </style><body style='margin:0'><noscript>x</noscript><iframe src='{elsewhere}' style='margin-top:400px'></iframe>\
         <script>document.title = 'x'</script>"
    );
    for (fields, html) in [
        (json!({ "fullPage": true }), page),
        (json!({ "fullPage": true, "waitForSelector": "p" }), page),
        (json!({ "selector": "body" }), page),
        (json!({ "clip": { "x": 0, "y": 0, "width": 200, "height": 300 } }), page),
        (json!({ "fullPage": true }), framed.as_str()),
    ] {
        for wait in WAITS {
            let (_, colours) =
                lines(&shared, html, with(json!({ "waitForTimeout": wait }), &fields), &[100, 250]).await;
            assert_eq!(colours, [GREEN; 2], "{wait} {fields} {html}");
        }
    }
    let inner = format!("<!doctype html><html style='background:green'>{SIZES}");
    let elsewhere = shared.site.elsewhere(&Site::markup(&inner));
    let frame = |source: &str| {
        format!("<iframe style='border:0;display:block;width:100vw;height:300px' {source}></iframe>")
    };
    let documents = [
        "<p style='height:300px'>x".to_owned() + SIZES,
        frame(&format!("srcdoc=\"{inner}\"")),
        frame(&format!("sandbox=allow-scripts srcdoc=\"{inner}\"")),
        frame(&format!("src='{elsewhere}'")),
    ];
    for (number, part) in documents.iter().enumerate() {
        let html = format!(
            "<!doctype html><html style='background:green'><body style='margin:0;height:600px'>{part}<script>0</script>"
        );
        // Each kind of document and each part in either time.
        for (at, fields) in parts().iter().enumerate() {
            let wait = WAITS[(number + at) % 2];
            let fields = with(json!({ "waitForTimeout": wait, "scroll": false }), fields);
            let (_, colours) = lines(&shared, &html, fields.clone(), &[100, 250]).await;
            assert_eq!(colours, [GREEN; 2], "{fields} {html}");
        }
    }
}

/// A script whose page is red once it has had an event of another size after its first frame.
const SIZES: &str = "<script>requestAnimationFrame(() => { const red = () => document.documentElement.style.background = 'red';\
    addEventListener('resize', red); visualViewport.onresize = red; screen.orientation.onchange = red; window.kept = [];\
    for (const query of ['(orientation: portrait)', '(max-aspect-ratio: 1/1)', '(max-height: 50px)', '(min-width: 100px)',\
        '(height < 9px)', 'screen and (width > 9px)']) {\
        for (let n = 0; n < 3; n++) kept.push(matchMedia(query));\
        kept.at(-3).addEventListener('change', red); kept.at(-2).onchange = red; kept.at(-1).addListener(red) }\
    let sizes = 0; new ResizeObserver(() => sizes++ && red()).observe(document.documentElement);\
    let views = 0; new IntersectionObserver(() => views++ && red()).observe(document.documentElement) })</script>";

/// Parts that are outside of the viewport, or larger.
fn parts() -> [Value; 4] {
    [
        json!({ "fullPage": true }),
        json!({ "selector": "body" }),
        json!({ "clip": { "x": 0, "y": 0, "width": 200, "height": 300 } }),
        json!({ "fullPage": true, "deviceScaleFactor": 2 }),
    ]
}

async fn over(shared: Arc<Shared>) {
    let wide = "@media (min-width: 300px) { i { width: 320px; transition: width 9s } }";
    let shown = "@media (min-width: 300px) { i { animation: f 9s both } } @keyframes f { from { visibility: hidden } }";
    let box_of = |css: &str| {
        format!(
            "<style>i {{ display: block; width: 20px; height: 300px; background: green }} {css}</style><i></i>"
        )
    };
    let wide_box = box_of(wide);
    let elsewhere = shared.site.elsewhere(&Site::markup(&format!("<body style='margin:0'>{wide_box}")));
    let pages = [
        wide_box.clone(),
        box_of("i { width: 100vw; transition: width 9s }"),
        box_of("i { width: calc(300px + 1vh); transition: width 9s 1s }"),
        box_of("body { container-type: inline-size } @container (width > 300px) { i { width: 320px; transition: width 9s } }"),
        box_of(&format!("i {{ width: 320px }} {shown}")),
        box_of(&format!("i {{ width: 320px }} {}", shown.replace("both", "").replace("from", "from, to { visibility: visible } 0%, 99%"))),
        box_of("i { background: none } i::after { content: ''; display: block; height: 300px; width: 20px; background: green }\
            @media (min-width: 300px) { i::after { width: 320px; transition: width 9s } }"),
        format!("<div><template shadowrootmode=open>{wide_box}</template></div>"),
        format!("<iframe style='border:0;display:block' width=320 height=300 srcdoc=\"<body style='margin:0'>{}\"></iframe>",
            box_of("i { width: 100vw; transition: width 9s }")),
        format!("<iframe style='border:0;display:block;width:100vw' height=300 sandbox srcdoc=\"<body style='margin:0'>{wide_box}\"></iframe>"),
        format!("<iframe style='border:0;display:block;width:100vw' height=300 src='{elsewhere}'></iframe>"),
        "<style>@media (max-width: 100px) { div { display: none } }</style><div><canvas width=320 height=300></canvas></div><script>\
            const context = document.querySelector('canvas').getContext('2d'); context.fillStyle = 'green'; context.fillRect(0, 0, 320, 300)</script>".to_owned(),
    ];
    for (number, page) in pages.iter().enumerate() {
        for (at, script) in ["", "<script>0</script>"].into_iter().enumerate() {
            // Each page as a whole and as another part, one of them with a script. The pages take turns with the times.
            let part = if (number + at).is_multiple_of(2) { 0 } else { 1 + number % 3 };
            let wait = WAITS[(number / 2 + at) % 2];
            let html =
                format!("<!doctype html><body style='margin:0;height:600px;background:red'>{page}{script}");
            let fields = with(json!({ "waitForTimeout": wait }), &parts()[part]);
            let (_, colours) = lines(&shared, &html, fields.clone(), &[100, 250]).await;
            assert_eq!(colours, [GREEN; 2], "{fields} {html}");
        }
    }
}

async fn unmoved(shared: Arc<Shared>) {
    // Transitions of a script, one in progress with and one without a rule that depends on the size; and animations that end never.
    let moving = "<style>i { display: block; height: 300px; width: 320px } .then { background: RED }\
        @media (min-width: 300px) { .then { background: green; transition: background 99999s } }\
        @keyframes g { from { background: green } to { background: red } }</style>";
    for part in [
        "<style>i { background: green; transition: background 99999s } .then { background: red }</style><i id=a></i>",
        "<style>@media (min-width: 300px) { i { background: green; transition: background 99999s } .then { background: red } }</style><i id=a></i>",
        "<style>@media (min-width: 300px) { i { animation: g 99999s -1s infinite } }</style><i id=a></i>",
        "<style>@media (min-width: 300px) { i { animation: g 2s -0.5s steps(2) infinite paused } }</style><i id=a></i>",
        "<style>@media (min-width: 300px) { i { animation: g 9s steps(1) both } }</style><i id=a></i>",
    ] {
        let html = format!(
            "<!doctype html><body style='margin:0;height:600px'>{moving}{part}<script>a.offsetTop; a.className = 'then'</script>"
        );
        for fields in parts() {
            let fields = with(json!({ "animations": "allow" }), &fields);
            let (_, colours) = lines(&shared, &html, fields.clone(), &[100, 250]).await;
            assert_eq!(colours, [GREEN; 2], "{fields} {html}");
        }
    }
}

async fn sizes(shared: Arc<Shared>) {
    for (html, factor, expected) in [
        // An element sized by the viewport keeps its size.
        ("<!doctype html><div style='height:100vh'></div><div style='height:1000px'>", 1.0, (320, 1240)),
        ("<!doctype html><div style='width:900px;height:700px'>", 2.0, (1800, 1400)),
        ("<!doctype html><div style='height:10.5px'>", 1.0, (320, 240)),
        ("<div style='height:333px'>", 1.0, (320, 333)),
    ] {
        let fields = json!({
            "html": html, "css": "body { margin: 0 }", "fullPage": true, "deviceScaleFactor": factor
        });
        assert_eq!(dimensions(&shared.file(&small(fields)).await), expected, "{html}");
    }
}

async fn seen(shared: Arc<Shared>) {
    let late = shared.site.at("/late.svg");
    let picture = |script: &str| {
        format!(
            "<img style='display:block' width=320 height=240><script>const image = document.images[0],\
             load = () => {{ image.src = '{late}' }};{script}</script>"
        )
    };
    let cases = [
        // A picture that is requested when it comes near.
        picture(
            "new IntersectionObserver(all => all.forEach(it => { if (it.isIntersecting) load() })).observe(image)",
        ),
        // A picture that a handler of scroll events requests.
        picture("onscroll = () => { if (image.getBoundingClientRect().top < innerHeight && !image.src) load() }"),
        // A picture that a handler of scroll events requests, in a page that runs no callbacks for animation frames.
        picture(
            "window.requestAnimationFrame = () => 0; onscroll = () => { if (!image.src && scrollY > 700) load() }",
        ),
        // A section that fades in, with a transition and with an animation of a script.
        "<div style='height:240px;background:green;opacity:0;transition:opacity 1s'></div><script>\
         const part = document.querySelector('div'); new IntersectionObserver(([it]) => {\
         if (it.isIntersecting) part.style.opacity = 1 }).observe(part)</script>"
            .to_owned(),
        "<div style='height:240px;background:green;opacity:0'></div><script>\
         const part = document.querySelector('div'); new IntersectionObserver(([it]) => { if (it.isIntersecting)\
         part.animate({ opacity: [0, 1] }, { duration: 1000, fill: 'both' }) }).observe(part)</script>"
            .to_owned(),
        // A lazy image that a script adds.
        format!(
            "<div style='height:240px'></div><script>const part = document.querySelector('div');\
             new IntersectionObserver(([it]) => {{ if (it.isIntersecting && !part.firstChild) part.innerHTML =\
             '<img loading=lazy style=display:block width=320 height=240 src={late}>' }}).observe(part)</script>"
        ),
    ];
    for (number, case) in cases.iter().enumerate() {
        let html =
            format!("<!doctype html><body style='margin:0'><p style='height:1200px;margin:0'>x</p>{case}");
        // Each part and each case in either time.
        for (at, (part, height, line)) in [
            (json!({ "fullPage": true }), 1440, 1320),
            (json!({ "clip": { "x": 0, "y": 1100, "width": 320, "height": 340 } }), 340, 220),
            (json!({ "selector": "img, div" }), 240, 120),
        ]
        .into_iter()
        .enumerate()
        {
            let fields = with(part, &json!({ "waitForTimeout": WAITS[(number + at) % 2] }));
            let found = lines(&shared, &html, fields.clone(), &[line]).await;
            assert_eq!(found, (height, vec![GREEN]), "{number} {fields}");
        }
    }
}

async fn placed(shared: Arc<Shared>) {
    // A header that is hidden when the reader scrolls down, and one that is sticky; a section of the viewport's height.
    let html = "<!doctype html><body style='margin:0'>\
        <header style='position:POSITION;top:0;width:100%;height:20px;background:blue'></header>\
        <section style='height:100vh;background:green'></section><div style='height:1000px;background:red'></div>\
        <script>onscroll = () => document.querySelector('header').style.display = scrollY > 10 ? 'none' : ''</script>";
    for (position, top) in [("sticky", 20), ("fixed", 0)] {
        for wait in WAITS {
            let fields = json!({ "fullPage": true, "waitForTimeout": wait });
            let html = html.replace("POSITION", position);
            let at = [10, 30, 239 + top, 240 + top, 480, 720, 1239 + top];
            let found = lines(&shared, &html, fields, &at).await;
            let expected = vec![BLUE, GREEN, GREEN, RED, RED, RED, RED];
            assert_eq!(found, (1240 + top, expected), "{position} {wait}");
        }
    }
    // A page that has scrolled itself is captured there.
    let html = "<!doctype html><body style='margin:0'><div style='height:2000px'></div><script>scrollTo(0, 500);\
        const at = document.body.appendChild(document.createElement('div')); at.style.cssText = 'height:20px';\
        onscroll = () => at.style.background = scrollY === 500 ? 'green' : 'red'</script>";
    let found = lines(&shared, html, json!({ "fullPage": true }), &[2010]).await;
    assert_eq!(found, (2020, vec![GREEN]));
}

async fn endless(shared: Arc<Shared>) {
    let html = "<!doctype html><body style='margin:0'><div style='height:500px;background:green'></div><script>\
        onscroll = () => { if (scrollY + innerHeight > document.documentElement.scrollHeight - 50) {\
        const more = document.createElement('div'); more.style.cssText = 'height:500px;background:blue';\
        document.body.append(more) } }</script>";
    for wait in WAITS {
        let fields = json!({ "fullPage": true, "waitForTimeout": wait });
        let found = lines(&shared, html, fields, &[250, 750]).await;
        assert_eq!(found, (1_000, vec![GREEN, BLUE]), "{wait}");
    }
}

async fn tall(shared: Arc<Shared>) {
    for (width, height, factor) in [
        (320, 10_000, 1.0),
        (320, 20_000, 1.0),
        (320, 70_000, 1.0),
        (1_000, 100_000, 1.0),
        (640, 17_000, 2.0),
        (7_680, 13_000, 1.0),
    ] {
        let html = format!(
            "<!doctype html><body style='margin:0'><div style='height:{height}px;width:{width}px;\
             background:repeating-linear-gradient(rgb(0,0,255) 0 100px,rgb(0,128,0) 100px 200px)'>"
        );
        let fields = json!({ "html": html, "fullPage": true, "width": width, "deviceScaleFactor": factor });
        let image = picture(&shared.file(&small(fields)).await.bytes);
        let factor = if factor > 1.0 { 2 } else { 1 };
        assert_eq!(image.dimensions(), (width * factor, height * factor));
        for stripe in 0..height / 100 {
            let expected = if stripe % 2 == 0 { [0, 0, 255] } else { GREEN };
            for x in [1, width * factor - 2] {
                assert_eq!(
                    image.get_pixel(x, (stripe * 100 + 50) * factor).0,
                    expected,
                    "{height}: {stripe}"
                );
            }
        }
    }
}
