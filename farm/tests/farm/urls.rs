//! Jobs with a URL: pages that are fetched, failures, and addresses that no page may reach.

use std::sync::Arc;

use platen_shared::refusal::Refusal;

use crate::{
    Test,
    support::{GREEN, Shared, html, middle, url, waiting},
};

pub(crate) const TESTS: &[Test] = &[
    ("a page is fetched and rendered", |s| Box::pin(fetched(s))),
    ("each failure has its refusal", |s| Box::pin(failures(s))),
    ("no request reaches an address that is not public", |s| Box::pin(forbidden(s))),
    ("a job finds no data of an earlier job", |s| Box::pin(fresh(s))),
];

async fn fetched(shared: Arc<Shared>) {
    let site = &shared.site;
    let moved = site.at(&format!("/to?{}", site.elsewhere("/green")));
    for address in [site.at("/green"), site.at("/status/404"), site.at("/status/503"), moved] {
        assert_eq!(middle(&shared.render(&url(&address)).await.unwrap()), GREEN, "{address}");
    }
    // A page may navigate.
    let moving = format!("<script>location = '{}'</script>", site.at("/green"));
    assert_eq!(middle(&shared.render(&html(&moving)).await.unwrap()), GREEN);
}

async fn failures(shared: Arc<Shared>) {
    let site = &shared.site;
    let host = || "page.test".to_owned();
    for (address, refusal) in [
        (site.closed(), Refusal::ConnectionRefused { host: host() }),
        (site.closing(), Refusal::ConnectionFailed { host: host() }),
        (site.without_tls(), Refusal::Tls { host: host() }),
        (site.at("/loop"), Refusal::TooManyRedirects { host: host() }),
        (site.at("/download"), Refusal::NotAPage { host: host() }),
        (site.at("/empty"), Refusal::NotAPage { host: host() }),
        (site.at("/to?file:///etc/passwd"), Refusal::NotAPage { host: host() }),
    ] {
        assert_eq!(shared.render(&url(&address)).await.unwrap_err(), refusal, "{address}");
    }
}

async fn forbidden(shared: Arc<Shared>) {
    let site = &shared.site;
    let (target, before) = (site.forbidden(), site.forbidden_requests());
    let redirect = site.at(&format!("/to?{target}"));
    let named = Refusal::AddressNotPublic { host: "page.test".to_owned() };
    assert_eq!(shared.render(&url(&redirect)).await.unwrap_err(), named);
    let nameless = Refusal::AddressNotPublic { host: "the page's destination".to_owned() };
    let tls = target.replace("http:", "https:");
    for (page, refusal) in [
        (format!("<script>location = '{target}'</script>"), &nameless),
        (format!("<script>location = '{tls}'</script>"), &nameless),
        (format!("<meta http-equiv=refresh content='0;url={target}'>"), &nameless),
        (format!("<script>location = '{redirect}'</script>"), &named),
    ] {
        let job = waiting(html(&page), 1_000.0);
        assert_eq!(shared.render(&job).await.unwrap_err(), *refusal, "{page}");
    }
    for page in [
        format!("<img src='{target}'><img src='{redirect}'>"),
        format!("<iframe src='{target}'></iframe><iframe src='{redirect}'></iframe>"),
        format!("<link rel=stylesheet href='{target}'><script src='{target}'></script>"),
        format!(
            "<script>fetch('{target}', {{ mode: 'no-cors' }}); navigator.sendBeacon('{target}')</script>"
        ),
        format!("<object data='{target}'></object><embed src='{target}'>"),
        format!("<iframe srcdoc=\"<img src='{target}'>\"></iframe>"),
        "<iframe src='file:///etc/passwd'></iframe>".to_owned(),
    ] {
        shared.render(&waiting(html(&page), 300.0)).await.unwrap();
    }
    assert_eq!(site.forbidden_requests(), before);
}

async fn fresh(shared: Arc<Shared>) {
    for number in 0..3 {
        let file = shared.render(&url(&shared.site.at("/cookie"))).await.unwrap();
        assert_eq!(middle(&file), GREEN, "job {number}");
    }
}
