//! `platen usage` and `platen requests`: what an account has done.

use anyhow::{Context as _, Result};
use clap::Args;
use platen_shared::id::AccountId;
use platen_statements::{
    Timestamp,
    accounts::Account,
    requests::{RequestEntry, RequestFilter, StatusFilter},
    usage::{DayUsage, PartUsage},
};
use serde::Serialize;

use super::{CommonArgs, table};

const DAY_SECONDS: i64 = 86_400;
/// Templates in the list of those with the most attempts.
const MAX_TEMPLATES: u32 = 100;
/// Requests of one statement.
const REQUESTS_AT_ONCE: u32 = 1_000;

#[derive(Debug, Args)]
pub(crate) struct UsageCommand {
    /// The account's name or id
    #[arg(long, value_name = "NAME|ID")]
    account: String,
    /// Days of the counts by day, key and template, with today (UTC)
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=366))]
    days: u32,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Serialize)]
struct Usage {
    account: AccountId,
    account_name: String,
    /// Attempts a month; `null` is unlimited.
    quota: Option<u64>,
    /// Attempts of this month (UTC).
    attempts: u64,
    last_month: u64,
    days: Vec<DayUsage>,
    keys: Vec<PartUsage>,
    templates: Vec<PartUsage>,
}

impl UsageCommand {
    pub(crate) async fn run(self) -> Result<()> {
        let admin = self.common.open().await?;
        let account = admin.account(&self.account).await?;
        let owned = admin.operator().account_scope(&account.id);
        let since = admin.now() - i64::from(self.days - 1) * DAY_SECONDS;
        let last_month = owned.attempts_of_last_month().await?;
        let mut days = owned.days(since).await?;
        days.sort_by(|one, other| other.day.cmp(&one.day));
        let keys = owned.usage_by_key(since).await?;
        let templates = owned.usage_by_template(since, MAX_TEMPLATES).await?;
        let Account { id: account, name: account_name, quota, attempts, .. } = account;
        let usage = Usage { account, account_name, quota, attempts, last_month, days, keys, templates };
        self.common.output.print(&usage, text)
    }
}

fn text(usage: &Usage) -> String {
    let Usage { account_name, quota, attempts, last_month, days, keys, templates, .. } = usage;
    let of = quota.map_or_else(String::new, |quota| format!(" of {quota}"));
    let parts = |parts: &[PartUsage], without: &str| -> Vec<_> {
        let name = |part: &PartUsage| match (&part.name, part.id.as_str()) {
            (Some(name), _) => name.clone(),
            (None, "") => without.to_owned(),
            (None, id) => format!("{id} (deleted)"),
        };
        parts.iter().map(|part| [name(part), part.attempts.to_string(), part.failures.to_string()]).collect()
    };
    let days = days.iter().map(|day| [day.day.clone(), day.attempts.to_string(), day.failures.to_string()]);
    [
        format!("{account_name}: {attempts}{of} attempts this month, {last_month} last month"),
        table(["DAY", "ATTEMPTS", "FAILED"], days),
        table(["KEY", "ATTEMPTS", "FAILED"], parts(keys, "(dashboard and deleted keys)")),
        table(["TEMPLATE", "ATTEMPTS", "FAILED"], parts(templates, "(none)")),
    ]
    .join("\n\n")
}

#[derive(Debug, Args)]
pub(crate) struct RequestsCommand {
    /// The account's name or id
    #[arg(long, value_name = "NAME|ID")]
    account: String,
    /// Only requests that have succeeded or failed, or with this HTTP status
    #[arg(long, value_name = "ok|failed|STATUS", value_parser = status)]
    status: Option<StatusFilter>,
    /// Only requests of the key with this id
    #[arg(long, value_name = "ID")]
    key: Option<String>,
    /// Only requests of the template with this id
    #[arg(long, value_name = "ID")]
    template: Option<String>,
    /// Only requests whose id begins with this text
    #[arg(long, value_name = "TEXT")]
    request_id: Option<String>,
    /// The first day (UTC)
    #[arg(long, value_name = "YYYY-MM-DD", value_parser = day)]
    since: Option<Timestamp>,
    /// The last day (UTC)
    #[arg(long, value_name = "YYYY-MM-DD", value_parser = day)]
    until: Option<Timestamp>,
    /// Largest number of requests, the newest first
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    #[command(flatten)]
    common: CommonArgs,
}

fn status(text: &str) -> Result<StatusFilter, String> {
    match text {
        "ok" => Ok(StatusFilter::Successful),
        "failed" => Ok(StatusFilter::Failed),
        text => {
            let status = text.parse().ok().filter(|status| (100..600).contains(status));
            status.map(StatusFilter::Is).ok_or_else(|| "ok, failed, or a status from 100 to 599".to_owned())
        }
    }
}

fn day(text: &str) -> Result<Timestamp, String> {
    Timestamp::of_day(text).ok_or_else(|| "it is not a day, YYYY-MM-DD".to_owned())
}

impl RequestsCommand {
    pub(crate) async fn run(self) -> Result<()> {
        let admin = self.common.open().await?;
        let account = admin.account(&self.account).await?.id;
        let owned = admin.operator().account_scope(&account);
        let filter = RequestFilter {
            since: self.since.map_or(0, |day| day.0),
            until: self.until.map_or(i64::MAX, |day| day.0 + DAY_SECONDS - 1),
            status: self.status.unwrap_or_default(),
            key: self.key,
            template: self.template,
            request_id: self.request_id,
        };
        let mut requests: Vec<RequestEntry> = Vec::new();
        loop {
            let wanted = usize::try_from(self.limit).context("too many requests")? - requests.len();
            let max = REQUESTS_AT_ONCE.min(u32::try_from(wanted)?);
            let last = requests.last().map(|last| (last.at.0, last.id));
            let some = owned.requests(&filter, last, max).await?;
            let is_end = (some.len() as u64) < u64::from(max);
            requests.extend(some);
            if is_end || requests.len() as u64 >= u64::from(self.limit) {
                break;
            }
        }
        self.common.output.print(&requests, |requests| requests_table(requests))
    }
}

fn requests_table(requests: &[RequestEntry]) -> String {
    let rows = requests.iter().map(|request| {
        let text = |value: Option<&String>| value.cloned().unwrap_or_default();
        let template = request.template_name.as_ref().or(request.template_id.as_ref());
        [
            request.at.to_string(),
            request.status.to_string(),
            text(request.code.as_ref()),
            request.format.clone(),
            text(template.or(request.host.as_ref())),
            text(request.key_name.as_ref()),
            request.ms.to_string(),
            request.bytes.map(|bytes| bytes.to_string()).unwrap_or_default(),
            request.request_id.clone(),
        ]
    });
    table(["TIME", "STATUS", "CODE", "FORMAT", "TEMPLATE OR HOST", "KEY", "MS", "BYTES", "REQUEST"], rows)
}
