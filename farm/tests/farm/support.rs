//! What the tests share: the farm, a web site for it to visit, jobs, and a look at files.

pub(crate) mod busy_loops;
pub(crate) mod leftovers;
pub(crate) mod names;
pub(crate) mod program;
pub(crate) mod site;
pub(crate) mod tls;
pub(crate) mod upstream;

use std::{future::Future, pin::Pin, time::Duration};

use platen_farm::{Config, Farm, Rendered};
use platen_shared::{
    format::{ImageFormat, PaperSize, WaitUntil},
    id::AccountId,
    job::{Output, PdfScale, RenderJob, Source, Viewport, WaitMs},
    refusal::Refusal,
};

use self::site::Site;

/// What a test is once it has been called.
pub(crate) type Outcome = Pin<Box<dyn Future<Output = ()>>>;

/// Long enough for the slowest machine; tests of deadlines set their own.
pub(crate) const PATIENCE: Duration = Duration::from_mins(2);

/// One farm and one site for most tests.
pub(crate) struct Shared {
    pub(crate) farm: Farm,
    pub(crate) site: Site,
}

impl Shared {
    pub(crate) async fn start() -> Self {
        Self { farm: farm(|_| {}).await, site: Site::start().await }
    }

    pub(crate) async fn render(&self, job: &RenderJob) -> Result<Rendered, Refusal> {
        self.farm.render(job, PATIENCE).await
    }
}

/// A farm of two browsers that finds the site's names.
pub(crate) async fn farm(change: impl FnOnce(&mut Config)) -> Farm {
    let mut config = Config {
        browsers: 2.try_into().ok(),
        resolve: site::HOSTS.iter().map(|host| format!("{host}=127.0.0.1").parse().unwrap()).collect(),
        ..Config::default()
    };
    change(&mut config);
    Farm::start(config).await.expect("a farm starts where Chromium is installed")
}

pub(crate) fn png() -> Output {
    Output::Image { format: ImageFormat::Png, full_page: false }
}

pub(crate) fn pdf() -> Output {
    Output::Pdf { paper: PaperSize::A4, print_background: true, scale: PdfScale::default() }
}

/// A PNG of the whole page.
pub(crate) fn png_of_all() -> Output {
    Output::Image { format: ImageFormat::Png, full_page: true }
}

pub(crate) fn viewport(width: u32, height: u32, factor: f64) -> Viewport {
    let side = |side: u32| f64::from(side).try_into().unwrap();
    Viewport { width: side(width), height: side(height), device_scale_factor: factor.try_into().unwrap() }
}

fn job(source: Source) -> RenderJob {
    RenderJob {
        account: AccountId::from_text("acc_test"),
        source,
        viewport: viewport(320, 240, 1.0),
        wait_until: WaitUntil::Load,
        wait_for_timeout: WaitMs::default(),
        output: png(),
    }
}

/// A small picture of some markup.
pub(crate) fn html(markup: &str) -> RenderJob {
    job(Source::Html(markup.to_owned().try_into().unwrap()))
}

/// A green picture that takes at least so many milliseconds: a page with a worker is waited for in real
/// time.
pub(crate) fn slow(milliseconds: f64) -> RenderJob {
    let mut job = html(
        "<!doctype html><html style='background:green'><script>new Worker('data:text/javascript,')</script>",
    );
    job.wait_for_timeout = milliseconds.try_into().unwrap();
    job
}

/// A small picture of a page.
pub(crate) fn url(url: &str) -> RenderJob {
    job(Source::Url(url.to_owned().try_into().unwrap()))
}

/// Width and height of a picture, read by a decoder that is not Chromium's.
pub(crate) fn dimensions(file: &Rendered) -> (u32, u32) {
    let image = image::load_from_memory(&file.bytes).expect("a picture");
    (image.width(), image.height())
}

/// The text of a PDF, read by a program that is not Chromium.
pub(crate) fn pdf_text(file: &Rendered) -> String {
    use std::io::Write as _;
    let mut pdf = tempfile::NamedTempFile::new().unwrap();
    pdf.write_all(&file.bytes).unwrap();
    let output = std::process::Command::new("pdftotext").arg(pdf.path()).arg("-").output();
    let output = output.expect("pdftotext of poppler-utils");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The colour in the middle of a picture.
pub(crate) fn middle(file: &Rendered) -> [u8; 3] {
    colour(&file.bytes)
}

/// The colour in the middle of a picture.
pub(crate) fn colour(file: &[u8]) -> [u8; 3] {
    let image = image::load_from_memory(file).expect("a picture").to_rgb8();
    image.get_pixel(image.width() / 2, image.height() / 2).0
}

pub(crate) const GREEN: [u8; 3] = [0, 128, 0];

/// Markup that is green where its script finds `condition` true, evaluated at once, and red
/// otherwise.
pub(crate) fn green_if(condition: &str) -> String {
    format!(
        "<!doctype html><body style='margin:0'><script>\
         document.documentElement.style.background = ({condition}) ? 'green' : 'red'</script>"
    )
}
