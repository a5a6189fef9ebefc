//! Claims ahead on a database, in any order of grants, uses, returns, lost responses, late claims, repetitions and killed edges,
//! against a model that is a few numbers.
//!
//! `PROPTEST_CASES` is the number of histories.

#![allow(clippy::unwrap_used, reason = "a test")]

mod database;
mod history;

use std::{cell::Cell, env};

use proptest::{collection::vec, prelude::*, test_runner::TestRunner};
use tokio::runtime::Runtime;

use database::Database;
use history::History;

/// A step of a history. Those with a number are of one of the claims that were sent, if there are any.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// A render without claims ahead.
    Claim,
    /// An edge sends a claim of this many attempts, and at least so many, which replaces a claim.
    Send(u64, u64, usize),
    /// The database runs it; a second time if the message was there twice.
    Run(usize),
    /// The edge has the response, and uses one attempt.
    Respond(usize),
    /// An edge takes an attempt, as far as it knows there is one.
    Take(usize),
    /// An attempt that was used is refunded, because its job did not run.
    Refund,
    /// The edge stops using a claim. One that it has no response to may be made later.
    Close(usize),
    /// The database gives back what the edge has closed; as often as the message is there.
    GiveBack(usize),
    /// The edge is killed: what it knows of its claims is lost.
    Kill(usize),
    Enable(bool),
    Quota(Option<u64>),
}

fn step() -> impl Strategy<Value = Step> {
    let claim = 0..6_usize;
    prop_oneof![
        2 => Just(Step::Claim),
        4 => (1..80_u64, 1..3_u64, claim.clone())
            .prop_map(|(attempts, min, replaced)| Step::Send(attempts, min, replaced)),
        6 => claim.clone().prop_map(Step::Run),
        5 => claim.clone().prop_map(Step::Respond),
        8 => claim.clone().prop_map(Step::Take),
        2 => Just(Step::Refund),
        3 => claim.clone().prop_map(Step::Close),
        5 => claim.clone().prop_map(Step::GiveBack),
        1 => claim.prop_map(Step::Kill),
        1 => any::<bool>().prop_map(Step::Enable),
        1 => quota().prop_map(Step::Quota),
    ]
}

fn quota() -> impl Strategy<Value = Option<u64>> {
    prop_oneof![1 => Just(None), 3 => (0..8_u64).prop_map(Some), 6 => (100..9_000_u64).prop_map(Some)]
}

#[test]
fn any_history_agrees_with_the_model() {
    let runtime = Runtime::new().unwrap();
    let database = runtime.block_on(Database::open());
    let default = ProptestConfig::default();
    let cases = if env::var_os("PROPTEST_CASES").is_some() { default.cases } else { 10_000 };
    let mut runner = TestRunner::new(ProptestConfig { cases, failure_persistence: None, ..default });
    let number = Cell::new(0);
    let histories = (quota(), vec(step(), 1..40));
    let result = runner.run(&histories, |(quota, steps)| {
        number.set(number.get() + 1);
        runtime.block_on(async {
            let mut history = History::begin(&database, number.get(), quota).await;
            for step in &steps {
                history.step(step).await;
                history.check().await;
            }
            history.end().await;
        });
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
}
