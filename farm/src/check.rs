//! What a farm with these settings would find on this machine: Chromium, its sandbox, fonts, memory and the network.
//!
//! Invariant: everything is tried for real, by a browser that is started, and nothing is left behind.

use std::{env, fmt, time::Duration};

use futures::future::BoxFuture;
use platen_program::startup;
use platen_shared::{endpoint::Endpoint, id::AccountId, limits, request::RenderRequest};
use rustix::fs::statvfs;
use serde::Serialize;
use serde_json::json;
use strum::IntoStaticStr;

use crate::{
    browser::command,
    cgroup,
    config::{CheckArgs, Config},
    error::{LaunchError, StartError},
    farm::Farm,
};

/// How serious a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, Serialize)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Severity {
    /// It works.
    Ok,
    /// Something that some pages or operators need is missing.
    Warning,
    /// Platen does not work.
    Problem,
}

/// One result of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was checked, such as `fonts`.
    pub subject: &'static str,
    /// How serious it is.
    pub severity: Severity,
    /// What was found.
    pub text: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cure: Option<String>,
}

impl Finding {
    /// It works.
    #[must_use]
    pub fn ok(subject: &'static str, text: impl Into<String>) -> Self {
        Self { subject, severity: Severity::Ok, text: text.into(), cure: None }
    }

    /// Something is missing that only some pages or operators need.
    #[must_use]
    pub fn warning(subject: &'static str, text: impl Into<String>, cure: impl Into<String>) -> Self {
        Self { subject, severity: Severity::Warning, text: text.into(), cure: Some(cure.into()) }
    }

    fn of(subject: &'static str, is_enough: bool, text: String, cure: impl Into<String>) -> Self {
        if is_enough { Self::ok(subject, text) } else { Self::warning(subject, text, cure) }
    }

    /// It does not work.
    #[must_use]
    pub fn problem(subject: &'static str, text: impl Into<String>, cure: Option<String>) -> Self {
        Self { subject, severity: Severity::Problem, text: text.into(), cure }
    }

    /// It does not work, for this reason.
    #[must_use]
    pub fn failed(subject: &'static str, error: &anyhow::Error) -> Self {
        Self::problem(subject, format!("{error:#}"), None)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity: &str = self.severity.into();
        write!(f, "{severity:<8} {:<11} {}", self.subject, self.text)?;
        match &self.cure {
            Some(cure) => write!(f, "\n{:<21}{cure}", ""),
            None => Ok(()),
        }
    }
}

/// The end of the text form of a check, and whether nothing is a problem.
#[must_use]
pub fn summary(findings: &[Finding]) -> (String, bool) {
    let count = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
    let (problems, warnings) = (count(Severity::Problem), count(Severity::Warning));
    let number = |count: usize, name: &str| format!("{count} {name}{}", if count == 1 { "" } else { "s" });
    (format!("{}, {}", number(problems, "problem"), number(warnings, "warning")), problems == 0)
}

/// Starts one browser with these settings and renders with it.
#[must_use]
pub fn check<'a>(config: &'a Config, args: &'a CheckArgs) -> BoxFuture<'a, Vec<Finding>> {
    Box::pin(find(config, args))
}

async fn find(config: &Config, args: &CheckArgs) -> Vec<Finding> {
    let mut findings = machine(config);
    let path = match command::find(config.chromium.as_deref()) {
        Ok(path) => path,
        Err(error) => {
            findings.push(Finding::failed("chromium", &error.into()));
            return findings;
        }
    };
    let one_browser = Config { browsers: Some(std::num::NonZeroUsize::MIN), ..config.clone() };
    let farm = match Farm::start(one_browser).await {
        Ok(farm) => farm,
        Err(error) => {
            let subject = match &error {
                StartError::Launch(LaunchError::NoSandbox) => "sandbox",
                StartError::EgressProxy(_)
                | StartError::Resolver(_)
                | StartError::ProxyPort(_)
                | StartError::OwnAddresses(_)
                | StartError::Secret(_) => "outbound",
                _ => "chromium",
            };
            findings.push(Finding::failed(subject, &error.into()));
            return findings;
        }
    };
    findings.push(Finding::ok(
        "chromium",
        format!("{} starts; {} of them would run", path.display(), config.browser_count()),
    ));
    findings.push(if config.unsafe_no_sandbox {
        Finding::warning(
            "sandbox",
            "it is switched off: a malicious page can take control of the machine",
            "Unset --unsafe-no-sandbox (PLATEN_UNSAFE_NO_SANDBOX)",
        )
    } else {
        Finding::ok("sandbox", "Chromium runs with its sandbox")
    });
    findings.extend(fonts(&farm).await);
    if !args.outbound.is_empty() {
        findings.push(outbound(&farm, &args.outbound).await);
    }
    farm.shutdown().await;
    findings
}

/// Renders a request to the API with these fields.
async fn render(farm: &Farm, fields: serde_json::Value) -> anyhow::Result<bytes::Bytes> {
    let body = serde_json::to_vec(&fields)?;
    let job = RenderRequest::parse(Endpoint::Render, &body)?.into_job(AccountId::from_text("check"), None)?;
    let rendered = farm.render(&job, Duration::from_millis(limits::RENDER_TIMEOUT_MS)).await;
    Ok(rendered?.bytes)
}

async fn outbound(farm: &Farm, url: &str) -> Finding {
    let fields =
        json!({"url": url, "format": "png", "width": 100, "height": 100, "waitUntil": "domcontentloaded"});
    match render(farm, fields).await {
        Ok(_) => Finding::ok("outbound", format!("pages reach {url}")),
        Err(error) => Finding::warning(
            "outbound",
            format!("pages do not reach {url}: {error:#}"),
            "Allow connections to the Internet, or set --egress-proxy or --dns; HTML without external files is \
             rendered all the same",
        ),
    }
}

/// Memory of a browser, in MiB; see docs/operating.md.
const BROWSER_MIB: u64 = 150;
/// A connection, a job and a page need some each.
const MIN_FILES: u64 = 4096;
const MIN_PROFILE_MIB: u64 = 256;

fn machine(config: &Config) -> Vec<Finding> {
    let browsers = config.browser_count().get() as u64;
    let needed = browsers * BROWSER_MIB + u64::from(config.page_memory_mib().get());
    let memory = cgroup::available_mib().map(|available| {
        let text = format!(
            "{available} MiB can be used; {browsers} browsers and one page at --page-memory use {needed} MiB"
        );
        let cure = "Lower --browsers or --page-memory, or give the machine more memory";
        Finding::of("memory", available >= needed, text, cure)
    });
    startup::raise_file_limit();
    let files = startup::file_limit();
    let cure = format!("Raise the hard limit to {MIN_FILES} or more: ulimit -Hn, or LimitNOFILE in systemd");
    let files = Finding::of("open files", files >= MIN_FILES, format!("the limit is {files}"), cure);
    let directory = env::temp_dir();
    let space = statvfs(&directory).ok().map(|space| space.f_bavail * space.f_frsize / 1024 / 1024);
    let profiles = space.map(|space| {
        let text = format!("{space} MiB are free in {} for profiles of browsers", directory.display());
        let cure = "Free some, or set TMPDIR to another directory";
        Finding::of("disk", space >= MIN_PROFILE_MIB, text, cure)
    });
    memory.into_iter().chain([files]).chain(profiles).collect()
}

/// A sample of each script, and the Debian package that has it.
const SCRIPTS: &[(&str, &str, &str)] = &[
    ("Latin", "g", "fonts-liberation"),
    ("Greek", "\u{3c9}", "fonts-liberation"),
    ("Cyrillic", "\u{416}", "fonts-liberation"),
    ("Arabic", "\u{639}", "fonts-noto-core"),
    ("Hebrew", "\u{5e9}", "fonts-noto-core"),
    ("Devanagari", "\u{915}", "fonts-noto-core"),
    ("Thai", "\u{e01}", "fonts-noto-core"),
    ("Han", "\u{6f22}", "fonts-noto-cjk"),
    ("Japanese", "\u{3042}", "fonts-noto-cjk"),
    ("Korean", "\u{d55c}", "fonts-noto-cjk"),
    ("emoji", "\u{1f600}", "fonts-noto-color-emoji"),
];

/// The page puts the indices of the samples that no font has into its title.
const FONTS_PAGE: &str = concat!(
    "<title>x</title><canvas width=60 height=60></canvas><script>(",
    include_str!("missing_fonts.js"),
    ")(SAMPLES)</script>"
);

/// Whether pages have fonts for the scripts of the world.
async fn fonts(farm: &Farm) -> Vec<Finding> {
    let samples: Vec<&str> = SCRIPTS.iter().map(|(_, sample, _)| *sample).collect();
    let html = FONTS_PAGE.replace("SAMPLES", &json!(samples).to_string());
    let missing = match render(farm, json!({"html": html, "format": "pdf"})).await {
        Ok(pdf) => missing(&pdf),
        Err(error) => return vec![Finding::failed("render", &error)],
    };
    let rendered = Finding::ok("render", "a page was rendered to PDF");
    let fonts = match missing {
        Some(missing) if missing.is_empty() => Finding::ok("fonts", "all of the tested scripts have a font"),
        Some(missing) => {
            let scripts: Vec<&str> = missing.iter().map(|index| SCRIPTS[*index].0).collect();
            let mut packages: Vec<&str> = missing.iter().map(|index| SCRIPTS[*index].2).collect();
            packages.dedup();
            let text = format!("no font has {}: these characters are shown as boxes", scripts.join(", "));
            Finding::warning("fonts", text, format!("apt-get install {}", packages.join(" ")))
        }
        None => Finding::warning(
            "fonts",
            "which fonts there are is not known, because the PDF has no title",
            "Report this as a defect",
        ),
    };
    vec![rendered, fonts]
}

fn missing(pdf: &[u8]) -> Option<Vec<usize>> {
    let text = String::from_utf8_lossy(pdf);
    let (_, rest) = text.split_once("(missing:")?;
    let (list, _) = rest.split_once(';')?;
    let indices = list.split(',').filter(|index| !index.is_empty()).map(|index| index.parse().ok());
    indices.map(|index| index.filter(|index| *index < SCRIPTS.len())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_title_has_the_indices_of_missing_scripts() {
        assert_eq!(missing(b"<</Title (missing:;)>>"), Some(vec![]));
        assert_eq!(missing(b"<</Title (missing:3,10;)>>"), Some(vec![3, 10]));
        assert_eq!(missing(b"<</Title (missing:99;)>>"), None);
        assert_eq!(missing(b"<</Title (x)>>"), None);
    }
}
