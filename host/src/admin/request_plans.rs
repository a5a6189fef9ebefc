//! How SQLite reads the lists of requests: through an index, without a sort.

use std::{cell::RefCell, rc::Rc};

use platen_shared::id::AccountId;
use platen_statements::requests::{RequestFilter, StatusFilter};

use super::{tests::Fixture, *};

/// Explains statements instead of running them.
struct Explained {
    backend: CommandBackend,
    plans: Rc<RefCell<Vec<String>>>,
}

impl Backend for Explained {
    type Error = Error;

    async fn execute(&self, sql: &str, values: &[Value]) -> Result<Vec<Row>> {
        let rows = self.backend.0.query(&format!("EXPLAIN QUERY PLAN {sql}"), values.to_vec()).await?;
        let details = rows.iter().map(|row| format!("{:?}", row.last())).collect::<Vec<_>>();
        self.plans.borrow_mut().push(details.join("\n"));
        Ok(Vec::new())
    }

    fn outcome(error: &Error) -> Outcome {
        CommandBackend::outcome(error)
    }

    async fn sleep(&self, time: Duration) {
        self.backend.sleep(time).await;
    }

    fn random<const N: usize>(&self) -> Result<[u8; N]> {
        self.backend.random()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_listed_through_indexes() {
    let fixture = Fixture::new().await;
    let backend = fixture.backend();
    let plans = Rc::default();
    let store = Store::new(Explained { backend, plans: Rc::clone(&plans) }, 1_000_000);
    let id = AccountId::from_text("acc_x");
    let operator = store.command_line();
    let account = operator.account_scope(&id);
    let all = || RequestFilter { until: i64::MAX, ..RequestFilter::default() };
    let with = |status| RequestFilter { status, ..all() };
    let key = || Some("key_x".to_owned());
    let by_request_id = RequestFilter { request_id: Some("r".to_owned()), ..all() };
    for (filter, index, columns) in [
        (all(), "attempts_by_account", "(account_id=? AND at>? AND at<?)"),
        (with(StatusFilter::Successful), "attempts_by_account", "(account_id=? AND at>? AND at<?)"),
        (with(StatusFilter::Failed), "attempts_failed", "(account_id=? AND at>? AND at<?)"),
        (with(StatusFilter::Is(429)), "attempts_by_status", "(account_id=? AND status=? AND at>? AND at<?)"),
        (
            RequestFilter { key: key(), ..all() },
            "attempts_by_key",
            "(account_id=? AND key_id=? AND at>? AND at<?)",
        ),
        (
            RequestFilter { template: key(), key: key(), ..all() },
            "attempts_by_template",
            "(account_id=? AND template_id=? AND at>? AND at<?)",
        ),
        (by_request_id.clone(), "attempts_by_request_id", "(account_id=? AND request_id>? AND request_id<?)"),
    ] {
        for before in [None, Some((5, 6))] {
            account.requests(&filter, before, 51).await.unwrap();
            let plan = plans.borrow_mut().pop().unwrap();
            let is_search = filter.request_id.is_some();
            let (index, columns) = if is_search && before.is_some() {
                ("attempts_by_account", "(account_id=? AND at>? AND at<?)")
            } else {
                (index, columns)
            };
            assert!(
                plan.contains(&format!("SEARCH attempts USING INDEX {index} {columns}")),
                "{filter:?}: {plan}"
            );
            assert!(!plan.contains("SCAN"), "{filter:?}: {plan}");
            assert_eq!(plan.contains("B-TREE"), is_search && before.is_none(), "{filter:?}: {plan}");
        }
    }
}
