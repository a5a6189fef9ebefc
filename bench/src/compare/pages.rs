//! The pages of the comparison and the hosts that serve them and their assets.
//!
//! Invariant: what hosts serve may not be stored, so that every renderer fetches all of it for each job.

use std::{fs, path::Path};

use anyhow::{Context as _, Result, ensure};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use platen_harness::{
    settings,
    site::{self, Reply, Site},
    tls::TlsProxy,
};
use platen_shared::limits;

use super::{
    page::{Files, Output, Page, Source, VIEWPORT},
    page_template, test_image,
};

/// The same site by HTTP and by HTTPS, under one name.
#[derive(Debug)]
pub(super) struct Hosts {
    pub(super) site: Site,
    tls: TlsProxy,
}

impl Hosts {
    pub(super) async fn start() -> Result<Self> {
        let site = Site::start().await?;
        let tls = TlsProxy::start(site.address(), &["http/1.1"]).await?;
        Ok(Self { site, tls })
    }

    fn secure_url(&self, path: &str) -> String {
        format!("https://{}:{}{path}", site::HOST, self.tls.port())
    }

    fn put(&self, path: &str, reply: Reply) -> String {
        let reply =
            reply.with_header("cache-control", "no-store").with_header("access-control-allow-origin", "*");
        self.site.put(path, reply)
    }
}

/// Adds what pages need to the hosts and returns all pages of the comparison.
pub(super) fn all(hosts: &Hosts) -> Result<Vec<Page>> {
    let invoice = Page {
        name: "invoice-png",
        title: "Invoice, PNG 1280×720",
        source: Source::Html(read("invoice.html")?),
        output: Output::Png,
        network_idle: false,
        wait_ms: 0,
        size: VIEWPORT,
        probes: vec![(8, 8, [0x1f, 0x4e, 0x8c])],
        text: "",
        assets: Vec::new(),
        is_heavy: false,
    };
    let pdf = Page {
        name: "invoice-pdf",
        title: "Invoice, PDF A4",
        output: Output::Pdf,
        text: "Thank you for your order",
        ..invoice.clone()
    };
    let [assets_pdf, assets_png, files_pdf, files_png] = with_assets(hosts, &pdf, &invoice)?;
    let script = Page {
        name: "script-png",
        title: "Table built by a script, PNG",
        source: Source::Html(read("script-table.html")?),
        probes: vec![(8, 8, [0x14, 0x53, 0x2d]), (1272, 700, [0xdc, 0xfc, 0xe7])],
        ..invoice.clone()
    };
    let mut pages = vec![
        pdf.clone(),
        invoice.clone(),
        assets_pdf,
        assets_png,
        files_pdf,
        files_png,
        Page {
            name: "table-pdf",
            title: "Table of 200 rows, PDF A4",
            source: Source::Html(page_template::repeat(&read("table.html")?, 200)?),
            probes: vec![(8, 8, [0x14, 0x53, 0x2d])],
            text: "200 A-",
            ..pdf.clone()
        },
        gallery(hosts, &invoice)?,
        Page {
            name: "huge-png",
            title: "5 MB of HTML, PNG",
            source: Source::Html(page_template::fill_to(&read("report.html")?, limits::MAX_HTML_BYTES)?),
            probes: vec![(8, 8, [0x3b, 0x2a, 0x63])],
            ..invoice.clone()
        },
        Page {
            name: "full-page-png",
            title: "Full page 1280×10,000, PNG",
            source: Source::Html(page_template::repeat(&read("article.html")?, 10)?),
            output: Output::FullPng,
            size: (1280, 10_000),
            probes: vec![(640, 9_980, [0x7c, 0x2d, 0x12])],
            ..invoice.clone()
        },
        Page {
            name: "chart-png",
            title: "Chart animation of 1 s, `waitForTimeout: 1200`, PNG",
            source: Source::Html(read("chart.html")?),
            wait_ms: 1_200,
            probes: vec![(1230, 38, [0x15, 0x80, 0x3d])],
            ..invoice.clone()
        },
        Page {
            name: "idle-png",
            title: "Invoice, `networkidle`, PNG",
            network_idle: true,
            ..invoice.clone()
        },
        Page {
            name: "wait-3000-png",
            title: "Invoice, `waitForTimeout: 3000`, PNG",
            wait_ms: 3_000,
            ..invoice.clone()
        },
        Page {
            name: "wait-10000-png",
            title: "Invoice, `waitForTimeout: 10000`, PNG",
            wait_ms: 10_000,
            ..invoice.clone()
        },
        script.clone(),
        Page {
            name: "script-wait-png",
            title: "Table built by a script, `waitForTimeout: 3000`, PNG",
            wait_ms: 3_000,
            ..script
        },
    ];
    pages.extend(heavy(hosts, &pdf, &invoice)?);
    Ok(pages)
}

/// The page of this name.
pub(super) fn named<'a>(pages: &'a [Page], name: &str) -> Result<&'a Page> {
    let page = pages.iter().find(|page| page.name == name);
    page.with_context(|| format!("unknown page {name}"))
}

/// The pages of the mix with their shares in percent: invoices as PDF, half of them with assets, PNGs of markup, and
/// pages by URL.
pub(super) fn mix(hosts: &Hosts, pages: &[Page]) -> Result<Vec<(Page, u32)>> {
    let page = |name| named(pages, name).cloned();
    let article = Page {
        name: "article-png",
        output: Output::Png,
        size: VIEWPORT,
        // The letterhead of the article is white.
        probes: vec![(8, 8, [0xff, 0xff, 0xff])],
        ..page("full-page-png")?
    };
    let gallery = Page { source: Source::Url(hosts.secure_url(GALLERY_PATH)), ..page("images-png")? };
    Ok(vec![
        (page("invoice-pdf")?, 30),
        (page("invoice-assets-pdf")?, 30),
        (page("invoice-png")?, 15),
        (article, 15),
        (gallery, 10),
    ])
}

/// The invoice with its style sheet, its logo and two fonts on a host that speaks TLS, and beside its markup.
fn with_assets(hosts: &Hosts, pdf: &Page, png: &Page) -> Result<[Page; 4]> {
    let invoice = read("invoice.html")?;
    let between = |text: &str, begin, end| {
        let (before, rest) = text.split_once(begin)?;
        let (inside, after) = rest.split_once(end)?;
        Some([before, inside, after].map(str::to_owned))
    };
    let [head, style, body] = between(&invoice, "<style>", "</style>").context("the invoice has no style")?;
    let [before, _, after] = between(&body, "<svg", "</svg>").context("the invoice has no logo")?;
    let style = style.replace(".band svg", ".band img").replace("\"Liberation Sans\"", "Served");
    let style = |url: &dyn Fn(&str) -> String| {
        let faces = [(400, "regular.ttf"), (700, "bold.ttf")].map(|(weight, file)| {
            let url = url(file);
            format!("@font-face {{ font-family: Served; src: url({url}); font-weight: {weight}; font-display: block }}\n")
        });
        faces.concat() + &style
    };
    let beside = style(&str::to_owned);
    let files = [
        ("style.css", "text/css", beside.into_bytes()),
        ("regular.ttf", "font/ttf", font("Sans-Regular")?),
        ("bold.ttf", "font/ttf", font("Sans-Bold")?),
        ("logo.jpg", "image/jpeg", test_image::jpeg(21)?),
    ];
    let data = |name: &str| {
        let file = files.iter().find(|(file, ..)| *file == name);
        let (_, of_type, content) = file.expect("a file of the invoice");
        format!("data:{of_type};base64,{}", BASE64_STANDARD.encode(content))
    };
    let document =
        |style: &str, logo: &str| format!("{head}{style}{before}<img src=\"{logo}\" alt=\"\">{after}");
    let beside_markup = Source::Files(Files {
        html: document("<link rel=\"stylesheet\" href=\"style.css\">", "logo.jpg"),
        assets: files.iter().map(|(file, _, content)| (*file, content.clone())).collect(),
        inlined: document(&format!("<style>{}</style>", style(&data)), &data("logo.jpg")),
    });
    let path = |file| format!("/bench/invoice/{file}");
    let assets: Vec<String> = files.iter().map(|(file, ..)| path(*file)).collect();
    for (file, of_type, content) in &files {
        hosts.put(&path(*file), Reply::of(of_type, content.clone()));
    }
    let url = |file| hosts.secure_url(&path(file));
    // Fonts that a style sheet names are requested after its load, and `load` does not wait for them.
    let preload = ["regular.ttf", "bold.ttf"]
        .map(|file| format!("<link rel=\"preload\" as=\"font\" crossorigin href=\"{}\">", url(file)))
        .concat();
    let style = format!("{preload}<link rel=\"stylesheet\" href=\"{}\">", url("style.css"));
    let source = Source::Html(document(&style, &url("logo.jpg")));
    let mut probes = png.probes.clone();
    probes.push((58, 62, test_image::STRIPE));
    let pdf = Page {
        name: "invoice-assets-pdf",
        title: "Invoice with a style sheet, a logo and two web fonts by HTTPS, PDF A4",
        source: source.clone(),
        assets: assets.clone(),
        ..pdf.clone()
    };
    let png = Page {
        name: "invoice-assets-png",
        title: "Invoice with a style sheet, a logo and two web fonts by HTTPS, PNG 1280×720",
        source,
        probes,
        assets,
        ..png.clone()
    };
    let [files_pdf, files_png] = [
        (
            "invoice-files-pdf",
            "Invoice with a style sheet, a logo and two web fonts as `assets`, PDF A4",
            &pdf,
        ),
        (
            "invoice-files-png",
            "Invoice with a style sheet, a logo and two web fonts as `assets`, PNG 1280×720",
            &png,
        ),
    ]
    .map(|(name, title, page)| Page {
        name,
        title,
        source: beside_markup.clone(),
        assets: Vec::new(),
        ..page.clone()
    });
    Ok([pdf, png, files_pdf, files_png])
}

const GALLERY_PATH: &str = "/bench/gallery";

fn gallery(hosts: &Hosts, png: &Page) -> Result<Page> {
    let mut assets = vec!["/bench/font.ttf".to_owned()];
    hosts.put(&assets[0], Reply::of("font/ttf", font("Serif-Regular")?));
    for number in 1..=20 {
        let path = format!("/bench/image-{number}.jpg");
        hosts.put(&path, Reply::of("image/jpeg", test_image::jpeg(number)?));
        assets.push(path);
    }
    let html = page_template::repeat(&read("gallery.html")?, 20)?;
    Ok(Page {
        name: "images-png",
        title: "20 images and a web font by URL, PNG",
        source: Source::Url(hosts.put(GALLERY_PATH, Reply::page(html))),
        probes: (0..20)
            .map(|n| (24 + n % 5 * 248 + 120, 80 + n / 5 * 158 + 142, test_image::STRIPE))
            .collect(),
        assets,
        ..png.clone()
    })
}

/// Bytes of script of the page with much script.
const SCRIPT_BYTES: usize = 20_000_000;

/// Pages that take most of their time in Chromium.
fn heavy(hosts: &Hosts, pdf: &Page, png: &Page) -> Result<[Page; 4]> {
    let png = Page { is_heavy: true, ..png.clone() };
    let sections = page_template::repeat(&read("reference.html")?, 1_500)?;
    let script = page_template::fill_to(&read("bundle.js")?, SCRIPT_BYTES)?;
    hosts.put("/bench/bundle.js", Reply::of("text/javascript", script));
    let script_page = hosts.put("/bench/script", Reply::page(read("script.html")?));
    // What each page draws last.
    let drawn = vec![(1260, 700, [0x15, 0x80, 0x3d])];
    Ok([
        Page {
            name: "map-png",
            title: "Map of canvas and SVG, `waitForTimeout: 1000`, PNG, one job at a time",
            source: Source::Html(read("map.html")?),
            wait_ms: 1_000,
            probes: drawn.clone(),
            ..png.clone()
        },
        Page {
            name: "webgl-png",
            title: "WebGL, `waitForTimeout: 1000`, PNG, one job at a time",
            source: Source::Html(read("webgl.html")?),
            wait_ms: 1_000,
            probes: drawn.clone(),
            ..png.clone()
        },
        Page {
            name: "scripts-png",
            title: "20 MB of script by URL, PNG, one job at a time",
            source: Source::Url(script_page),
            probes: drawn,
            assets: vec!["/bench/bundle.js".to_owned()],
            ..png
        },
        Page {
            name: "reference-pdf",
            title: "Reference of 1,500 sections, PDF A4, one job at a time",
            // The table of contents is the first repeated part.
            source: Source::Html(page_template::repeat(&sections, 1_500)?),
            probes: vec![(8, 8, [0x1e, 0x3a, 0x8a])],
            text: "end of the reference",
            is_heavy: true,
            ..pdf.clone()
        },
    ])
}

fn read(name: &str) -> Result<String> {
    let path = settings::tests_dir().join("../bench/pages").join(name);
    fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
}

/// A font of the Liberation family, served under another name, so that no renderer has it installed.
fn font(name: &str) -> Result<Vec<u8>> {
    let paths = ["liberation", "liberation2"]
        .map(|folder| format!("/usr/share/fonts/truetype/{folder}/Liberation{name}.ttf"));
    let found = paths.iter().find(|path| Path::new(path).exists());
    let font = fs::read(found.context("no Liberation font: install fonts-liberation")?)?;
    ensure!(font.len() > 10_000, "the font file is too short");
    Ok(font)
}
