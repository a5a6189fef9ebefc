//! Asks farms for their load.
//!
//! Nothing is rendered by a question, so it is repeated and given up freely.

use std::time::{Duration, Instant};

use futures::{
    StreamExt as _,
    future::{FutureExt as _, LocalBoxFuture},
    stream::FuturesUnordered,
};
use platen_component::platform;

use crate::{component::failure::Failure, farms::Load};

/// How long a farm has to answer while others could be asked, or have answered. Farms answer within milliseconds.
const HEDGE_DELAY: Duration = Duration::from_millis(200);
/// How long a farm has to answer if no other farm does.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);

type Answer = Result<Load, Failure>;

/// Questions to several farms, by the position of the farm.
#[derive(Default)]
pub(super) struct Questions<'q> {
    asked: FuturesUnordered<LocalBoxFuture<'q, (usize, Answer)>>,
    unanswered: Vec<usize>,
}

impl<'q> Questions<'q> {
    pub(super) fn ask(&mut self, position: usize, question: impl Future<Output = Answer> + 'q) {
        self.asked.push(question.map(move |answer| (position, answer)).boxed_local());
        self.unanswered.push(position);
    }

    /// The answers that arrive until no other answer can matter or a delay has passed, by position. The delay is long only
    /// if there is no load to decide by and no other farm to ask.
    pub(super) async fn answers(&mut self, hedged: bool) -> Vec<(usize, Answer)> {
        let began = Instant::now();
        let mut answers: Vec<(usize, Answer)> = Vec::new();
        loop {
            let is_short = hedged || answers.iter().any(|(_, answer)| answer.is_ok());
            let delay = if is_short { HEDGE_DELAY } else { ANSWER_TIMEOUT };
            let time_left = delay.saturating_sub(began.elapsed());
            let Some(Some((position, answer))) = platform::timeout(time_left, self.asked.next()).await else {
                break;
            };
            self.unanswered.retain(|unanswered| *unanswered != position);
            answers.push((position, answer));
            if self.is_decided(&answers) {
                self.unanswered.clear();
                break;
            }
        }
        answers.sort_by_key(|(position, _)| *position);
        answers
    }

    /// Whether a farm with a free slot comes before all that have not answered.
    fn is_decided(&self, answers: &[(usize, Answer)]) -> bool {
        let has_free_slot = |answer: &Answer| answer.as_ref().is_ok_and(|load| load.has_free_slot());
        let free = answers.iter().filter(|(_, answer)| has_free_slot(answer)).map(|(position, _)| *position);
        free.min().is_some_and(|first| self.unanswered.iter().all(|unanswered| *unanswered > first))
    }

    /// The farms that have not answered and were not returned before. They can still answer.
    pub(super) fn unanswered(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.unanswered)
    }
}
