//! What the tests share: farms, jobs, and decoders.

pub(crate) mod farm_process;
pub(crate) mod pdf_reader;
pub(crate) mod secure_site;
pub(crate) mod site;

use std::{
    fs::{self, Permissions},
    num::NonZeroU32,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use axum::{body::Body, http::Request};
use platen_farm::{Config, Farm, Rendered};
use platen_harness::{
    image_file::Colour,
    pdf_file::Pdf,
    wait::{self, MAX_WAIT},
};
use platen_shared::{
    endpoint::Endpoint,
    format::{ImageFormat, PaperSize},
    id::AccountId,
    job::{ImageOptions, Output, PdfOptions, Region, RenderJob, RenderOptions, Source, Viewport},
    refusal::Refusal,
    request::RenderRequest,
};
use tower_service::Service as _;

use self::{farm_process::FarmProcess, site::Site};

pub(crate) use platen_harness::image_file::GREEN;
use serde_json::{Value, json};

/// The beginning of a green page.
pub(crate) const GREEN_PAGE: &str = "<!doctype html><html style='background:green'>";
pub(crate) const TOKEN: &str = "s3cret";
/// A deadline that no job reaches, for the header of a job.
pub(crate) const MAX_WAIT_MS: u64 = 180_000;
/// The queue's timeout, so that jobs are not refused where a machine is slow.
pub(crate) const MAX_WAIT_SECONDS: NonZeroU32 = NonZeroU32::new(180).unwrap();

/// The farm, with as many browsers as by default, and the site of tests that need no other.
pub(crate) struct Shared {
    pub(crate) farm: Farm,
    /// A farm with a browser for each test that runs at once.
    idle_farm: Farm,
    pub(crate) site: Site,
}

impl Shared {
    pub(crate) async fn start(tests_at_once: Option<usize>) -> Self {
        let idle_farm =
            farm(|config| config.browsers = tests_at_once.and_then(|count| count.try_into().ok()));
        Self {
            farm: farm(|config| config.browsers = None).await,
            idle_farm: idle_farm.await,
            site: Site::start().await,
        }
    }

    pub(crate) async fn shutdown(&self) {
        tokio::join!(self.farm.shutdown(), self.idle_farm.shutdown());
    }

    pub(crate) async fn render(&self, job: &RenderJob) -> Result<Rendered, Refusal> {
        self.farm.render(job, MAX_WAIT).await
    }

    /// Renders a job that ends at its deadline, for which it waits for no job of another test.
    pub(crate) async fn render_by(&self, job: &RenderJob, deadline: Duration) -> Result<Rendered, Refusal> {
        self.idle_farm.render(job, deadline).await
    }

    /// The file of a job that must not be refused.
    pub(crate) async fn file(&self, job: &RenderJob) -> Rendered {
        file(&self.farm, job).await
    }

    /// Checks that the middle of the picture of a job is green.
    pub(crate) async fn expect_green(&self, job: &RenderJob) {
        expect_green(&self.farm, job).await;
    }

    /// The text of the PDF of a job.
    pub(crate) async fn text(&self, job: &RenderJob) -> String {
        pdf_of(&self.file(job).await).text().unwrap()
    }

    /// Checks that the PDF of a page has a text.
    pub(crate) async fn expect_text(&self, job: RenderJob, text: &str) {
        let found = self.text(&to(pdf(), job.clone())).await;
        assert!(found.contains(text), "{found:?} without {text}: {}", json!(job));
    }

    /// The PDF of a request with these fields.
    pub(crate) async fn pdf(&self, fields: Value) -> Pdf {
        pdf_of(&self.file(&paged(fields)).await)
    }

    /// Why no PDF is made of a request with these fields.
    pub(crate) async fn no_pdf(&self, fields: Value) -> Refusal {
        self.render(&paged(fields)).await.unwrap_err()
    }
}

/// The file of a job that must not be refused.
pub(crate) async fn file(farm: &Farm, job: &RenderJob) -> Rendered {
    farm.render(job, MAX_WAIT).await.unwrap_or_else(|refusal| panic!("{refusal}: {}", json!(job)))
}

/// Checks that the middle of the picture of a job is green.
pub(crate) async fn expect_green(farm: &Farm, job: &RenderJob) {
    assert_eq!(middle(&file(farm, job).await), GREEN, "{}", json!(job));
}

/// A farm of two browsers that resolves the names of the site.
pub(crate) async fn farm(change: impl FnOnce(&mut Config)) -> Farm {
    let mut config = Config {
        browsers: 2.try_into().ok(),
        queue_timeout: MAX_WAIT_SECONDS,
        resolve: site::HOSTS.iter().map(|host| format!("{host}=127.0.0.1").parse().unwrap()).collect(),
        ..Config::default()
    };
    change(&mut config);
    Farm::start(config).await.expect("a farm starts if Chromium is installed")
}

/// Waits until the metrics of a farm have a line.
pub(crate) async fn until_metric(farm: &Farm, line: &str) {
    let found = async || {
        let request = Request::get("/metrics").body(Body::empty()).unwrap();
        let response = farm.router().call(request).await?;
        let text = axum::body::to_bytes(response.into_body(), usize::MAX).await?;
        Ok(String::from_utf8_lossy(&text).lines().any(|it| it == line).then_some(()))
    };
    wait::until_some(line, found).await.unwrap();
}

/// Writes a script that can be run as a program, and returns its path.
pub(crate) fn program(path: &Path, script: &str) -> PathBuf {
    fs::write(path, script).unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
    path.to_owned()
}

pub(crate) fn png() -> Output {
    Output::Image(ImageOptions::new(ImageFormat::Png))
}

pub(crate) fn pdf() -> Output {
    Output::Pdf(Box::new(PdfOptions { print_background: true, ..PdfOptions::new(PaperSize::A4.into()) }))
}

pub(crate) fn full_page_png() -> Output {
    Output::Image(ImageOptions { region: Region::FullPage, ..ImageOptions::new(ImageFormat::Png) })
}

pub(crate) fn viewport(width: u32, height: u32, factor: f64) -> Viewport {
    let side = |side: u32| f64::from(side).try_into().unwrap();
    Viewport {
        width: side(width),
        height: side(height),
        device_scale_factor: factor.try_into().unwrap(),
        mobile: false,
    }
}

fn job(source: Source) -> RenderJob {
    let options = RenderOptions { viewport: viewport(320, 240, 1.0), ..RenderOptions::new(png()) };
    RenderJob { account: AccountId::from_text("acc_test"), source, options }
}

/// A small picture of some markup.
pub(crate) fn html(markup: &str) -> RenderJob {
    job(Source::Html(markup.to_owned().try_into().unwrap()))
}

/// The job of a request with this body.
pub(crate) fn request(body: &serde_json::Value) -> RenderJob {
    let request = RenderRequest::parse(Endpoint::Render, body.to_string().as_bytes()).unwrap();
    request.into_job(AccountId::from_text("acc_test"), None).unwrap()
}

/// A small picture of a page.
pub(crate) fn url(url: &str) -> RenderJob {
    job(Source::Url(url.to_owned().try_into().unwrap()))
}

/// A small picture of a page with these fields of a request.
pub(crate) fn small(mut fields: Value) -> RenderJob {
    let all = fields.as_object_mut().unwrap();
    all.entry("width").or_insert(320.into());
    all.entry("height").or_insert(240.into());
    request(&fields)
}

/// A PDF of a page with these fields of a request.
pub(crate) fn paged(fields: Value) -> RenderJob {
    request(&with(fields, &json!({ "format": "pdf" })))
}

pub(crate) fn pdf_of(file: &Rendered) -> Pdf {
    Pdf::parse(&file.bytes).unwrap()
}

/// An object with the members of another one.
pub(crate) fn with(mut object: Value, members: &Value) -> Value {
    let (Value::Object(all), Value::Object(members)) = (&mut object, members) else { panic!("no objects") };
    all.extend(members.clone());
    object
}

/// The job with another output.
pub(crate) fn to(output: Output, mut job: RenderJob) -> RenderJob {
    job.options.output = output;
    job
}

/// The job with a wait in milliseconds after its milestone.
pub(crate) fn waiting(mut job: RenderJob, milliseconds: f64) -> RenderJob {
    job.options.wait_for_timeout = milliseconds.try_into().unwrap();
    job
}

/// The job for an account.
pub(crate) fn of(account: &str, mut job: RenderJob) -> RenderJob {
    job.account = AccountId::from_text(account);
    job
}

/// A green picture that takes at least this many milliseconds: a page with a worker waits in real time.
pub(crate) fn slow(milliseconds: f64) -> RenderJob {
    let page =
        "<!doctype html><html style='background:green'><script>new Worker('data:text/javascript,')</script>";
    waiting(html(page), milliseconds)
}

/// Sends a job; its status, and its file or refusal.
pub(crate) async fn send(farm: &FarmProcess, job: &RenderJob, deadline_ms: u64) -> (u16, Vec<u8>) {
    let request = farm.post(job).header(platen_shared::wire::DEADLINE_MS, deadline_ms.to_string());
    let response = request.send().await.unwrap();
    (response.status().as_u16(), response.bytes().await.unwrap().to_vec())
}

/// The status of a refusal, and its code.
pub(crate) async fn status_and_code(response: reqwest::Response) -> (u16, String) {
    let status = response.status().as_u16();
    let refusal: Value = response.json().await.unwrap();
    (status, refusal["code"].as_str().unwrap().to_owned())
}

/// The pages of a file, each after a comment with its name.
pub(crate) fn pages(file: &'static str) -> Vec<(&'static str, &'static str)> {
    let sections = file.split("<!-- ").skip(1);
    let named = sections.map(|section| {
        let (name, page) = section.split_once(" -->").unwrap();
        (name.split_once(": ").unwrap().1, page)
    });
    named.collect()
}

/// Width and height of a picture.
pub(crate) fn dimensions(file: &Rendered) -> (u32, u32) {
    picture(&file.bytes).dimensions()
}

/// The colour in the middle of a picture.
pub(crate) fn middle(file: &Rendered) -> Colour {
    colour(&file.bytes)
}

/// The colour in the middle of a picture.
pub(crate) fn colour(file: &[u8]) -> Colour {
    let image = picture(file);
    image.get_pixel(image.width() / 2, image.height() / 2).0
}

/// The pixels of a picture.
pub(crate) fn picture(file: &[u8]) -> image::RgbImage {
    image::load_from_memory(file).expect("a picture").to_rgb8()
}

/// Markup that is green if its script finds `condition` true at once, and red otherwise.
pub(crate) fn green_if(condition: &str) -> String {
    format!(
        "<!doctype html><body style='margin:0'><script>\
         document.documentElement.style.background = ({condition}) ? 'green' : 'red'</script>"
    )
}
