//! Sends a job to a farm, or to the next one if a farm refuses it or cannot be reached.
//!
//! With one address, this is one request, or three if the job has to wait for a slot. With several, the job is sent only
//! to a farm that has just stated its load:
//! - A question without a body finds out which farm has a free slot. Without it, the body of a job would be sent to
//!   each farm that refuses it, and a farm that hangs would keep the job.
//! - The account's farm is asked first, because it has the account's pages. If it has no free slot or does not answer
//!   within 200 ms, the others are asked together.
//! - If no farm has a free slot, the job waits for one at the farm with the shortest queue, and is sent when it has one.
//!   So a farm that is killed or hangs loses no job that waits. Queues whose lengths differ by less than one job for
//!   each slot are equal; the account's order decides between them.
//!
//! Invariant: a job is sent again only after a response or an error that proves that its page did not run, and only
//! before its deadline. Every error says whether a page may have run, because that decides whether the attempt counts.

mod load;
mod request;
mod response;

use std::time::{Duration, Instant};

use platen_component::log::write_line;
use platen_shared::{
    failure::FailureClass,
    job::RenderJob,
    refusal::{RETRY_AFTER_SECONDS, Refusal},
};

use self::{
    load::{ANSWER_TIMEOUT, Questions},
    request::{JobRequest, Queueing},
};
use super::{
    context::RequestContext,
    failure::Failure,
    settings::{Farm, Settings},
};
use crate::{api_error::ApiError, farms, farms::Load};
pub(super) use response::{FarmFile, FileBody};

/// How often a job is offered to all farms. In a rolling restart, each of them can refuse it once.
const MAX_PASSES: usize = 4;

/// Sends a job and waits for the file: for all of a small one, or for the head of the response.
pub(super) async fn render(
    settings: &Settings,
    job: &RenderJob,
    deadline: Instant,
    context: &mut RequestContext,
) -> Result<FarmFile, Failure> {
    let started = Instant::now();
    let request = JobRequest::new(settings, job, deadline, context);
    let file = match settings.farms.as_slice() {
        [farm] => render_at(&request, farm).await,
        farms => Distribution::new(&request, farms).run().await,
    };
    context.log.farm_elapsed = Some(started.elapsed());
    if let Some(attempt) = &mut context.attempt {
        let (Ok(FarmFile { times, .. }) | Err(Failure { times, .. })) = &file;
        (attempt.queued_ms, attempt.render_ms) = (times.queued_ms, times.render_ms);
    }
    file
}

/// How long the only farm may take to answer whether it is still there.
const PATIENCE: Duration = Duration::from_secs(2);

/// Sends a job to the only address. If it has to wait, it does so before it is sent, so that a farm that ends loses no
/// job that only waited. A farm without a name has queued the job if it could.
async fn render_at(request: &JobRequest<'_>, farm: &Farm) -> Result<FarmFile, Failure> {
    let is_shared = || farm.ids().are_several(Instant::now());
    if !is_shared() {
        match request.send(farm, Queueing::Refused).await {
            Err(failure) if is_busy(&failure) && farm.ids().are_known() && !request.is_too_late() => {}
            result => return result,
        }
    }
    // The response may have shown it.
    if !is_shared() {
        // There is no other farm to go to while this one has no free CPU.
        request.wait_for_slot(farm, PATIENCE).await?;
    }
    request.send(farm, Queueing::Allowed).await
}

/// A job that several farms may get.
struct Distribution<'r> {
    request: &'r JobRequest<'r>,
    farms: &'r [Farm],
    /// The farms in the account's order, as indices. The fields below contain positions in it.
    order: Vec<usize>,
    /// Farms that would queue the job.
    queues: Vec<(usize, Load)>,
    /// The refusal that says most to the caller.
    refusal: Option<Failure>,
    /// A farm that stated its load did not accept the job a moment later, such as one that restarts.
    is_outdated: bool,
    /// A free slot was taken by another job in between. In a burst all jobs see the same loads, so they are spread over
    /// equal queues.
    is_contended: bool,
}

impl<'r> Distribution<'r> {
    fn new(request: &'r JobRequest<'r>, farms: &'r [Farm]) -> Self {
        Self {
            request,
            farms,
            order: Vec::new(),
            queues: Vec::new(),
            refusal: None,
            is_outdated: false,
            is_contended: false,
        }
    }

    async fn run(mut self) -> Result<FarmFile, Failure> {
        for _ in 0..MAX_PASSES {
            self.is_outdated = false;
            if let Some(result) = self.pass().await {
                return result;
            }
            if !self.is_outdated {
                break;
            }
        }
        Err(self.best_refusal())
    }

    /// Offers the job to all farms. The result is `None` if they refuse it.
    async fn pass(&mut self) -> Option<Result<FarmFile, Failure>> {
        let (request, now) = (self.request, Instant::now());
        let farms = self.farms.iter().map(|farm| (&farm.address, farm.health().is_avoided(now)));
        let order = farms::order(&request.account, farms);
        let batches = order.batches();
        self.order = order.farms;
        let mut questions = Questions::default();
        for batch in batches {
            if batch.is_needless(!self.queues.is_empty()) {
                break;
            }
            for position in batch.positions {
                questions.ask(position, request.load(&self.farm(position).address));
            }
            let answers = questions.answers(batch.hedged).await;
            // The account's farm may still answer while the others are asked.
            if !batch.hedged {
                for position in questions.unanswered() {
                    let cause = "it did not answer".to_owned();
                    self.failed(position, Failure::new(ApiError::FarmUnreachable, cause));
                }
            }
            for (position, answer) in answers {
                let result = match answer {
                    Ok(load) => self.answered(position, load).await,
                    Err(failure) if is_cancelled(&failure) => Some(Err(failure)),
                    Err(failure) => {
                        self.failed(position, failure);
                        None
                    }
                };
                if result.is_some() {
                    return result;
                }
            }
        }
        let (farms, offset) = (self.farms.len(), if self.is_contended { request.number() } else { 0 });
        self.queues.sort_by_key(|(position, load)| (load.rounds(), (position + offset) % farms));
        for (position, _) in std::mem::take(&mut self.queues) {
            let result = self.try_farm(position, Queueing::Allowed).await;
            if result.is_some() {
                return result;
            }
        }
        None
    }

    fn farm(&self, position: usize) -> &'r Farm {
        &self.farms[self.order[position]]
    }

    async fn answered(&mut self, position: usize, load: Load) -> Option<Result<FarmFile, Failure>> {
        self.farm(position).health().answered();
        if load.has_free_slot() {
            return self.try_farm(position, Queueing::Refused).await;
        }
        self.queues.push((position, load));
        None
    }

    /// The result of the job; `None` if its page did not run and another farm can be tried.
    async fn try_farm(&mut self, position: usize, queueing: Queueing) -> Option<Result<FarmFile, Failure>> {
        let farm = self.farm(position);
        let sent = async {
            if queueing == Queueing::Allowed {
                self.request.wait_for_slot(farm, ANSWER_TIMEOUT).await?;
            }
            self.request.send(farm, queueing).await
        };
        let failure = match sent.await {
            Ok(file) => return Some(Ok(file)),
            Err(failure) if !may_be_sent_again(&failure) => return Some(Err(failure)),
            Err(failure) => failure,
        };
        if !is_busy(&failure) {
            self.is_outdated = true;
            self.failed(position, failure);
        } else if queueing == Queueing::Allowed {
            self.remember(failure);
        } else {
            // The job may still wait there, so this refusal says nothing to the caller.
            self.is_contended = true;
            self.queues.push((position, Load::FULL));
        }
        self.request.is_too_late().then(|| Err(self.best_refusal()))
    }

    fn best_refusal(&mut self) -> Failure {
        let no_slot = || Refusal::NoSlotInTime { retry_after: RETRY_AFTER_SECONDS }.into();
        self.refusal.take().unwrap_or_else(no_slot)
    }

    /// The farm is used last for some time.
    fn failed(&mut self, position: usize, failure: Failure) {
        let farm = self.farm(position);
        if let Some(time) = farm.health().failed(Instant::now()) {
            write_line(format!(
                "platen-edge request_id={} farm={} avoided_ms={} cause={:?}",
                self.request.trace.request_id,
                farm.address,
                time.as_millis(),
                failure.cause.as_deref().unwrap_or_default(),
            ));
        }
        self.remember(failure);
    }

    /// Keeps the refusal that says most: when to try again, before that a farm is there at all.
    fn remember(&mut self, failure: Failure) {
        let rank = |failure: &Failure| match &failure.error {
            ApiError::Refused(Refusal::QueueFull { retry_after } | Refusal::NoSlotInTime { retry_after }) => {
                (0, *retry_after)
            }
            ApiError::Refused(_) => (1, 0),
            _ => (2, 0),
        };
        if self.refusal.as_ref().is_none_or(|known| rank(&failure) < rank(known)) {
            self.refusal = Some(failure);
        }
    }
}

fn is_busy(failure: &Failure) -> bool {
    matches!(failure.error, ApiError::Refused(Refusal::QueueFull { .. } | Refusal::NoSlotInTime { .. }))
}

fn is_cancelled(failure: &Failure) -> bool {
    matches!(failure.error, ApiError::Refused(Refusal::Cancelled { .. }))
}

/// Whether the page did not run, and another farm may do better. All farms usually have the same name servers.
fn may_be_sent_again(failure: &Failure) -> bool {
    match &failure.error {
        ApiError::FarmUnreachable => true,
        ApiError::Refused(Refusal::NameServerFailed) => false,
        ApiError::Refused(refusal) => refusal.class() == FailureClass::RendererUnavailable,
        _ => false,
    }
}
