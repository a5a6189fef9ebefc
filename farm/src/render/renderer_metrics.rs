//! The metrics of a page's main thread.

use chromiumoxide_cdp::cdp::browser_protocol::performance::GetMetricsParams;
use serde::Deserialize;

use platen_cdp::{CdpError, Session};

/// Metrics of a page's main thread, in seconds; NaN if Chromium does not report one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RendererMetrics {
    /// CPU time of the page's scripts.
    pub(super) script: f64,
    /// CPU time of all tasks.
    pub(super) tasks: f64,
    /// Start of the main document, on Chromium's monotonic clock.
    pub(super) navigation_start: f64,
}

/// Reads the metrics. The main thread answers after its earlier tasks.
pub(super) async fn read(session: &Session) -> Result<RendererMetrics, CdpError> {
    let reply = session.start(&GetMetricsParams {})?.reply().await?;
    let metrics: Metrics<'_> = reply.parse()?;
    let value = |name| {
        let metric = metrics.metrics.iter().find(|metric| metric.name == name);
        // NaN is not equal to itself, so there is no proof without the metric.
        metric.map_or(f64::NAN, |metric| metric.value)
    };
    Ok(RendererMetrics {
        script: value("ScriptDuration"),
        tasks: value("TaskDuration"),
        navigation_start: value("NavigationStart"),
    })
}

#[derive(Deserialize)]
struct Metrics<'a> {
    #[serde(borrow)]
    metrics: Vec<Metric<'a>>,
}

#[derive(Deserialize)]
struct Metric<'a> {
    name: &'a str,
    value: f64,
}
