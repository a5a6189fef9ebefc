//! Authentication, and the claim.
//!
//! Invariant: a request of a key that was refused a moment ago costs no write. What decides is read from the database.

use std::{
    cell::RefCell,
    pin::{Pin, pin},
    time::{Duration, Instant},
};

use futures::future::{Either, select};
use platen_shared::{
    format::OutputFormat,
    id::AccountId,
    job::Source,
    key::ApiKey,
    refusal::Refusal,
    request::{RenderRequest, Subject},
};
use platen_spin::{database::Database, platform};
use platen_statements::{
    attempts::{self, Attempt, Claim, KeyOrLink, KeyPurpose, KeyStatus, PresentedKey, RequestedTemplate},
    limits::RunningAttempt,
};
use spin_sdk::time::sleep;

use super::{
    ahead::{Ahead, Recorded, Want},
    attempt_end::refund_late,
    context::RequestContext,
    failure::Failure,
};
use crate::{
    api_error::ApiError,
    quota::{QuotaMonth, Usage},
    recent_keys::RecentKeys,
};

/// The time for what a farm does after the deadline of a job. A running attempt counts until this time after it, if its edge crashes.
const MARGIN: Duration = Duration::from_secs(5);

thread_local! {
    static RECENT_KEYS: RefCell<RecentKeys> = RefCell::default();
}

fn presented<'k>(caller: KeyOrLink<'k>, month: &'k QuotaMonth) -> PresentedKey<'k> {
    PresentedKey { caller, month: &month.name, now: month.now }
}

/// Looks the key or link up in the database without recording an attempt.
pub(super) async fn authenticate(
    caller: KeyOrLink<'_>,
    purpose: KeyPurpose<'_>,
    context: &mut RequestContext,
) -> Result<KeyStatus, Failure> {
    context.is_key_checked = true;
    let found = attempts::key_status(&Database, presented(caller, &context.month), purpose);
    let timeout = context.deadline.answer_time_left(Instant::now());
    let found = platform::timeout(timeout, found).await.ok_or_else(no_answer)?;
    let (found, hash, now) =
        (found.map_err(|error| Failure::database(&error))?, caller.hash(), Instant::now());
    let Some(found) = found else {
        RECENT_KEYS.with_borrow_mut(|keys| keys.set_invalid(&hash));
        return Err(ApiError::InvalidKey.into());
    };
    let KeyStatus { attempts, quota, limits, held_seconds, is_day_exhausted, .. } = found;
    let usage = Usage { attempts, quota, limits, held_seconds, is_day_exhausted };
    RECENT_KEYS.with_borrow_mut(|keys| {
        keys.set_valid(&hash, now);
        if usage.refusal(&context.month).is_some() {
            keys.set_refused(&hash, now);
        }
    });
    context.authenticated(&found.account, usage);
    Ok(found)
}

/// Whether the key was valid within the last hour, as far as this instance or its server knows.
pub(super) fn was_valid(key: &ApiKey, context: &RequestContext) -> bool {
    context.was_key_valid || RECENT_KEYS.with_borrow(|keys| keys.was_valid(&key.hash(), Instant::now()))
}

/// The failure of a request for which the database takes too long.
pub(super) fn no_answer() -> Failure {
    Failure::new(ApiError::DatabaseUnavailable, "the database did not answer in time".to_owned())
}

/// The failure of a request that cannot be rendered before its deadline.
pub(super) fn too_late() -> Failure {
    Failure::new(Refusal::NoSlotInTime, "too little time was left before the deadline".to_owned())
}

/// Records the attempt, or finds the reason why it is refused.
pub(super) async fn claim(
    caller: KeyOrLink<'_>,
    endpoint: &'static str,
    request: &RenderRequest,
    claim_ahead: u64,
    context: &mut RequestContext,
) -> Result<Claim, Failure> {
    let replaced = request.replaced_fields();
    let template = match &request.subject {
        Subject::Source(_) => None,
        Subject::Template { id, variables, data } => Some(RequestedTemplate {
            id,
            variables,
            has_data: data.is_some(),
            replaced: &replaced,
            format: request.format(),
        }),
    };
    let attempt = attempt(caller, endpoint, Some(request), context);
    let claimant = Claimant { caller, request, template };
    let now = Instant::now();
    if context.deadline.is_too_close(now) {
        return Err(claimant.refuse_late(attempt, context).await);
    }
    // The claim knows the placeholders of the template only, and this one has no placeholders if it is in Jinja.
    let is_incomplete = !request.missing_variables(Vec::new()).is_empty();
    let is_looked_up_first =
        is_incomplete || RECENT_KEYS.with_borrow(|keys| keys.was_refused(&attempt.key_hash, now));
    let template = template.as_ref();
    let ahead = Ahead::find(
        claim_ahead,
        &attempt.key_hash,
        template.map(|template| template.id),
        &context.month.name,
    );
    let ahead = match ahead.filter(|_| !is_incomplete) {
        Some(ahead) => match ahead.take(request, template) {
            Some((claim, next)) => return Ok(claimant.taken(claim, ahead, next, &attempt, context)),
            None => Some(ahead),
        },
        None => None,
    };
    if !is_looked_up_first && let Some(claim) = claimant.record(&attempt, ahead, context).await? {
        return Ok(claim);
    }
    claimant.look_up(&attempt, context).await?;
    // Else a key that was refused a moment ago is accepted again: its quota was raised, or an attempt refunded or ended.
    if refusal(context).is_none() {
        if let Some(claim) = claimant.record(&attempt, None, context).await? {
            return Ok(claim);
        }
        claimant.look_up(&attempt, context).await?;
    }
    RECENT_KEYS.with_borrow_mut(|keys| keys.set_refused(&attempt.key_hash, Instant::now()));
    set_rejected(attempt, context);
    if refusal(context).is_none() {
        context.usage.as_mut().ok_or(ApiError::Internal)?.take_rest();
    }
    // Each look-up found an attempt that had been given back, and others were first.
    Err(refusal(context).unwrap_or(ApiError::QuotaHeld { retry_after: 1 }).into())
}

/// What the account's usage says against an attempt.
fn refusal(context: &RequestContext) -> Option<ApiError> {
    context.usage.and_then(|usage| usage.refusal(&context.month))
}

/// A key or link, and what it claims an attempt for.
struct Claimant<'r> {
    caller: KeyOrLink<'r>,
    request: &'r RenderRequest,
    template: Option<RequestedTemplate<'r>>,
}

impl<'r> Claimant<'r> {
    fn purpose(&self) -> KeyPurpose<'r> {
        self.template.map_or(KeyPurpose::Source, KeyPurpose::Template)
    }

    /// Records the attempt, and further ones if some are to be claimed ahead; `None` if it is refused.
    async fn record(
        &self,
        attempt: &Attempt,
        ahead: Option<Ahead>,
        context: &mut RequestContext,
    ) -> Result<Option<Claim>, Failure> {
        let running = running_attempt(attempt, context);
        let presented = presented(self.caller, &context.month);
        let (claim, first): (Pin<Box<dyn Future<Output = _>>>, _) = match ahead
            .map(|ahead| (ahead.want(), ahead))
        {
            Some((Want::Several(attempts), ahead)) => {
                let claim = ahead.claim(presented, running, self.template, (attempts, 1));
                (Box::pin(async { claim.await?.map(Recorded::several).transpose() }), None)
            }
            other => {
                let claim = attempts::claim(Database, presented, running, self.template);
                let first = other.and_then(|(want, ahead)| matches!(want, Want::First).then_some(ahead));
                (Box::pin(async { Ok(claim.await?.map(|claim| Recorded { claim, granted: None })) }), first)
            }
        };
        let timeout = context.deadline.time_left(Instant::now());
        let recorded = match select(claim, pin!(sleep(timeout))).await {
            Either::Left((claim, _)) => claim.map_err(|error| Failure::database(&error))?,
            Either::Right(((), claim)) => {
                refund_late(claim, attempt.clone(), context);
                return Err(no_answer());
            }
        };
        let Some(Recorded { claim, granted }) = recorded else { return Ok(None) };
        RECENT_KEYS.with_borrow_mut(|keys| keys.set_claimed(&attempt.key_hash, Instant::now()));
        if let Some(granted) = granted {
            context.after_response = Some(Box::pin(granted.keep_others()));
        } else if let Some(ahead) = first.filter(|_| claim.limits.is_none()) {
            ahead.remember_first();
            context.after_response = Some(Box::pin(async move { ahead.end_found().await }));
        }
        set_recorded(&claim, attempt, context);
        Ok(Some(claim))
    }

    /// Uses an attempt that was claimed ahead, and claims the next ones after the response, if that is due.
    fn taken(
        &self,
        claim: Claim,
        ahead: Ahead,
        next: Option<u64>,
        attempt: &Attempt,
        context: &mut RequestContext,
    ) -> Claim {
        if let Some(attempts) = next {
            let running = running_attempt(attempt, context);
            let renewed =
                ahead.claim(presented(self.caller, &context.month), running, self.template, (attempts, 2));
            context.after_response = Some(Box::pin(async {
                if let Ok(Some(granted)) = renewed.await {
                    granted.keep_all().await;
                }
            }));
        }
        set_recorded(&claim, attempt, context);
        claim
    }

    /// Looks up the key, its usage and the template, and checks the template's variables.
    async fn look_up(&self, attempt: &Attempt, context: &mut RequestContext) -> Result<(), Failure> {
        let found = authenticate(self.caller, self.purpose(), context).await?;
        if self.template.is_none() {
            return Ok(());
        }
        let (Some(placeholders), Some(language)) = (found.placeholders, found.language) else {
            set_rejected(Attempt { template_id: None, ..attempt.clone() }, context);
            return Err(ApiError::TemplateNotFound.into());
        };
        self.request.check_values(language, placeholders).map_err(|error| {
            set_rejected(attempt.clone(), context);
            ApiError::from(error).into()
        })
    }

    /// The failure of a request that comes too late to be claimed, or of its key.
    async fn refuse_late(&self, mut attempt: Attempt, context: &mut RequestContext) -> Failure {
        let found = match authenticate(self.caller, self.purpose(), context).await {
            Ok(found) => found,
            Err(failure) => return failure,
        };
        attempt.account_id = found.account;
        // An id that the account does not have is the caller's text.
        attempt.template_id = attempt.template_id.filter(|_| found.placeholders.is_some());
        context.attempt = Some(attempt);
        too_late()
    }
}

/// Prepares the row of a request whose body, or the address of a link, is invalid, if its account is known.
pub(super) fn reject(caller: KeyOrLink<'_>, endpoint: &'static str, context: &mut RequestContext) {
    set_rejected(attempt(caller, endpoint, None, context), context);
}

/// Prepares the row of an attempt that was recorded.
fn set_recorded(claim: &Claim, attempt: &Attempt, context: &mut RequestContext) {
    let Claim { attempts, quota, limits, .. } = *claim;
    context.authenticated(
        &claim.account,
        Usage { attempts, quota, limits, held_seconds: None, is_day_exhausted: false },
    );
    let account_id = claim.account.clone();
    let template_version = claim.template.as_ref().map(|template| template.version);
    context.attempt = Some(Attempt { account_id, counted: true, template_version, ..attempt.clone() });
}

/// Prepares the row of a request that was refused before the claim.
fn set_rejected(attempt: Attempt, context: &mut RequestContext) {
    if let Some(account_id) = context.log.account.clone() {
        context.attempt = Some(Attempt { account_id, rejected: true, ..attempt });
    }
}

/// The row of a request, without its account.
fn attempt(
    caller: KeyOrLink<'_>,
    endpoint: &'static str,
    request: Option<&RenderRequest>,
    context: &RequestContext,
) -> Attempt {
    let (template_id, host) = match request.map(|request| &request.subject) {
        None | Some(Subject::Source(Source::Html(_) | Source::Jinja(_))) => (None, None),
        Some(Subject::Source(Source::Url(url))) => (None, url.as_url().host_str().map(str::to_owned)),
        Some(Subject::Template { id, .. }) => (Some(id.clone()), None),
    };
    Attempt {
        id: attempts::attempt_id(platform::random()),
        key_hash: caller.hash(),
        account_id: AccountId::from_text(""),
        endpoint,
        format: request.and_then(RenderRequest::format).map_or("", OutputFormat::extension),
        status: 500,
        counted: false,
        rejected: false,
        ms: 0,
        queued_ms: None,
        render_ms: None,
        bytes: None,
        page_errors: None,
        failed_requests: None,
        page_host: None,
        at: context.month.now,
        refunded_month: None,
        code: None,
        field: None,
        request_id: context.trace.request_id.clone(),
        template_id,
        template_version: None,
        host,
    }
}

/// The attempt for its claim.
fn running_attempt(attempt: &Attempt, context: &RequestContext) -> RunningAttempt {
    let time = context.deadline.answer_time_left(Instant::now()) + MARGIN;
    RunningAttempt { id: attempt.id, max_seconds: time.as_secs() + 1 }
}
