//! The web site of the corpus on 127.0.0.1: the pages and the files of the packages.
//!
//! Invariant: only files below the two directories are served. `/after/MS/…` serves `/…` after a delay, for
//! pages that fetch resources late.

use std::{
    path::{Component, Path, PathBuf},
    time::Duration,
};

use anyhow::Result;
use http::{Response, StatusCode, header};
use platen_harness::loopback::{Body, BreakOff, Loopback, full};

use super::reader;

/// Host name of the site, which farms resolve to 127.0.0.1.
pub(super) const HOST: &str = "corpus.test";
/// The site with the script of the [`reader`] in its pages.
pub(super) const READER_HOST: &str = "reader.test";
const MAX_DELAY_MS: u64 = 5_000;

/// Starts the site.
pub(super) async fn start(pages: &Path, packages: &Path) -> Result<Loopback> {
    let (pages, packages) = (pages.to_owned(), packages.to_owned());
    Loopback::start(move |request| {
        let (delay, path) = split_delay(request.uri().path());
        let file = file(path, &pages, &packages);
        let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
        let is_read = host.is_some_and(|host| host.starts_with(READER_HOST)) && reader::can_read(path);
        async move {
            tokio::time::sleep(delay).await;
            Ok::<_, BreakOff>(respond(file, is_read).await)
        }
    })
    .await
}

fn split_delay(path: &str) -> (Duration, &str) {
    let delayed = path.strip_prefix("/after/").and_then(|rest| rest.split_once('/'));
    let parsed = delayed.and_then(|(ms, _)| ms.parse::<u64>().ok());
    match (parsed, delayed) {
        (Some(ms), Some((number, _))) => {
            (Duration::from_millis(ms.min(MAX_DELAY_MS)), &path["/after/".len() + number.len()..])
        }
        _ => (Duration::ZERO, path),
    }
}

fn file(path: &str, pages: &Path, packages: &Path) -> Option<PathBuf> {
    let (directory, rest) = path
        .strip_prefix("/pages/")
        .map(|rest| (pages, rest))
        .or_else(|| path.strip_prefix("/node_modules/").map(|rest| (packages, rest)))?;
    let rest = Path::new(rest);
    let is_below = rest.components().all(|part| matches!(part, Component::Normal(_)));
    is_below.then(|| directory.join(rest))
}

async fn respond(file: Option<PathBuf>, is_read: bool) -> Response<Body> {
    let mut response = Response::new(full(""));
    *response.status_mut() = StatusCode::NOT_FOUND;
    let Some(file) = file else { return response };
    let Ok(mut body) = tokio::fs::read(&file).await else { return response };
    if is_read {
        body = reader::with_script(&String::from_utf8_lossy(&body)).into();
    }
    // Pages that are rendered from markup have an opaque origin, so their modules, fonts and fetches need CORS.
    let response_with_file = Response::builder()
        .header("content-type", media_type(&file))
        .header("access-control-allow-origin", "*")
        .header("access-control-allow-headers", "*")
        .body(full(body));
    response_with_file.unwrap_or(response)
}

fn media_type(file: &Path) -> &'static str {
    match file.extension().and_then(|text| text.to_str()).unwrap_or_default() {
        "html" | "htm" => "text/html; charset=utf-8",
        "xhtml" => "application/xhtml+xml",
        "js" | "mjs" | "cjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" | "geojson" => "application/json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "ico" => "image/x-icon",
        "woff" => "font/woff",
        "woff2" => "font/woff2",
        "ttf" => "font/ttf",
        "wasm" => "application/wasm",
        "xml" | "bpmn" => "text/xml",
        _ => "text/plain; charset=utf-8",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_is_part_of_the_path() {
        assert_eq!(split_delay("/pages/a"), (Duration::ZERO, "/pages/a"));
        assert_eq!(split_delay("/after/20/pages/a"), (Duration::from_millis(20), "/pages/a"));
        assert_eq!(split_delay("/after/x/pages/a"), (Duration::ZERO, "/after/x/pages/a"));
        assert_eq!(split_delay("/after/999999/p").0, Duration::from_secs(5));
    }

    #[test]
    fn only_files_of_the_corpus_are_served() {
        let found = |path| file(path, Path::new("/p"), Path::new("/n"));
        assert_eq!(found("/pages/a/b.html"), Some("/p/a/b.html".into()));
        assert_eq!(found("/node_modules/@a/b.js"), Some("/n/@a/b.js".into()));
        assert_eq!(found("/pages/../b"), None);
        assert_eq!(found("/pages//etc/passwd"), None);
        assert_eq!(found("/etc/passwd"), None);
    }
}
