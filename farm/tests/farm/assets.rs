//! A page that has loaded assets gives the account's next job what a new page gives it: the same file, from the same requests.

use std::{
    env, fs,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use http::{HeaderMap, StatusCode, Uri, uri::Authority};
use platen_harness::{
    pdf_file::without_dates,
    site::{Reply, Site},
    tls::{LOCALHOST_KEY_HASH, TlsProxy},
};
use platen_shared::job::RenderJob;
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng, seq::IndexedRandom as _};
use tempfile::TempDir;

use crate::support::{
    Shared, farm_process::FarmProcess, html, of, pages, pdf, png, program, to, viewport, waiting,
};

tests! {
    "jobs with assets on warm pages give the files of new pages" => random_jobs,
    "a page is kept for the next job only after assets" => kept,
    "a job on a warm page resumes no TLS session" => sessions,
}

/// Jobs of the random sequence, each on a warm page and on a new one; thousands of them are `bench/warm-pages`.
const JOBS: &str = "WARM_PAGE_JOBS";
const DEFAULT_JOBS: u32 = 20;

/// What an asset can leave in a browser by its headers, with `?store`. Within a job the order of requests would decide which of
/// them meets what another one has left.
const HEADERS: &[(&str, &str)] = &[
    ("set-cookie", "third=1; SameSite=None; Secure; max-age=600"),
    ("set-cookie", "split=1; SameSite=None; Secure; Partitioned; max-age=600"),
    ("set-cookie", "first=1; max-age=600"),
    ("strict-transport-security", "max-age=600; includeSubDomains"),
    ("alt-svc", "h2=\":443\", h3=\":443\"; ma=600"),
    ("accept-ch", "device-memory, sec-ch-ua-full-version"),
    ("use-as-dictionary", "match=\"/*\""),
    ("link", "</asset/preloaded>; rel=preload; as=image, </asset/prefetched>; rel=prefetch"),
    ("report-to", r#"{"group":"n","max_age":600,"endpoints":[{"url":"https://page.test/"}]}"#),
    ("nel", r#"{"report_to":"n","max_age":600,"success_fraction":1,"failure_fraction":1}"#),
];
/// Headers of all assets.
const ALWAYS: &[(&str, &str)] = &[
    ("access-control-allow-origin", "*"),
    ("cache-control", "max-age=600, immutable"),
    ("etag", "\"1\""),
    ("timing-allow-origin", "*"),
];

/// Shows what a page sees of its requests and of its browser.
const OBSERVER: &str = include_str!("assets/observer.html");
/// Pages that do something to their assets or with them, each before a job that must not notice.
const MESSY: &str = include_str!("assets/messy.html");

/// A site that shows in each asset which version of it this is, and what the request for it had.
struct Assets {
    version: Arc<AtomicU32>,
    site: Site,
    tls: TlsProxy,
}

impl Assets {
    async fn start() -> Self {
        let version = Arc::<AtomicU32>::default();
        let current = Arc::clone(&version);
        let site = Site::start_with(move |uri, headers| asset(uri, headers, current.load(Ordering::SeqCst)));
        let site = site.await.unwrap();
        let tls = TlsProxy::start(site.address(), &["h2", "http/1.1"]).await.unwrap();
        Self { version, site, tls }
    }

    /// Markup with the origins of the site in place of `{http}`, `{https}`, `{other}` and `{others}`.
    fn fill(&self, markup: &str) -> String {
        let (http, https) = (self.site.port(), self.tls.port());
        markup
            .replace("{http}", &format!("http://page.test:{http}"))
            .replace("{https}", &format!("https://page.test:{https}"))
            .replace("{other}", &format!("http://other.test:{http}"))
            .replace("{others}", &format!("https://other.test:{https}"))
    }
}

fn asset(uri: &Uri, headers: &HeaderMap, version: u32) -> Reply {
    let seen = ["host", "cookie", "if-none-match", "cache-control", "authorization", "available-dictionary"];
    let seen = seen.map(|name| headers.get(name).map_or("-", |value| value.to_str().unwrap_or("?")));
    // By HTTP/2, the host is in the URI.
    let host = uri.authority().map_or("-", Authority::as_str);
    let seen = format!("{version} {host} {} {}", uri.path(), seen.join(" ")).replace(['\'', '<'], "");
    let reply = match uri.path().rsplit('.').next() {
        Some("svg") => Reply::of(
            "image/svg+xml",
            format!(
                "<svg xmlns='http://www.w3.org/2000/svg' width='300' height='14'><rect width='9' height='9' \
                 fill='hsl({}, 90%, 40%)'/><text x='12' y='10' font-size='8'>{seen}</text></svg>",
                version * 77 % 360
            ),
        ),
        Some("css") => Reply::of("text/css", format!("p::after {{ content: ' css {seen}' }}")),
        Some("js") => Reply::of("text/javascript", format!("show('script {seen}')")),
        // One version has the metrics of another font.
        Some("ttf") => {
            let style = if version.is_multiple_of(2) { "BoldItalic" } else { "Regular" };
            let file = format!("/usr/share/fonts/truetype/liberation/LiberationSerif-{style}.ttf");
            Reply::of("font/ttf", fs::read(file).unwrap())
        }
        Some("secret") if headers.get("authorization").is_none() => Reply::page("")
            .with_status(StatusCode::UNAUTHORIZED)
            .with_header("www-authenticate", "Basic realm=\"x\""),
        Some("away") => {
            return Reply::redirect("/asset/moved.svg").with_header("cache-control", "max-age=600");
        }
        Some("login") => {
            let host = headers["host"].to_str().unwrap();
            return Reply::redirect(&format!("http://user:password@{host}/asset/a.secret"));
        }
        _ => Reply::page(""),
    };
    let left = if uri.query().is_some_and(|query| query.starts_with("store")) { HEADERS } else { &[] };
    ALWAYS.iter().chain(left).fold(reply, |reply, (name, value)| reply.with_header(name, value))
}

/// A farm whose browsers trust the certificate of the site.
async fn farm(directory: &TempDir) -> FarmProcess {
    let script = format!(
        "#!/bin/sh\nexec /usr/lib/chromium/chromium-headless-shell \
         --ignore-certificate-errors-spki-list={LOCALHOST_KEY_HASH} \"$@\"\n"
    );
    let chromium = program(&directory.path().join("chromium"), &script);
    let arguments = ["--browsers", "1", "--chromium", chromium.to_str().unwrap()];
    FarmProcess::start(&arguments).await
}

/// A page of a few assets, and of what it sees.
fn random_page(random: &mut StdRng, assets: &Assets) -> String {
    const ORIGINS: [&str; 4] = ["{http}", "{https}", "{other}", "{others}"];
    const ELEMENTS: [&str; 7] = [
        "<img src='{}/asset/a.svg?{number}'>",
        "<img src='{}/asset/a.away?{number}'>",
        "<link rel=stylesheet href='{}/asset/a.css?{number}'>",
        "<script src='{}/asset/a.js?{number}'></script>",
        "<style>@font-face { font-family: asset; src: url({}/asset/a.ttf?{number}) }</style>",
        "<img src='{}/asset/a.secret?{number}'>",
        "<i style='background: url({}/asset/b.svg?{number}); display: block; height: 14px'></i>",
    ];
    let count = random.random_range(1..=5);
    // Each URL occurs once, because time decides whether two elements share a request.
    let elements = (0..count).map(|number: u32| {
        let element = ELEMENTS.choose(random).unwrap().replace("{number}", &number.to_string());
        element.replace("{}", ORIGINS.choose(random).unwrap())
    });
    let elements = elements.collect::<String>();
    assets.fill(&OBSERVER.replace("{assets}", &elements))
}

fn random_job(random: &mut StdRng, page: &str) -> RenderJob {
    let mut job = html(page);
    job.options.viewport = viewport(*[320, 640].choose(random).unwrap(), 400, 1.0);
    // After virtual time a page is not kept.
    let job = if random.random_ratio(1, 10) { waiting(job, 300.0) } else { job };
    to(if random.random_ratio(1, 3) { pdf() } else { png() }, job)
}

async fn random_jobs(_: Arc<Shared>) {
    let directory = FarmProcess::directory();
    let (assets, farm) = (Assets::start().await, farm(&directory).await);
    let jobs = env::var(JOBS).map_or(DEFAULT_JOBS, |jobs| jobs.parse().expect(JOBS));
    let messy = pages(MESSY);
    let mut random = StdRng::seed_from_u64(u64::from(jobs));
    farm.file(&of("warm", html("x"))).await;
    let mut used = 0;
    for number in 0..jobs {
        assets.version.store(number, Ordering::SeqCst);
        if random.random_ratio(2, 3) {
            let (_, page) = messy.choose(&mut random).unwrap();
            farm.file(&of("warm", html(&assets.fill(page)))).await;
        }
        let page = random_page(&mut random, &assets);
        let job = random_job(&mut random, &page);
        let before = farm.warm_pages().await;
        let on_warm = farm.file(&of("warm", job.clone())).await;
        used += farm.warm_pages().await - before;
        let on_new = farm.file(&of(&format!("new {number}"), job)).await;
        if without_dates(&on_warm) != without_dates(&on_new) {
            let directory = env::temp_dir();
            for (name, file) in [("warm", &on_warm), ("new", &on_new)] {
                fs::write(directory.join(format!("platen-{name}")), file).unwrap();
            }
            panic!(
                "job {number} has another file on a warm page: see {}/platen-*: {page}",
                directory.display()
            );
        }
    }
    assert!(used > u64::from(jobs / 3), "only {used} of {jobs} jobs had a warm page");
    farm.end().await;
}

/// What a page loads beside assets may outlive its document, or be stored.
async fn kept(_: Arc<Shared>) {
    let directory = FarmProcess::directory();
    let (assets, farm) = (Assets::start().await, farm(&directory).await);
    farm.file(&of("one", html("x"))).await;
    for (name, page) in pages(MESSY) {
        let is_kept = name.starts_with("kept");
        // A page is closed if a request that its job did not wait for connects after the job.
        let attempts = if is_kept { 5 } else { 1 };
        let mut kept = 0;
        for _ in 0..attempts {
            farm.file(&of("one", html(&assets.fill(page)))).await;
            let before = farm.warm_pages().await;
            farm.file(&of("one", html("x"))).await;
            kept += farm.warm_pages().await - before;
            if kept > 0 {
                break;
            }
        }
        assert_eq!(kept > 0, is_kept, "{name}");
    }
    farm.end().await;
}

async fn sessions(_: Arc<Shared>) {
    let directory = FarmProcess::directory();
    let (assets, farm) = (Assets::start().await, farm(&directory).await);
    let job = of("one", html(&assets.fill("<img src='{https}/asset/a.svg'>")));
    for _ in 0..5 {
        farm.file(&job).await;
    }
    assert_eq!((farm.warm_pages().await, assets.tls.connections(), assets.tls.resumed()), (3, 5, 0));
    let headers = assets.site.last_headers("/asset/a.svg").unwrap();
    assert!(!headers.contains_key("host"), "the site is not reached by HTTP/2");
    farm.end().await;
}
