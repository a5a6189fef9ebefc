//! The way of a link's address: `parse → verify → claim → forward`.
//!
//! Invariant: what has no good signature costs one read at most, and no write. An address with a good signature has one spelling:
//! another one is redirected to it, and not rendered. A link sets the values of its template and the format of the file, nothing
//! else.

use std::{
    cell::RefCell,
    time::{Duration, Instant},
};

use platen_shared::{
    format::OutputFormat,
    link::{InvalidAddress, LinkAddress, LinkFile, LinkId},
    request::{InvalidRequest, RenderRequest},
};
use platen_spin::{database::Database, platform};
use platen_statements::{
    attempts::KeyOrLink,
    links::{self, SignedLink},
};

use super::{
    claim::{self, no_answer},
    context::RequestContext,
    failure::Failure,
    farm::Settings,
    render::render,
    reply::{Answer, Content, File},
};
use crate::{api_error::ApiError, recent_links::RecentLinks};

/// The name in log lines and in the table of attempts.
const ENDPOINT: &str = "link";

thread_local! {
    static RECENT_LINKS: RefCell<RecentLinks<SignedLink>> = RefCell::default();
}

pub(super) async fn respond(
    target: &str,
    is_head: bool,
    context: &mut RequestContext,
) -> Result<Answer, Failure> {
    context.is_of_link = true;
    context.log.endpoint = Some(ENDPOINT);

    // parse
    let address = LinkAddress::parse(target).map_err(|error| match error {
        InvalidAddress::Path => ApiError::LinkNotFound,
        InvalidAddress::Signature => ApiError::InvalidSignature,
        InvalidAddress::Query => ApiError::InvalidAddress,
    })?;

    // verify
    let settings = Settings::get().await.map_err(Failure::internal)?;
    context.set_render_timeout(settings.render_timeout);
    let link = find(&address.file.link, Duration::from_secs(settings.claim_ahead), context).await?;
    if !link.has_signed(&address, context.month.now.try_into().unwrap_or(i64::MAX)) {
        return Err(ApiError::InvalidSignature.into());
    }
    let max_age = link.max_age;
    if !address.is_spelled_so {
        return Ok(Answer { max_age, content: Content::Redirect { location: address.spelling() } });
    }
    let file = address.file;
    if !link.formats.contain(file.format) {
        return Err(ApiError::LinkNotFound.into());
    }
    let caller = KeyOrLink::Link(&file.link);
    if let Err(error) = check_values(&link, &file) {
        context.log.account = Some(link.account);
        claim::reject(caller, ENDPOINT, context);
        return Err(error.into());
    }
    if is_head {
        return Ok(Answer { max_age, content: Content::File { file, body: None } });
    }

    // claim
    let request = RenderRequest::of_link(link.template, &file);
    let claimed = claim::claim(caller, ENDPOINT, &request, 0, context).await;
    let claim = claimed.map_err(|failure| match failure.error {
        // It was disabled or deleted, or its template was, since it was read.
        ApiError::InvalidKey | ApiError::TemplateNotFound => {
            RECENT_LINKS.with_borrow_mut(|links| links.remove(&file.link));
            ApiError::LinkNotFound.into()
        }
        _ => failure,
    })?;

    // forward
    let File { body, .. } = render(settings, request, &claim, context).await?;
    Ok(Answer { max_age, content: Content::File { file, body: Some(body) } })
}

/// What the addresses of a link are verified with, if it is enabled.
async fn find(id: &LinkId, time: Duration, context: &RequestContext) -> Result<SignedLink, Failure> {
    let now = Instant::now();
    if let Some(link) = RECENT_LINKS.with_borrow(|links| links.get(id, now)) {
        return Ok(link);
    }
    let found = platform::timeout(context.deadline.answer_time_left(now), links::find(&Database, id)).await;
    let found = found.ok_or_else(no_answer)?.map_err(|error| Failure::database(&error))?;
    let link = found.ok_or(ApiError::LinkNotFound)?;
    RECENT_LINKS.with_borrow_mut(|links| links.insert(id, link.clone(), now, time));
    Ok(link)
}

/// Whether the template has all the values, and gets those that it needs.
fn check_values(link: &SignedLink, file: &LinkFile) -> Result<(), ApiError> {
    if file.values.keys().any(|name| !link.names.contains(name)) {
        return Err(ApiError::UnknownParameter);
    }
    let is_needed = |field: &str| field == "html" || file.format == OutputFormat::Pdf;
    let needed = link.placeholders.iter().filter(|(field, _)| is_needed(field)).flat_map(|(_, names)| names);
    let missing: Vec<String> = needed.filter(|name| !file.values.contains_key(*name)).cloned().collect();
    if missing.is_empty() { Ok(()) } else { Err(InvalidRequest::MissingVariables(missing).into()) }
}
