//! The usage page.

use platen_statements::Timestamp;

use crate::{
    chart::{self, Chart},
    pages::{
        Section,
        usage::{MonthlyUsage, UsagePage},
    },
    router::{context::Context, page_error::PageResult},
};

/// Seconds in a day.
pub(super) const DAY: i64 = 86_400;
/// Days of the charts and counts.
pub(super) const DAYS_SHOWN: i64 = 30;
/// Templates in the table of those with the most attempts.
const MAX_PARTS: u32 = 20;

pub(crate) async fn page(context: &Context<'_>) -> PageResult {
    let account = context.account()?;
    let now = account.now();
    let (quota, attempts) = account.month().await?;
    let month = MonthlyUsage { now: Timestamp(now), quota, attempts };
    let limits = account.limits().await?;
    let since = now - (DAYS_SHOWN - 1) * DAY;
    let days = account.days(since).await?;
    let (by_key, by_template) =
        (account.usage_by_key(since).await?, account.usage_by_template(since, MAX_PARTS).await?);
    let chart = Chart::new(chart::last_days(now, DAYS_SHOWN, &days));
    let layout = context.layout("Usage", Section::Usage);
    context.page(&UsagePage { layout, month, limits, chart, by_key, by_template })
}
