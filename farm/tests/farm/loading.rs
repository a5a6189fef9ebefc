//! Pages whose `load` event comes late, never, or beside something that fails.

use std::sync::Arc;

use platen_harness::site::Reply;

use crate::support::{GREEN_PAGE, Shared, site::Site, url, waiting};

tests! {
    "a worker without a script does not end its page" => no_worker_script,
}

async fn no_worker_script(shared: Arc<Shared>) {
    let site = &shared.site;
    let wrong_type = site.put("/wrong.js", Reply::of("image/png", "x"));
    for script in [&site.at("/status/404"), &site.closed(), &wrong_type] {
        for worker in ["Worker", "SharedWorker"] {
            let page = format!("{GREEN_PAGE}<script>try {{ new {worker}('{script}') }} catch {{}}</script>");
            let page = url(&site.at(&Site::markup(&page)));
            shared.expect_green(&page).await;
            shared.expect_green(&waiting(page, 300.0)).await;
        }
    }
}
