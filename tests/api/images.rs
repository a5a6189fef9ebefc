//! Pictures: their size and pixels.

use platen_harness::image_file::{BLUE, Colour, RED, WHITE};

use crate::prelude::*;

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = vec![
        Case::any_server("images/default_size_and_colour", defaults),
        Case::any_server("images/viewport_before_first_layout", viewport_before_first_layout),
        Case::any_server("images/full_page", full_page),
        Case::any_server("images/full_page_of_a_short_page", full_page_short),
        Case::any_server("images/full_page_keeps_the_viewport", full_page_viewport),
        Case::any_server("images/not_full_page", not_full_page),
        Case::any_server("images/full_page_over_the_pixel_limit", over_the_pixel_limit),
        Case::any_server("images/webp_over_its_own_limit", webp_over_its_limit),
        Case::any_server("images/jobs_do_not_affect_each_other", isolated_jobs),
    ];
    for (name, body, colour) in colours() {
        cases.push(Case::any_server(name, move |stage| has_colour(stage, body.clone(), colour)));
    }
    for format in ["png", "jpeg", "jpg", "webp"] {
        for (width, height, factor) in [
            (100, 50, 1.0),
            (100, 50, 2.0),
            (100, 50, 0.5),
            (334, 76, 1.5),
            (1, 1, 1.0),
            (20, 20, 4.0),
            (1280, 720, 0.1),
            (321, 201, 1.5),
            (200, 1, 0.3),
            (1, 1, 0.1),
        ] {
            let name = format!("images/size/{format}_{width}x{height}x{factor}");
            cases.push(Case::any_server(name, move |stage| size(stage, format, width, height, factor)));
        }
    }
    for (width, height) in [(7_680, 4), (4, 7_680), (7_680, 7_680)] {
        let name = format!("images/size/largest_{width}x{height}");
        cases.push(Case::any_server(name, move |stage| size(stage, "png", width, height, 1.0)));
    }
    cases
}

pub(crate) async fn picture(target: &Target, body: &Value, content_type: &str) -> Result<Picture> {
    let answer = target.render(body).send().await?;
    Picture::decode(answer.file(content_type)?, content_type)
}

/// A page of one colour.
fn plain(colour: Colour) -> String {
    let [red, green, blue] = colour;
    format!("<body style='margin:0;background:rgb({red},{green},{blue})'></body>")
}

async fn size(stage: Stage, format: &str, width: u32, height: u32, factor: f64) -> Result<()> {
    let target = stage.common().await?;
    let body = json!({
        "html": plain(GREEN), "format": format, "width": width, "height": height, "deviceScaleFactor": factor,
    });
    let content_type = if format == "jpg" { "image/jpeg".to_owned() } else { format!("image/{format}") };
    let picture = picture(&target, &body, &content_type).await?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 7680 × 4")]
    let device = |side: u32| (f64::from(side) * factor).round().max(1.0) as u32;
    let expected = (device(width), device(height));
    ensure!(picture.size() == expected, "{:?} instead of {expected:?}", picture.size());
    for (x, y) in [(0, 0), (expected.0 - 1, 0), (0, expected.1 - 1), (expected.0 - 1, expected.1 - 1)] {
        picture.expect(x, y, GREEN)?;
    }
    Ok(())
}

async fn defaults(stage: Stage) -> Result<()> {
    let target = stage.common().await?;
    let picture = picture(&target, &json!({ "html": "<p>x</p>" }), "image/png").await?;
    ensure!(picture.size() == (1280, 720), "{:?}", picture.size());
    // The background is white by default.
    picture.expect(1279, 719, WHITE)
}

/// The script runs in the head, before the first layout.
async fn viewport_before_first_layout(stage: Stage) -> Result<()> {
    let target = stage.common().await?;
    for (width, height, factor) in [(413, 271, 1.0), (413, 271, 2.0), (1600, 900, 1.5)] {
        let html = format!(
            "<head><style>html {{ background: rgb(255,0,0) }}</style><script>
               const right = innerWidth === {width} && innerHeight === {height} && devicePixelRatio === {factor}
                 && matchMedia('(width: {width}px) and (height: {height}px)').matches;
               document.documentElement.style.background = right ? 'rgb(0,128,0)'
                 : `rgb(255,${{innerWidth % 256}},${{innerHeight % 256}})`;
             </script></head><body></body>"
        );
        for full_page in [false, true] {
            let body = json!({
                "html": html, "width": width, "height": height, "deviceScaleFactor": factor, "fullPage": full_page,
            });
            let picture = picture(&target, &body, "image/png").await?;
            picture
                .expect(0, 0, GREEN)
                .with_context(|| format!("{width}x{height}x{factor}, full page {full_page}"))?;
        }
    }
    Ok(())
}

const TALL: &str = "<body style='margin:0'><div style='height:2900px;background:rgb(0,0,255)'></div>\
    <div style='height:100px;background:rgb(0,128,0)'></div></body>";

async fn full_page(stage: Stage) -> Result<()> {
    let target = stage.common().await?;
    for (format, factor, scale) in [("png", 1.0, 1), ("jpeg", 1.0, 1), ("webp", 1.0, 1), ("png", 2.0, 2)] {
        let body = json!({
            "html": TALL, "fullPage": true, "width": 300, "height": 200, "deviceScaleFactor": factor, "format": format,
        });
        let picture = picture(&target, &body, &format!("image/{format}")).await.context(format)?;
        ensure!(picture.size() == (300 * scale, 3000 * scale), "{format}: {:?}", picture.size());
        picture.expect(150 * scale, 10, BLUE)?;
        picture.expect(150 * scale, 2890 * scale, BLUE)?;
        picture.expect(150 * scale, 2950 * scale, GREEN)?;
        picture.expect(150 * scale, 3000 * scale - 1, GREEN)?;
    }
    Ok(())
}

async fn full_page_short(stage: Stage) -> Result<()> {
    let target = stage.common().await?;
    let body = json!({ "html": plain(GREEN), "fullPage": true, "width": 300, "height": 200 });
    let picture = picture(&target, &body, "image/png").await?;
    ensure!(picture.size() == (300, 200), "a page is at least as high as its viewport: {:?}", picture.size());
    Ok(())
}

/// An element with the height of the viewport keeps it: the viewport does not grow with the page.
async fn full_page_viewport(stage: Stage) -> Result<()> {
    let target = stage.common().await?;
    let html = "<body style='margin:0'><div style='height:100vh;background:rgb(0,128,0)'></div>\
        <div style='height:1000px;background:rgb(0,0,255)'></div></body>";
    let body = json!({ "html": html, "fullPage": true, "width": 300, "height": 200 });
    let picture = picture(&target, &body, "image/png").await?;
    ensure!(picture.size() == (300, 1200), "{:?}", picture.size());
    picture.expect(150, 199, GREEN)?;
    picture.expect(150, 201, BLUE)?;
    picture.expect(150, 1199, BLUE)
}

async fn not_full_page(stage: Stage) -> Result<()> {
    let target = stage.common().await?;
    let picture =
        picture(&target, &json!({ "html": TALL, "width": 300, "height": 200 }), "image/png").await?;
    ensure!(picture.size() == (300, 200), "{:?}", picture.size());
    // No scroll bar in the picture.
    picture.expect(299, 100, BLUE)
}

const TOO_LARGE: &str =
    "The page is too large: its image would be over the limit of its format or of 100000000 pixels";

async fn over_the_pixel_limit(stage: Stage) -> Result<()> {
    let target = stage.common().await?;
    let page = |height: u32| format!("<body style='margin:0'><div style='height:{height}px'></div></body>");
    let body = |height| json!({ "html": page(height), "fullPage": true, "width": 1000, "height": 100 });
    target.render(&body(100_001)).send().await?.error(422, TOO_LARGE)
}

async fn webp_over_its_limit(stage: Stage) -> Result<()> {
    let target = stage.common().await?;
    let html = "<body style='margin:0'><div style='height:16384px'></div></body>";
    let body = json!({ "html": html, "fullPage": true, "width": 10, "height": 100, "format": "webp" });
    target.render(&body).send().await?.error(422, TOO_LARGE)?;
    // Another format accepts the same page, and this one a page that is shorter by a pixel.
    for (format, height) in [("png", 16_384), ("webp", 16_383)] {
        let html = html.replace("16384", &height.to_string());
        let body = json!({ "html": html, "fullPage": true, "width": 10, "height": 100, "format": format });
        let picture = picture(&target, &body, &format!("image/{format}")).await?;
        ensure!(picture.size() == (10, height), "{:?}", picture.size());
    }
    Ok(())
}

fn turns_green_after(milliseconds: u32) -> String {
    format!(
        "<html style='background:rgb(255,0,0)'><body><script>
           setTimeout(() => document.documentElement.style.background = 'rgb(0,128,0)', {milliseconds});
         </script></body></html>"
    )
}

/// Requests, and the colour of the page that they render.
fn colours() -> [(&'static str, Value, Colour); 5] {
    // All characters of the text reach the page, and entities are decoded.
    let unicode = "<body><p id=a>Zo\u{eb} \u{1F600} &euro;\u{2028}\u{feff}</p><script>
        const text = document.getElementById('a').textContent;
        const right = [...text].map(c => c.codePointAt(0).toString(16)).join() === '5a,6f,eb,20,1f600,20,20ac,2028,feff';
        document.documentElement.style.background = right ? 'rgb(0,128,0)' : 'rgb(255,0,0)';
        </script></body>";
    let dialogs = "<html style='background:rgb(255,0,0)'><body><script>
        alert(1); print();
        addEventListener('beforeunload', event => event.preventDefault());
        const dismissed = confirm(2) === false && prompt(3, 'x') === null;
        if (dismissed) document.documentElement.style.background = 'rgb(0,128,0)';
        </script></body></html>";
    let two_sources = json!({ "url": "https://name.invalid/", "html": plain(GREEN) });
    let waiting = json!({ "html": turns_green_after(300), "waitForTimeout": 1000 });
    // Longer than the deadline of a render.
    let impatient = json!({ "html": turns_green_after(600_000), "waitForTimeout": 10 });
    [
        ("images/html_wins_over_url", two_sources, GREEN),
        ("images/wait_for_timeout", waiting, GREEN),
        ("images/wait_for_timeout_is_not_exceeded", impatient, RED),
        ("images/unicode_and_entities", json!({ "html": unicode }), GREEN),
        ("images/dialogs_do_not_hang", json!({ "html": dialogs }), GREEN),
    ]
}

async fn has_colour(stage: Stage, mut body: Value, colour: Colour) -> Result<()> {
    let target = stage.common().await?;
    // The corner without text.
    body["width"] = 400.into();
    body["height"] = 300.into();
    picture(&target, &body, "image/png").await?.expect(399, 299, colour)
}

/// A job leaves nothing for the next one, of the same account or of another.
async fn isolated_jobs(stage: Stage) -> Result<()> {
    let (one, other) = (stage.common().await?, stage.target().await?);
    let html = "<html style='background:rgb(0,128,0)'><body><script>
        const left = [window.name, window.left, history.length > 1 && 'history'].filter(Boolean);
        if (left.length) document.documentElement.style.background = 'rgb(255,0,0)';
        window.name = 'left'; window.left = 'left'; history.pushState(1, '');
        setInterval(() => window.left = 'left', 1);
        const constant = 1;
        </script></body></html>";
    let body = json!({ "html": html, "width": 20, "height": 20 });
    for target in [&one, &one, &other, &one, &other] {
        picture(target, &body, "image/png").await?.expect(10, 10, GREEN)?;
    }
    Ok(())
}
