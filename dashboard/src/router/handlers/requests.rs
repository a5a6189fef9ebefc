//! The list of requests, the page of one, and the CSV export.

use platen_shared::id::TemplateId;
use platen_statements::{
    CurrentUser,
    requests::{RequestEntry, RequestFilter},
};

use super::export::{self, List};
use crate::{
    filter::{FilterForm, REQUEST_FIELDS, cursor_text, parse_cursor},
    format::DAY_SECONDS,
    pages::{
        Section,
        requests::{CSV_HEADER, RequestPage, RequestsPage, csv_line},
    },
    router::{
        context::{Context, Store, last_of_full_page},
        page_error::{PageError, PageResult},
    },
    search::Search,
};

/// Requests on one page.
const PAGE_ROWS: u32 = 50;
/// Templates of one name that the filter offers.
const MAX_TEMPLATES: usize = 30;

pub(crate) async fn list(context: &Context<'_>) -> PageResult {
    let account = context.account()?;
    let query = &context.head.query;
    let form = FilterForm::of(query, REQUEST_FIELDS);
    let before = query.get("before").and_then(parse_cursor);
    let kept_days = context.store.retention().await?.attempt_days;
    let oldest = oldest(account.now(), kept_days);
    let (filter, templates) = filter(context, &form, oldest).await?;
    let mut requests = account.requests(&filter, before, PAGE_ROWS + 1).await?;
    let next = last_of_full_page(&mut requests, PAGE_ROWS).map(|last| cursor_text((last.at.0, last.id)));
    let (keys, links) = (account.keys().await?, account.links(None).await?);
    let layout = context.layout("Requests", Section::Requests);
    let has_newer = before.is_some();
    context.page(&RequestsPage { layout, form, keys, links, templates, requests, kept_days, has_newer, next })
}

/// The requests of the form, whose template is an id or words of a name; if several names have them, these templates.
async fn filter(
    context: &Context<'_>,
    form: &FilterForm,
    oldest: i64,
) -> Result<(RequestFilter, Vec<(TemplateId, String)>), PageError> {
    let account = context.account()?;
    let (mut filter, mut named) = (form.requests(oldest), Vec::new());
    if let Some(text) = &filter.template
        && account.template(text).await?.is_none()
        && let Some(words) = Search::of(text)
    {
        named = account.template_names(u32::MAX.into(), 0).await?;
        named.retain(|(_, name)| words.finds(&[name]));
        if let [(id, _)] = &named[..] {
            filter.template = Some(id.to_string());
            named.clear();
        }
        named.truncate(MAX_TEMPLATES);
    }
    Ok((filter, named))
}

/// The time of the oldest requests that are kept, in seconds since 1970.
fn oldest(now: i64, kept_days: u32) -> i64 {
    now - i64::from(kept_days) * DAY_SECONDS
}

pub(crate) async fn page(context: &Context<'_>, id: &str) -> PageResult {
    let id = id.parse().map_err(|_| PageError::NotFound)?;
    let account = context.account()?;
    let request = account.request(id).await?.ok_or(PageError::NotFound)?;
    let template = request.template_id.as_deref().filter(|_| request.template_name.is_some());
    let version = match template.zip(request.template_version) {
        Some((id, number)) => Some((number, account.version_place(id, number).await?)),
        None => None,
    };
    context.page(&RequestPage { layout: context.layout("Request", Section::Requests), request, version })
}

pub(crate) async fn export(context: &Context<'_>) -> PageResult {
    let oldest = oldest(context.account()?.now(), context.store.retention().await?.attempt_days);
    let form = FilterForm::of(&context.head.query, REQUEST_FIELDS);
    export::export(context, Requests(filter(context, &form, oldest).await?.0)).await
}

/// The requests of the user's account.
struct Requests(RequestFilter);

impl List for Requests {
    type Row = RequestEntry;
    const SECTION: &'static str = "requests.csv";
    const FILE_NAME: &'static str = "platen-requests.csv";
    const HEADER: &'static str = CSV_HEADER;

    async fn rows(
        &self,
        store: &Store,
        user: &CurrentUser,
        last: Option<&RequestEntry>,
        max: u32,
    ) -> Result<Vec<RequestEntry>, PageError> {
        let account = store.account(user).ok_or(PageError::NoAccount)?;
        Ok(account.requests(&self.0, last.map(|last| (last.at.0, last.id)), max).await?)
    }

    fn line(row: &RequestEntry) -> String {
        csv_line(row)
    }
}
