//! Every output format: its bytes and its size.

use std::sync::Arc;

use platen_shared::{
    format::{ImageFormat, PaperSize, WaitUntil},
    job::{ImageOptions, Output, PdfOptions, WaitMs},
    refusal::Refusal,
};

use crate::{
    Test,
    support::{GREEN, Shared, dimensions, full_page_image, green_if, html, middle, pdf, viewport},
};

pub(crate) const TESTS: &[Test] = &[
    ("a picture has exactly the requested size", |s| Box::pin(sizes(s))),
    ("each picture has its format", |s| Box::pin(encodings(s))),
    ("a full page is as large as its content", |s| Box::pin(full_page(s))),
    ("a page that is too large is refused", |s| Box::pin(too_large(s))),
    ("a PDF has its paper's size", |s| Box::pin(papers(s))),
    ("a script reads the viewport before the first layout", |s| Box::pin(viewport_first(s))),
    ("a job waits for its milestone and then its time", |s| Box::pin(milestones(s))),
];

const SPLASH: &str = "<!doctype html><html style='background:green'><h1>Hello";

async fn sizes(shared: Arc<Shared>) {
    for (width, height, factor, expected) in [
        (1280, 720, 1.0, (1280, 720)),
        (333, 111, 2.0, (666, 222)),
        (321, 201, 1.5, (482, 302)),
        (500, 300, 0.5, (250, 150)),
        (301, 203, 0.1, (30, 20)),
        (64, 48, 4.0, (256, 192)),
        (1, 1, 1.0, (1, 1)),
        (1, 1, 0.1, (1, 1)),
        (3, 200, 0.1, (1, 20)),
        (200, 1, 0.3, (60, 1)),
        (7_680, 16, 1.0, (7_680, 16)),
    ] {
        let mut job = html(SPLASH);
        job.options.viewport = viewport(width, height, factor);
        let file = shared.render(&job).await.unwrap();
        assert_eq!(dimensions(&file), expected, "{width}×{height}×{factor}");
        assert_eq!(
            u64::from(expected.0) * u64::from(expected.1),
            job.options.viewport.device_pixels(),
            "{width}×{height}×{factor}"
        );
    }
}

async fn encodings(shared: Arc<Shared>) {
    for (format, magic, offset) in [
        (ImageFormat::Png, &b"\x89PNG\r\n\x1a\n"[..], 0),
        (ImageFormat::Jpeg, b"\xff\xd8\xff", 0),
        (ImageFormat::Webp, b"WEBP", 8),
    ] {
        let mut job = html(SPLASH);
        job.options.output = Output::Image(ImageOptions::new(format));
        let file = shared.render(&job).await.unwrap();
        assert_eq!(&file.bytes[offset..offset + magic.len()], magic);
        assert_eq!((dimensions(&file), file.format), ((320, 240), job.options.output.format()));
        let [red, green, blue] = middle(&file);
        assert!(red < 4 && green.abs_diff(128) < 4 && blue < 4, "{:?}", middle(&file));
    }
}

async fn full_page(shared: Arc<Shared>) {
    for (markup, factor, expected) in [
        // An element sized by the viewport keeps its size.
        (
            "<!doctype html><body style='margin:0'><div style='height:100vh'></div><div style='height:1000px'>",
            1.0,
            (320, 1240),
        ),
        ("<!doctype html><body style='margin:0'><div style='width:900px;height:700px'>", 2.0, (1800, 1400)),
        ("<!doctype html><body style='margin:0'><div style='height:10.5px'>", 1.0, (320, 240)),
        ("<body style='margin:0'><div style='height:333px'>", 1.0, (320, 333)),
    ] {
        for format in [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::Webp] {
            let mut job = html(markup);
            job.options.viewport = viewport(320, 240, factor);
            job.options.output = full_page_image(format);
            assert_eq!(dimensions(&shared.render(&job).await.unwrap()), expected, "{format:?} {markup}");
        }
    }
}

async fn too_large(shared: Arc<Shared>) {
    for (height, format, refused) in [
        (16_383, ImageFormat::Webp, false),
        (16_384, ImageFormat::Webp, true),
        (400_000, ImageFormat::Png, true),
        (40_000, ImageFormat::Png, false),
    ] {
        let mut job = html(&format!(
            "<!doctype html><body style='margin:0'><div style='height:{height}px;background:green'>"
        ));
        job.options.output = full_page_image(format);
        match shared.render(&job).await {
            Ok(file) => {
                assert_eq!((dimensions(&file), refused), ((320, height), false));
                // WebP is lossy.
                assert!(middle(&file).iter().zip(GREEN).all(|(is, should)| is.abs_diff(should) < 4));
            }
            Err(refusal) => assert_eq!((refusal, refused), (Refusal::PageTooLarge, true)),
        }
    }
}

async fn papers(shared: Arc<Shared>) {
    for (paper, scale) in
        [(PaperSize::A4, 1.0), (PaperSize::Letter, 0.5), (PaperSize::Ledger, 2.0), (PaperSize::A6, 1.0)]
    {
        let mut job = html(SPLASH);
        job.options.output = Output::Pdf(Box::new(PdfOptions {
            print_background: true,
            scale: scale.try_into().unwrap(),
            ..PdfOptions::new(paper.into())
        }));
        let file = shared.render(&job).await.unwrap();
        assert!(file.bytes.starts_with(b"%PDF-"));
        let text = String::from_utf8_lossy(&file.bytes);
        assert_eq!(text.matches("/Type /Page\n").count(), 1, "{paper:?}");
        let size = text.split_once("/MediaBox [0 0 ").and_then(|(_, rest)| rest.split_once(']')).unwrap().0;
        let size: Vec<f64> = size.split(' ').map(|side| side.parse().unwrap()).collect();
        // Chromium rounds a page to whole CSS pixels of 0.75 points.
        let (width, height) = paper.size();
        assert!(
            (size[0] - width.pixels() * 0.75).abs() < 1.0 && (size[1] - height.pixels() * 0.75).abs() < 1.0,
            "{paper:?} {size:?}"
        );
    }
}

async fn viewport_first(shared: Arc<Shared>) {
    let condition = "innerWidth === 777 && innerHeight === 333 && devicePixelRatio === 2 \
                     && matchMedia('screen and (width: 777px)').matches && document.URL === 'about:blank'";
    let mut job = html(&green_if(condition));
    job.options.viewport = viewport(777, 333, 2.0);
    assert_eq!(middle(&shared.render(&job).await.unwrap()), GREEN);
    job.options.output = pdf();
    shared.render(&job).await.unwrap();
}

async fn milestones(shared: Arc<Shared>) {
    let late = shared.site.at("/late.css");
    // The answer arrives after `load`, so only a job that waits for the network is green.
    let fetched = |url: &str| {
        format!(
            "<!doctype html><html style='background:red'><script>onload = () => setTimeout(async () => {{\
             await fetch('{url}', {{ mode: 'no-cors' }}); document.documentElement.style.background = 'green' }}, 100)</script>"
        )
    };
    let timed = |milliseconds: u32| {
        format!(
            "<!doctype html><html style='background:red'><script>onload = () => setTimeout(() => \
             document.documentElement.style.background = 'green', {milliseconds})</script>"
        )
    };
    let linked = format!("<!doctype html><link rel=stylesheet href='{late}'>");
    for (markup, milestone, wait, green) in [
        (fetched(&late), WaitUntil::NetworkIdle, 0.0, true),
        (fetched(&shared.site.at("/never")), WaitUntil::Load, 0.0, false),
        (timed(300), WaitUntil::Load, 3_000.0, true),
        // Longer than the deadline of a job.
        (timed(600_000), WaitUntil::DomContentLoaded, 0.0, false),
        (linked, WaitUntil::Load, 0.0, true),
    ] {
        let mut job = html(&markup);
        (job.options.wait_until, job.options.wait_for_timeout) = (milestone, WaitMs::try_from(wait).unwrap());
        let middle = middle(&shared.render(&job).await.unwrap());
        assert_eq!(middle == GREEN, green, "{milestone:?} + {wait}: {markup}");
    }
}
