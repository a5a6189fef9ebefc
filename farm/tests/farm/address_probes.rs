//! What a page finds at its address: the same in markup with files, with a base URL, by URL, and in a browser without a farm.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use http::{HeaderMap, StatusCode, Uri, header};
use percent_encoding::percent_decode_str;
use platen_farm::Farm;
use platen_harness::{browser::Browser, site::Reply};
use serde_json::{Value, json};

use crate::support::{
    Shared, file,
    secure_site::{Results, SecureSite},
    site::GREEN_PICTURE,
    small, with,
};

tests! {
    "a page finds the same at its address however it got there" => compared,
}

const PROBES: &str = include_str!("address_probes/probes.html");
/// The least number of probes.
const MIN_PROBES: usize = 100;
/// Names that only the settings of this test resolve. `OTHER` has a site in any case.
const HOST: &str = "base.test";
const OTHER: &str = "other.test";
const FOLDER: &str = "/a/b%20c/";

/// Who shows a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Markup with files, at an address of its own.
    Assets,
    /// Markup with files and a base URL.
    Base,
    /// A URL.
    Url,
}

const ALL: &[Way] = &[Way::Assets, Way::Base, Way::Url];
const MARKUP: &[Way] = &[Way::Assets, Way::Base];

impl Way {
    /// The result of a probe, for a comparison. At an address of its own, the markup is in the root.
    fn shown(self, result: &str) -> String {
        match self {
            Self::Assets => result.replace("BASE", "ORIGIN/").replace("FOLDER/", "ORIGIN/"),
            Self::Base | Self::Url => result.to_owned(),
        }
    }
}

/// What a page finds otherwise than in a browser: the probe, where that is, what it finds there, and why.
const DIFFERENCES: &[(&str, &[Way], &str, &str)] = &[
    (
        "headers of the response",
        MARKUP,
        "accept-ranges access-control-allow-origin cache-control content-length content-type",
        "a file of a job has no date, so that equal jobs give equal files",
    ),
    ("notifications", ALL, "none", "they are off: there is no user to give the permission"),
    (
        "other name of the domain",
        &[Way::Assets],
        "404",
        "each address of the domain that is no file is absent; elsewhere the domain has no address",
    ),
    ("protocol of a file", MARKUP, "", "a file of a job comes over no connection"),
    ("service worker", MARKUP, "TypeError", "they are off at the address of markup"),
];

/// A file at `HOST`, with the headers of a file of a job.
fn own(uri: &Uri, headers: &HeaderMap) -> Reply {
    let name = uri.path().strip_prefix(FOLDER).unwrap_or("none");
    let name = percent_decode_str(name).decode_utf8_lossy().replace("u\u{308}", "ü");
    if name == "index.html" {
        return Reply::page(markup(&address()));
    }
    let files = files();
    let Some(found) = files.get(&*name).filter(|_| !uri.path().contains("%2F")) else { return absent() };
    let content = found["text"].as_str().map(|text| text.as_bytes().to_owned());
    let content =
        content.unwrap_or_else(|| BASE64_STANDARD.decode(found["content"].as_str().unwrap()).unwrap());
    let of_type = found["mimeType"]
        .as_str()
        .unwrap_or_else(|| mime_guess::from_path(&*name).first_raw().unwrap_or("application/octet-stream"));
    let range = headers.get(header::RANGE).and_then(|range| range.to_str().ok()?.strip_prefix("bytes="));
    let range = range.and_then(|range| range.split_once('-'));
    let length = content.len();
    let reply = match range.map(|(first, last)| (first.parse::<usize>().unwrap(), last.parse().ok())) {
        None => Reply::of(of_type, content),
        Some((first, last)) => {
            let last = last.unwrap_or(length - 1).min(length - 1);
            Reply::of(of_type, content[first..=last].to_owned())
                .with_status(StatusCode::PARTIAL_CONTENT)
                .with_header("content-range", &format!("bytes {first}-{last}/{length}"))
        }
    };
    reply
        .with_header("cache-control", "no-store")
        .with_header("access-control-allow-origin", "*")
        .with_header("accept-ranges", "bytes")
}

/// An answer at `OTHER`.
fn other(uri: &Uri, headers: &HeaderMap) -> Reply {
    let seen = |name: &str| headers.get(name).map_or("-", |value| value.to_str().unwrap());
    let reply = match uri.path() {
        "/echo" => {
            let names = ["origin", "referer", "cookie", "sec-fetch-site", "sec-fetch-mode"];
            Reply::page(names.map(seen).join(" "))
        }
        "/closed.svg" => return Reply::of("image/svg+xml", GREEN_PICTURE),
        "/open.svg" => Reply::of("image/svg+xml", GREEN_PICTURE),
        "/frame.html" => Reply::page(
            "<script>parent.postMessage([document.referrer, location.ancestorOrigins[0]], '*')</script>",
        ),
        _ => absent(),
    };
    reply.with_header("access-control-allow-origin", "*")
}

fn absent() -> Reply {
    Reply::page("").with_status(StatusCode::NOT_FOUND)
}

/// The address of the markup at `HOST`.
fn address() -> String {
    format!("https://{HOST}{FOLDER}index.html?d=e")
}

/// The probes, for an address that is the value of an expression.
fn markup_at(expression: &str) -> String {
    PROBES.replace("EXPECTED_BASE", expression)
}

fn markup(address: &str) -> String {
    markup_at(&format!("'{address}'"))
}

/// The files beside the markup, as `assets`.
fn files() -> Value {
    let svg = "<svg xmlns='http://www.w3.org/2000/svg' width='20' height='20'><rect id='shape' width='20' height='20' fill='green'/></svg>";
    let font = fs::read("/usr/share/fonts/truetype/liberation/LiberationSans-Regular.ttf").unwrap();
    let sandbox = "<script>let found; try { found = localStorage.length } catch ({ name }) { found = name } parent.postMessage([origin, found], '*')</script>";
    json!({
        "css/style.css": { "text": "@import 'weight.css'; @font-face { font-family: Own; src: url(../font.ttf) } #styled { color: green; background: url(../img/green.svg) }" },
        "css/weight.css": { "text": "#styled { font-weight: bold }" },
        "font.ttf": { "content": BASE64_STANDARD.encode(font) },
        "js/classic.js": { "text": "globalThis.classic = 'classic'" },
        "js/empty.js": { "text": "" },
        "js/throws.js": { "text": "\nthrow new Error('thrown')" },
        "js/module.js": { "text": "export { value } from './value.mjs'" },
        "js/value.mjs": { "text": "export const value = 'module'" },
        "js/meta.mjs": { "text": "export const address = import.meta.url, found = import.meta.resolve('./a')" },
        "js/where.js": { "text": "postMessage([location.href, origin, isSecureContext])" },
        "js/worker.js": { "text": "importScripts('classic.js'); fetch('../data.bin').then(async it => postMessage(classic + ' ' + (await it.text()).replace('0', '') + '0'))" },
        "js/module-worker.js": { "text": "import { value } from './module.js'; postMessage(value)" },
        "js/shared-worker.js": { "text": "importScripts('classic.js'); onconnect = async ({ ports: [port] }) => { port.postMessage(classic + ' ' + await (await fetch('../data.bin')).text()) }" },
        "img/green.svg": { "text": svg },
        "frame.html": { "text": "<!doctype html><meta charset=utf-8><body>frame" },
        "sandbox.html": { "text": sandbox },
        "fetches.html": { "text": "<script>fetch('data.json').then(it => it.text()).catch(String).then(it => parent.postMessage(it, '*'))</script>" },
        "referrer.html": { "text": "<script>parent.postMessage(document.referrer)</script>" },
        "storage.html": { "text": "<script>onstorage = ({ key }) => parent.postMessage(key)</script>" },
        "data.json": { "text": "{\"a\":\"ü\"}" },
        "data.bin": { "content": BASE64_STANDARD.encode("0123456789"), "mimeType": "text/csv; charset=utf-8" },
        "empty.wasm": { "content": BASE64_STANDARD.encode(b"\0asm\x01\0\0\0") },
        "tone.wav": { "content": BASE64_STANDARD.encode(tone()) },
        "noext": { "content": "" },
        "ü.txt": { "text": "umlaut" },
    })
}

/// A tenth of a second of silence.
fn tone() -> Vec<u8> {
    let (rate, bytes) = (8_000_u32, 800_u32);
    let mut wav = Vec::new();
    wav.extend(*b"RIFF");
    wav.extend((36 + bytes).to_le_bytes());
    wav.extend(*b"WAVEfmt ");
    for part in
        [&16_u32.to_le_bytes()[..], &[1, 0, 1, 0], &rate.to_le_bytes(), &rate.to_le_bytes(), &[1, 0, 8, 0]]
    {
        wav.extend(part);
    }
    wav.extend(*b"data");
    wav.extend(bytes.to_le_bytes());
    wav.extend(vec![128; 800]);
    wav
}

/// The results in a browser without a farm.
async fn in_browser(network: &SecureSite) -> Results {
    let page = Browser::start_with(&network.switches()).await.unwrap().page().await.unwrap();
    page.go(&address()).await.unwrap();
    page.wait("window.done").await.unwrap();
    network.take()
}

async fn in_farm(farm: &Farm, network: &SecureSite, has_files: &AtomicBool, way: Way) -> Results {
    let own = "/^https:\\/\\/[0-9a-f]{16}\\.document\\.invalid\\/$/.test(location) ? location.href : 'none'";
    let fields = match way {
        Way::Assets => json!({ "html": markup_at(own), "assets": files() }),
        // Its fragment is no part of the address.
        Way::Base => json!({ "html": markup(&address()), "assets": files(), "baseUrl": address() + "#f" }),
        Way::Url => json!({ "url": address() }),
    };
    has_files.store(way == Way::Url, Ordering::SeqCst);
    file(farm, &small(with(fields, &json!({ "waitForFunction": "window.done" })))).await;
    network.take()
}

async fn compared(_: Arc<Shared>) {
    // Whether HOST has the files.
    let has_files = Arc::<AtomicBool>::default();
    let is_there = Arc::clone(&has_files);
    let network = SecureSite::start(move |host, uri, headers| match host {
        OTHER => other(uri, headers),
        _ if is_there.load(Ordering::SeqCst) => own(uri, headers),
        _ => absent(),
    });
    let network = network.await;
    let farm = network.farm(&[HOST, OTHER]).await;
    let mut found = Vec::new();
    for way in ALL {
        found.push((*way, in_farm(&farm, &network, &has_files, *way).await));
    }
    farm.shutdown().await;
    let browser = in_browser(&network).await;
    assert!(browser.len() >= MIN_PROBES, "{} probes", browser.len());
    let mut wrong = Vec::new();
    for (probe, in_browser) in &browser {
        if in_browser == "false" || in_browser == "no answer" || in_browser.starts_with("threw") {
            wrong.push(format!("{probe}: {in_browser} in a browser"));
        }
        for (way, results) in &found {
            let (result, in_browser) = (way.shown(&results[probe]), way.shown(in_browser));
            let known = DIFFERENCES.iter().find(|(name, ways, ..)| name == probe && ways.contains(way));
            let expected = known.map_or(&*in_browser, |(_, _, expected, _)| *expected);
            if result != expected {
                wrong.push(format!("{probe}, {way:?}: {result:?} instead of {expected:?}"));
            } else if known.is_some() && result == in_browser {
                wrong.push(format!("{probe}, {way:?}: no difference"));
            }
        }
    }
    for (name, ..) in DIFFERENCES {
        assert!(browser.contains_key(*name), "there is no probe {name}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
