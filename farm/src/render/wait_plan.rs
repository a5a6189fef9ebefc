//! The decision how the wait of a job passes, from facts about its page.

use tokio::time::Instant;

use super::{
    rendering::{Clock, Rendering},
    static_page,
};
use crate::error::JobError;

/// How a wait passes from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WaitPlan {
    /// There is nothing to wait for: the file shows the page as it has loaded.
    None,
    /// The rest takes no time, because nothing can change the page.
    Skip,
    /// The rest takes real time, or the time until nothing needs that any more.
    Real,
    /// Real time passes until the page is idle, and virtual time after that.
    Virtual,
}

/// What the job waits for after the milestone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Awaited {
    Nothing,
    /// A time, or the network to be idle.
    Time,
    /// An element or an expression, and a time if there is one.
    Condition,
}

/// What the page does that virtual time does not control.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Activity {
    None,
    /// A request is in progress.
    Requests,
    /// It has a worker, a socket or something else with a clock of its own.
    RealTime,
}

/// The facts that decide about a wait.
#[derive(Debug, Clone, Copy)]
pub(super) struct WaitFacts {
    pub(super) awaited: Awaited,
    /// [`Clock::Real`] in a browser without begin-frame control as well.
    pub(super) clock: Clock,
    pub(super) script_ran: bool,
    pub(super) activity: Activity,
    /// The page is proven to be static. Known only if [`Self::may_be_static`].
    pub(super) is_static: bool,
}

impl WaitFacts {
    /// Whether the wait is skipped if the page is proven to be static.
    pub(super) fn may_be_static(self) -> bool {
        self.plan() == WaitPlan::Virtual && !self.acts()
    }

    /// Whether the page may react to frames: a script has run, or the job expects something of the page.
    pub(super) fn acts(self) -> bool {
        self.script_ran || self.awaited == Awaited::Condition || self.clock == Clock::Real
    }

    pub(super) fn plan(self) -> WaitPlan {
        match (self.awaited, self.clock, self.activity) {
            (Awaited::Nothing, ..) => WaitPlan::None,
            (_, Clock::Real, _) | (.., Activity::RealTime) => WaitPlan::Real,
            // Virtual time begins when the requests have ended; a static page needs none.
            (.., Activity::Requests) if !self.acts() => WaitPlan::Real,
            _ if self.is_static => WaitPlan::Skip,
            _ => WaitPlan::Virtual,
        }
    }
}

/// Reads the facts about the page.
pub(super) async fn facts(rendering: &Rendering<'_>, awaited: Awaited) -> Result<WaitFacts, JobError> {
    let state = rendering.load_state();
    let activity = if state.activity.needs_real_time {
        Activity::RealTime
    } else if state.is_requesting(Instant::now()) {
        Activity::Requests
    } else {
        Activity::None
    };
    let mut facts = WaitFacts {
        awaited,
        clock: rendering.clock.mode,
        script_ran: rendering.scripts.ran,
        activity,
        is_static: false,
    };
    facts.is_static = facts.may_be_static() && static_page::is_static(rendering).await?;
    Ok(facts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_passes_as_the_facts_allow() {
        use {Activity as A, Awaited as W, Clock as C, WaitPlan as P};
        let (ran, not_run) = (true, false);
        for (awaited, clock, script_ran, activity, is_static, expected) in [
            (W::Nothing, C::Virtual, not_run, A::None, false, P::None),
            (W::Nothing, C::Virtual, ran, A::RealTime, false, P::None),
            (W::Nothing, C::Real, ran, A::Requests, false, P::None),
            (W::Time, C::Virtual, not_run, A::None, true, P::Skip),
            (W::Time, C::Virtual, not_run, A::None, false, P::Virtual),
            (W::Time, C::Virtual, not_run, A::Requests, false, P::Real),
            (W::Time, C::Virtual, not_run, A::RealTime, false, P::Real),
            (W::Time, C::Virtual, ran, A::None, false, P::Virtual),
            (W::Time, C::Virtual, ran, A::Requests, false, P::Virtual),
            (W::Time, C::Virtual, ran, A::RealTime, false, P::Real),
            (W::Time, C::Real, not_run, A::None, false, P::Real),
            (W::Time, C::Real, ran, A::None, false, P::Real),
            (W::Condition, C::Virtual, not_run, A::None, false, P::Virtual),
            (W::Condition, C::Virtual, not_run, A::Requests, false, P::Virtual),
            (W::Condition, C::Virtual, not_run, A::RealTime, false, P::Real),
            (W::Condition, C::Real, not_run, A::None, false, P::Real),
        ] {
            let facts = WaitFacts { awaited, clock, script_ran, activity, is_static };
            assert_eq!(facts.plan(), expected, "{facts:?}");
            // Only a page that does nothing is asked whether it is static.
            let asks = awaited == W::Time && clock == C::Virtual && !script_ran && activity == A::None;
            assert_eq!(facts.may_be_static() || is_static, asks, "{facts:?}");
        }
    }
}
