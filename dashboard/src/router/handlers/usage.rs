//! The overview and the usage page.

use platen_statements::requests::{RequestFilter, StatusFilter};

use crate::{
    chart::{self, Chart, DAYS_SHOWN},
    format::DAY_SECONDS,
    pages::{
        Section,
        usage::{HomePage, UsagePage},
    },
    router::{
        context::Context,
        page_error::{PageError, PageResult},
        response::PageResponse,
    },
};

/// Templates in the table of those with the most attempts.
const MAX_PARTS: u32 = 20;
/// Failed requests of the overview.
const MAX_FAILED: u32 = 5;

pub(crate) async fn home(context: &Context<'_>) -> PageResult {
    if context.current_user()?.account.is_none() {
        return Ok(PageResponse::redirect("/dashboard/operator"));
    }
    let account = context.account()?;
    let failed = RequestFilter {
        since: account.now() - chart::DAYS_SHOWN * DAY_SECONDS,
        until: i64::MAX,
        status: StatusFilter::Failed,
        ..RequestFilter::default()
    };
    context.page(&HomePage {
        layout: context.layout("Overview", Section::Overview),
        month: context.month().ok_or(PageError::NoAccount)?,
        steps: account.first_steps().await?.filter(|steps| !steps.are_done()),
        chart: chart_of(context).await?,
        failed: account.requests(&failed, None, MAX_FAILED).await?,
    })
}

async fn chart_of(context: &Context<'_>) -> Result<Chart, PageError> {
    let account = context.account()?;
    let days = account.days(chart::first_day(account.now())).await?;
    Ok(Chart::new(chart::last_days(account.now(), DAYS_SHOWN, &days)))
}

pub(crate) async fn usage(context: &Context<'_>) -> PageResult {
    let account = context.account()?;
    let since = chart::first_day(account.now());
    context.page(&UsagePage {
        layout: context.layout("Usage", Section::Usage),
        month: context.month().ok_or(PageError::NoAccount)?,
        last: account.attempts_of_last_month().await?,
        limits: account.limits().await?,
        chart: chart_of(context).await?,
        by_key: account.usage_by_key(since).await?,
        by_template: account.usage_by_template(since, MAX_PARTS).await?,
    })
}
