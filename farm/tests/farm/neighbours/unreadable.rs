//! The probe lists every property that a page can read; no hostile page of another account changes one.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write as _,
    process::Command,
    sync::Arc,
};

use super::{HOSTILE_ENDS, PATIENT, of, pages, send, start};
use crate::support::{Shared, html, pdf, program::Program, site::Site};

const PROBE: &str = include_str!("probe.html");
/// Pages that try to change what other pages read.
const ATTACKS: &str = include_str!("attacks.html");

/// Where a probe looks from.
#[derive(Debug, Clone, Copy)]
enum Place {
    /// A document without an origin.
    Markup,
    /// A page of a site, with everything that only secure contexts have.
    Secure,
}

/// What a page of an account reads there.
async fn listing(program: &Program, site: &Site, account: &str, place: Place) -> BTreeMap<String, String> {
    let markup = match place {
        Place::Markup => PROBE.to_owned(),
        Place::Secure => site.secure("/probe"),
    };
    let mut job = of(account, html(&markup));
    job.output = pdf();
    // A slow machine takes longer to list everything.
    for wait in [700.0, 2_000.0, 5_000.0, 10_000.0, 10_000.0] {
        job.wait_for_timeout = wait.try_into().unwrap();
        let (status, file) = send(program, &job, PATIENT).await;
        assert_eq!(status, 200, "{account}: {}", String::from_utf8_lossy(&file));
        let text = text(&file);
        assert!(!text.contains("failed: "), "{text}");
        if text.contains("complete ") && !text.contains("no answer") {
            let lines = text.lines().filter_map(|line| line.split_once(" = "));
            return lines.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        }
    }
    panic!("the listing is not complete");
}

fn text(file: &[u8]) -> String {
    let mut command = Command::new("pdftotext");
    command.args(["-layout", "-nopgbrk", "-enc", "UTF-8", "-", "-"]);
    command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut child = command.spawn().expect("pdftotext, which scripts/test installs");
    let mut input = child.stdin.take().unwrap();
    let file = file.to_vec();
    let writing = std::thread::spawn(move || input.write_all(&file).unwrap());
    let output = child.wait_with_output().unwrap();
    writing.join().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

/// What differs.
fn differences<'a>(one: &'a BTreeMap<String, String>, other: &'a BTreeMap<String, String>) -> Vec<String> {
    let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    let differing = names.into_iter().filter(|name| one.get(*name) != other.get(*name));
    differing.map(|name| format!("{name}: {:?} became {:?}", one.get(name), other.get(name))).collect()
}

pub(super) async fn test(_: Arc<Shared>) {
    let site = Site::start().await;
    let program = start(&["--browsers", "1"]).await;
    let markup = listing(&program, &site, "before", Place::Markup).await;
    let secure = listing(&program, &site, "before", Place::Secure).await;
    assert!(markup.len() > 600 && secure.len() > 600, "{} and {}", markup.len(), secure.len());
    assert_eq!(secure["page.isSecureContext"], "true");
    let check = async |account: &str, place, after: &str| {
        let expected = if matches!(place, Place::Markup) { &markup } else { &secure };
        let seen = listing(&program, &site, account, place).await;
        assert!(
            differences(expected, &seen).is_empty(),
            "{account} after {after}: {:#?}",
            differences(expected, &seen)
        );
    };
    // Several attacks before each look: a look takes a second.
    for (number, group) in pages(ATTACKS).chunks(4).enumerate() {
        let names: Vec<&str> = group.iter().map(|(name, _)| *name).collect();
        let names = names.join(", ");
        for (name, page) in group {
            let mut secure = html(&site.secure(&Site::markup(page)));
            secure.wait_for_timeout = 200.0.try_into().unwrap();
            // Twice, so that the page is kept; then by a page with the powers of a secure context.
            for job in [html(page), html(page), secure] {
                let (status, body) = send(&program, &of("hostile", job), 20_000).await;
                assert_eq!(status, 200, "{name}: {}", String::from_utf8_lossy(&body));
            }
        }
        check(&format!("markup {number}"), Place::Markup, &names).await;
        check(&format!("secure {number}"), Place::Secure, &names).await;
        check("hostile", Place::Markup, &names).await;
        check("hostile", Place::Secure, &names).await;
    }
    // While they run: in another browser of the same farm.
    let all: String = pages(ATTACKS).into_iter().map(|(_, page)| page).collect();
    let mut long = html(&site.secure(&Site::markup(&all)));
    long.wait_for_timeout = 10_000.0.try_into().unwrap();
    let long = of("hostile", long);
    let attacking = send(&program, &long, 20_000);
    let looking = async {
        program.until("platen_farm_slots_busy", 1).await;
        check("beside", Place::Markup, "all at once").await;
        check("beside", Place::Secure, "all at once").await;
    };
    let ((status, _), ()) = tokio::join!(attacking, looking);
    // All attacks in one page may end it in any of these ways.
    assert!(HOSTILE_ENDS.contains(&status), "{status}");
    program.end().await;
}
