//! A probe lists every property that a page can read. Hostile pages of another account change none of them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use platen_harness::pdf_file::Pdf;

use super::HOSTILE_STATUSES;
use crate::support::{
    MAX_WAIT_MS, Shared, farm_process::FarmProcess, html, of, pages, pdf, send, site::Site, waiting,
};

const PROBE: &str = include_str!("probe.html");
/// Pages that try to change what other pages read.
const ATTACKS: &str = include_str!("attacks.html");

/// The document of a probe.
#[derive(Debug, Clone, Copy)]
enum Origin {
    /// Markup, without an origin.
    Opaque,
    /// A page of a site in a secure context.
    Secure,
}

/// The properties that a page of an account reads, by name.
async fn listing(farm: &FarmProcess, site: &Site, account: &str, origin: Origin) -> BTreeMap<String, String> {
    let markup = match origin {
        Origin::Opaque => PROBE.to_owned(),
        Origin::Secure => site.secure("/probe"),
    };
    let mut job = of(account, html(&markup));
    job.options.output = pdf();
    // A slow machine needs a longer wait to list everything.
    for wait in [700.0, 2_000.0, 5_000.0, 10_000.0, 10_000.0] {
        let file = farm.file(&waiting(job.clone(), wait)).await;
        let text = Pdf::parse(&file).unwrap().layout().unwrap();
        assert!(!text.contains("failed: "), "{text}");
        if text.contains("complete ") && !text.contains("no answer") {
            let lines = text.lines().filter_map(|line| line.split_once(" = "));
            return lines.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        }
    }
    panic!("the listing is not complete");
}

/// The properties that differ.
fn differences<'a>(one: &'a BTreeMap<String, String>, other: &'a BTreeMap<String, String>) -> Vec<String> {
    let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    let differing = names.into_iter().filter(|name| one.get(*name) != other.get(*name));
    differing.map(|name| format!("{name}: {:?} became {:?}", one.get(name), other.get(name))).collect()
}

pub(super) async fn test(_: Arc<Shared>) {
    let site = Site::start().await;
    let farm = FarmProcess::start(&["--browsers", "1"]).await;
    let markup = listing(&farm, &site, "before", Origin::Opaque).await;
    let secure = listing(&farm, &site, "before", Origin::Secure).await;
    assert!(markup.len() > 600 && secure.len() > 600, "{} and {}", markup.len(), secure.len());
    assert_eq!(secure["page.isSecureContext"], "true");
    let check = async |account: &str, origin, after: &str| {
        let expected = if matches!(origin, Origin::Opaque) { &markup } else { &secure };
        let seen = listing(&farm, &site, account, origin).await;
        assert!(
            differences(expected, &seen).is_empty(),
            "{account} after {after}: {:#?}",
            differences(expected, &seen)
        );
    };
    // Several attacks before each probe, which takes a second.
    for (number, group) in pages(ATTACKS).chunks(8).enumerate() {
        let names: Vec<&str> = group.iter().map(|(name, _)| *name).collect();
        let names = names.join(", ");
        for (name, page) in group {
            let secure = waiting(html(&site.secure(&Site::markup(page))), 200.0);
            // The page of the second job is kept; the third runs in a secure context.
            for job in [html(page), html(page), secure] {
                let (status, body) = send(&farm, &of("hostile", job), MAX_WAIT_MS).await;
                assert_eq!(status, 200, "{name}: {}", String::from_utf8_lossy(&body));
            }
        }
        check(&format!("markup {number}"), Origin::Opaque, &names).await;
        check(&format!("secure {number}"), Origin::Secure, &names).await;
        check("hostile", Origin::Opaque, &names).await;
        check("hostile", Origin::Secure, &names).await;
    }
    farm.until_metric("platen_farm_slots_busy", 0).await;
    // While the attacks run, in another browser of the farm.
    let all: String = pages(ATTACKS).into_iter().map(|(_, page)| page).collect();
    let long = of("hostile", waiting(html(&site.secure(&Site::markup(&all))), 10_000.0));
    let attacking = send(&farm, &long, 20_000);
    let probing = async {
        farm.until_metric("platen_farm_slots_busy", 1).await;
        check("beside", Origin::Opaque, "all at once").await;
        check("beside", Origin::Secure, "all at once").await;
    };
    let ((status, _), ()) = tokio::join!(attacking, probing);
    // All attacks in one page may end it in any of these ways.
    assert!(HOSTILE_STATUSES.contains(&status), "{status}");
    farm.end().await;
}
