//! What a farm with these settings would find on this machine: Chromium, its sandbox, fonts, memory and the network.
//!
//! Invariant: everything is tried for real, by a browser that is started, and nothing is left behind.

mod fonts;
mod machine;

use std::{fmt, time::Duration};

use platen_shared::{endpoint::Endpoint, id::AccountId, limits, request::RenderRequest};
use serde::Serialize;
use serde_json::json;

use crate::{Config, Farm, LaunchError, StartError, browser::binary, cli::CheckArgs};

/// How serious a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
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
        let severity = match self.severity {
            Severity::Ok => "ok",
            Severity::Warning => "warning",
            Severity::Problem => "problem",
        };
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
pub async fn check(config: &Config, args: &CheckArgs) -> Vec<Finding> {
    let mut findings = machine::check(config);
    let path = match binary::find(config.chromium.as_deref()) {
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
    findings.extend(fonts::check(&farm).await);
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
