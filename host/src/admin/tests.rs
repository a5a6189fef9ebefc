//! Statements that change several tables at once, on a file.

use std::{cell::RefCell, rc::Rc};

use platen_shared::{
    email::Email, id::AccountId, key::ApiKey, name::Name, request::TemplateOptions,
    template_record::TemplateRecord,
};
use platen_statements::{
    attempts::{self, Attempt, Claim, KeyOrLink, KeyPurpose, PresentedKey},
    audit::AuditFilter,
    invites::InviteTarget,
    limits::RunningAttempt,
    members::Role,
    requests::{RequestFilter, StatusFilter},
    sessions::{Lifetimes, Origin},
    templates::SaveOutcome,
};

use super::*;
use crate::{
    db::{Location, Purpose},
    migrate::migrate,
};

pub(super) struct Fixture {
    _directory: tempfile::TempDir,
    pub(super) database: Database,
    pub(super) store: Store<CommandBackend>,
}

impl Fixture {
    pub(super) async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let location = Location::in_data(directory.path());
        let database = Database::open(&location, None, Purpose::Migrate).await.unwrap();
        migrate(&database).await.unwrap();
        let store = Store::new(CommandBackend(database.clone()), 1_000_000);
        Self { _directory: directory, database, store }
    }

    pub(super) fn backend(&self) -> CommandBackend {
        CommandBackend(self.database.clone())
    }

    pub(super) async fn account(&self) -> AccountId {
        let name = Name::parse("acme").unwrap();
        self.store.command_line().create_account(&name, None).await.unwrap().unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_change_of_keys_and_templates_has_an_audit_entry() {
    let fixture = Fixture::new().await;
    let operator = fixture.store.command_line();
    let account = fixture.account().await;
    let owned = operator.account_scope(&account);
    let (key, _) = owned.create_key(&Name::parse("k").unwrap(), None).await.unwrap();
    assert!(owned.set_key_disabled(key.as_str(), true).await.unwrap());
    assert!(owned.delete_key(key.as_str()).await.unwrap());
    assert!(!owned.delete_key(key.as_str()).await.unwrap());
    let record =
        |html| TemplateRecord::new(Name::parse("t").unwrap(), html, TemplateOptions::default()).unwrap();
    let created = owned.create_template(record("a"), None, None).await.unwrap();
    let SaveOutcome::Saved(template) = created else { panic!("{created:?}") };
    let saved = owned.save_template(template.as_str(), record("b"), None, None, None).await.unwrap();
    assert!(matches!(saved, SaveOutcome::Saved(_)));
    assert!(owned.delete_template(template.as_str()).await.unwrap());
    let everything = AuditFilter { since: 0, until: i64::MAX, actor: None, text: None };
    let log = operator.log(&everything, None, 100).await.unwrap();
    assert!(log.iter().all(|entry| entry.actor == "command line" && entry.account.is_some()));
    let actions: Vec<_> =
        log.iter().rev().map(|entry| (entry.action.as_str(), entry.subject.as_str())).collect();
    let expected = [
        ("created account", "acme"),
        ("created key", "k"),
        ("disabled key", "k"),
        ("deleted key", "k"),
        ("created template", "t"),
        ("saved template", "t"),
        ("deleted template", "t"),
    ];
    assert_eq!(actions, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_link_keeps_the_rights_and_ends_the_sessions() {
    let fixture = Fixture::new().await;
    let account = fixture.account().await;
    let operator = InviteTarget { account: None, role: Role::Owner, operator: true };
    let member = InviteTarget { account: Some(account.as_str()), role: Role::Member, operator: false };
    let accept = async |target| {
        let email = Email::parse("ann@b").unwrap();
        let invite = fixture.store.command_line().invite(&email, target, 60).await.unwrap().unwrap();
        fixture.store.accept_invite(&invite.token, "hash").await.unwrap().unwrap().0
    };
    let user = accept(operator).await;
    let lifetimes = Lifetimes { idle: 1_000, whole: 10_000 };
    let origin = Origin { address: String::new(), agent: String::new() };
    let begin = async || fixture.store.begin_session(&user, &origin, None, lifetimes).await.unwrap();
    let session = begin().await;
    assert_eq!(accept(member).await, user);
    assert!(fixture.store.current_user(&session, lifetimes).await.unwrap().is_none());
    let current = fixture.store.current_user(&begin().await, lifetimes).await.unwrap().unwrap();
    assert!(current.is_operator() && current.works_in(account.as_str()));
}

/// An account with a key, on whose attempts statements are tried.
pub(super) struct Attempts {
    pub(super) fixture: Fixture,
    pub(super) account: AccountId,
    key: ApiKey,
}

impl Attempts {
    pub(super) async fn new(quota: u32) -> Self {
        let fixture = Fixture::new().await;
        let operator = fixture.store.command_line();
        let account = fixture.account().await;
        operator.set_quota(account.as_str(), Some(quota)).await.unwrap();
        let created = operator.account_scope(&account).create_key(&Name::parse("k").unwrap(), None).await;
        let (_, key) = created.unwrap();
        Self { fixture, account, key }
    }

    fn presented(&self) -> PresentedKey<'_> {
        PresentedKey { caller: KeyOrLink::Key(&self.key), month: "1970-01", now: 1_000_000 }
    }

    async fn claim(&self) -> Option<Claim> {
        let running = RunningAttempt { id: 1, max_seconds: 30 };
        attempts::claim(self.fixture.backend(), self.presented(), running, None).await.unwrap()
    }

    async fn used(&self) -> u64 {
        let status =
            attempts::key_status(&self.fixture.backend(), self.presented(), KeyPurpose::Source).await;
        status.unwrap().unwrap().attempts
    }

    pub(super) async fn log(&self, rows: &[Attempt]) {
        attempts::log(&self.fixture.backend(), rows).await.unwrap();
    }

    /// The rows, the newest first: status, whether it counts, and the key's name.
    async fn logged(&self, limit: u32) -> Vec<(u16, bool, Option<String>)> {
        let everything = RequestFilter { until: i64::MAX, ..RequestFilter::default() };
        let operator = self.fixture.store.command_line();
        let rows = operator.account_scope(&self.account).requests(&everything, None, limit).await.unwrap();
        rows.into_iter().map(|row| (row.status, row.counted, row.key_name)).collect()
    }

    /// The row of a rendered attempt.
    fn row(&self, id: i64) -> Attempt {
        Attempt {
            id,
            key_hash: self.key.hash(),
            account_id: self.account.clone(),
            endpoint: "render",
            format: "png",
            status: 200,
            counted: true,
            ms: 1,
            bytes: None,
            page_errors: Some(2),
            failed_requests: None,
            page_host: None,
            template_version: None,
            at: 1_000_000,
            refunded_month: None,
            code: None,
            field: None,
            rejected: false,
            queued_ms: Some(5),
            render_ms: None,
            request_id: "a \"request\"".to_owned(),
            template_id: None,
            host: Some("example.com".to_owned()),
        }
    }

    pub(super) fn refund(&self, id: i64, at: u64) -> Attempt {
        let (refunded_month, code) = (Some("1970-01".to_owned()), Some("queue_full"));
        Attempt { status: 503, counted: false, refunded_month, code, at, ..self.row(id) }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refund_that_is_sent_twice_refunds_once() {
    let attempts = Attempts::new(1).await;
    attempts.claim().await.unwrap();
    assert!(attempts.claim().await.is_none() && attempts.used().await == 1);
    let refund = attempts.refund(attempts::attempt_id([0xff; 8]), 1_000_000);
    attempts.log(std::slice::from_ref(&refund)).await;
    assert_eq!(attempts.used().await, 0);
    attempts.claim().await.unwrap();
    // The answer to the first statement was lost, and another row has been added since. One account was deleted.
    let gone = Attempt { account_id: AccountId::from_text("acc_gone"), ..attempts.refund(2, 1_000_000) };
    let rows = [refund, gone, attempts.row(3)];
    for _ in 0..2 {
        attempts.log(&rows).await;
        assert_eq!(attempts.used().await, 1);
    }
    let key = || Some("k".to_owned());
    assert_eq!(attempts.logged(10).await, [(200, true, key()), (503, false, key())]);
}

/// Attempts that are recorded, and rows that refund them: with ids of one moment, and with the same id.
#[tokio::test(flavor = "multi_thread")]
async fn no_row_takes_the_place_of_another() {
    const ROWS: u32 = 10_000;
    let attempts = Attempts::new(1_000_000).await;
    attempts.claim().await.unwrap();
    let set = format!("UPDATE usage SET attempts = {}", ROWS + 3);
    attempts.fixture.backend().execute(&set, &[]).await.unwrap();
    // Random numbers with the same beginnings.
    let mut random = 1_u64;
    let mut rows: Vec<_> = (0..ROWS)
        .map(|_| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            attempts.refund(attempts::attempt_id(random.to_le_bytes()), 1_000_000)
        })
        .collect();
    let id = rows[0].id;
    rows.extend(
        [(id, 999_999), (id, 1_000_001), (id + 1, 1_000_000)].map(|(id, at)| attempts.refund(id, at)),
    );
    for _ in 0..2 {
        for rows in rows.chunks(200) {
            attempts.log(rows).await;
        }
        assert_eq!(attempts.used().await, 0);
    }
    assert_eq!(attempts.logged(2 * ROWS).await.len(), rows.len());
}

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
    let plans = Rc::default();
    let store = Store::new(Explained { backend: fixture.backend(), plans: Rc::clone(&plans) }, 1_000_000);
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
