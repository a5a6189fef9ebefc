//! A job that is in the middle of its page until the test lets it continue.

use platen_shared::job::RenderJob;
use platen_tests::{latch::Latch, site::Reply};
use reqwest::Response;
use tokio::task::JoinHandle;

use super::{farm_process::FarmProcess, site::Site, url};

const PICTURE: &str = "/held.svg";

/// A farm, and a job for a green page whose picture is sent once the latch is open.
pub(crate) struct HeldPage {
    pub(crate) farm: FarmProcess,
    pub(crate) latch: Latch,
    site: Site,
    job: RenderJob,
}

impl HeldPage {
    pub(crate) async fn start(arguments: &[&str]) -> Self {
        let (farm, site) = (FarmProcess::start(arguments).await, Site::start().await);
        let latch = Latch::closed();
        let picture = Reply::of("image/svg+xml", "<svg xmlns='http://www.w3.org/2000/svg'/>");
        site.put(PICTURE, picture.with_header("cache-control", "no-store").behind(&latch));
        let page = format!("<!doctype html><html style='background:green'><img src='{PICTURE}'>");
        let job = url(&site.put("/held", Reply::page(page)));
        Self { farm, latch, site, job }
    }

    pub(crate) fn post(&self) -> JoinHandle<reqwest::Result<Response>> {
        tokio::spawn(self.farm.post(&self.job).send())
    }

    /// Waits until this many attempts of the job have requested the picture.
    pub(crate) async fn until_loading(&self, attempts: usize) {
        self.site.until_hits(PICTURE, attempts).await;
    }
}
