//! Reads the metrics of a server.

use anyhow::Result;

use crate::wait;

/// The value of an integer metric: with labels in `name` that of one series, without labels the sum over all series.
/// `None` if the server has no such series yet. A farm needs its token.
pub async fn read(http: &reqwest::Client, metrics_url: &str, token: &str, name: &str) -> Result<Option<u64>> {
    let text = http.get(metrics_url).bearer_auth(token).send().await?.error_for_status()?.text().await?;
    let values: Vec<u64> = text.lines().filter_map(|line| sample(line, name)).collect();
    Ok((!values.is_empty()).then(|| values.iter().sum()))
}

/// Waits until a metric has this value. A metric that does not exist yet has the value 0.
pub async fn until(
    http: &reqwest::Client,
    metrics_url: &str,
    token: &str,
    name: &str,
    value: u64,
) -> Result<()> {
    wait::until_true(&format!("{name} is {value}"), async || {
        let current = read(http, metrics_url, token, name).await?.unwrap_or(0);
        Ok(current == value)
    })
    .await
}

/// The value in a line, if the line is about that metric.
fn sample(line: &str, name: &str) -> Option<u64> {
    let rest = line.strip_prefix(name)?;
    let value = match rest.strip_prefix('{') {
        Some(labels) => labels.rsplit_once('}')?.1,
        None => rest.strip_prefix(' ')?,
    };
    value.split_whitespace().next()?.parse().ok()
}
