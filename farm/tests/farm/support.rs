//! What the tests share: farms, jobs, and decoders.

pub(crate) mod farm_process;
pub(crate) mod site;

use std::{future::Future, pin::Pin};

use platen_farm::{Config, Farm, Rendered};
use platen_harness::{image_file::Colour, pdf_file::Pdf, wait::MAX_WAIT};
use platen_shared::{
    endpoint::Endpoint,
    format::{ImageFormat, PaperSize},
    id::AccountId,
    job::{ImageOptions, Output, PdfOptions, Region, RenderJob, RenderOptions, Source, Viewport},
    refusal::Refusal,
    request::RenderRequest,
};

use self::{farm_process::FarmProcess, site::Site};

pub(crate) use platen_harness::image_file::GREEN;

/// The running of a test.
pub(crate) type Outcome = Pin<Box<dyn Future<Output = ()>>>;

pub(crate) const TOKEN: &str = "s3cret";
/// A deadline that no job reaches, for the header of a job.
pub(crate) const MAX_WAIT_MS: u64 = 180_000;

/// The farm and the site of tests that need no other.
pub(crate) struct Shared {
    pub(crate) farm: Farm,
    pub(crate) site: Site,
}

impl Shared {
    pub(crate) async fn start() -> Self {
        Self { farm: farm(|_| {}).await, site: Site::start().await }
    }

    pub(crate) async fn render(&self, job: &RenderJob) -> Result<Rendered, Refusal> {
        self.farm.render(job, MAX_WAIT).await
    }
}

/// A farm of two browsers that resolves the names of the site.
pub(crate) async fn farm(change: impl FnOnce(&mut Config)) -> Farm {
    let mut config = Config {
        browsers: 2.try_into().ok(),
        resolve: site::HOSTS.iter().map(|host| format!("{host}=127.0.0.1").parse().unwrap()).collect(),
        ..Config::default()
    };
    change(&mut config);
    Farm::start(config).await.expect("a farm starts if Chromium is installed")
}

pub(crate) fn png() -> Output {
    Output::Image(ImageOptions::new(ImageFormat::Png))
}

pub(crate) fn pdf() -> Output {
    Output::Pdf(Box::new(PdfOptions { print_background: true, ..PdfOptions::new(PaperSize::A4.into()) }))
}

pub(crate) fn full_page_png() -> Output {
    full_page_image(ImageFormat::Png)
}

pub(crate) fn full_page_image(format: ImageFormat) -> Output {
    Output::Image(ImageOptions { region: Region::FullPage, ..ImageOptions::new(format) })
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

/// Width and height of a picture.
pub(crate) fn dimensions(file: &Rendered) -> (u32, u32) {
    picture(&file.bytes).dimensions()
}

/// The text of a PDF.
pub(crate) fn pdf_text(file: &Rendered) -> String {
    Pdf::parse(&file.bytes).unwrap().text().unwrap()
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
