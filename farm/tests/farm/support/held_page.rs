//! A job that is in the middle of its page until the test lets it continue.

use platen_harness::{latch::Latch, site::Reply};
use platen_shared::job::RenderJob;
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
        // Its memory tells its renderer from those of spare pages.
        let page = format!(
            "<!doctype html><html style='background:green'><script>const large = new Uint8Array(1e8).fill(1)</script>\
             <img src='{PICTURE}'>"
        );
        let job = url(&site.put("/held", Reply::page(page)));
        Self { farm, latch, site, job }
    }

    pub(crate) fn post(&self) -> JoinHandle<reqwest::Result<Response>> {
        tokio::spawn(self.farm.post(&self.job).send())
    }

    /// Kills the renderer of the page, but not those of spare pages, which the next attempt may use.
    pub(crate) fn kill_renderer(&self) {
        self.farm.kill_largest_renderer();
    }

    /// Waits until this many attempts of the job have requested the picture.
    pub(crate) async fn until_loading(&self, attempts: usize) {
        self.site.until_hits(PICTURE, attempts).await;
    }
}
