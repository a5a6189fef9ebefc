//! Statements that change several tables at once, on a file.

use platen_shared::{
    email::Email,
    id::{AccountId, UserId},
    name::Name,
    request::TemplateOptions,
    template_record::TemplateRecord,
};
use platen_statements::{
    CurrentUser, NameRefusal,
    attempts::{self, Attempt, Claim, KeyPurpose, PresentedKey},
    audit::AuditFilter,
    invites::{Invite, InviteRefusal, InviteTarget},
    limits::RunningAttempt,
    members::{MemberChange, Role},
    requests::RequestFilter,
    sessions::{Lifetimes, Origin},
    templates::SaveOutcome,
};

use super::*;
use crate::{
    db::{Location, Purpose},
    migrate::migrate,
};

const LIFETIMES: Lifetimes = Lifetimes { idle: 1_000, whole: 10_000 };
const OPERATOR: InviteTarget<'static> = InviteTarget { account: None, role: Role::Owner, operator: true };

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

    async fn account(&self, name: &str) -> String {
        let name = Name::parse(name).unwrap();
        self.store.command_line().create_account(&name, None).await.unwrap().unwrap().to_string()
    }

    async fn invite(&self, email: &str, target: InviteTarget<'_>) -> Result<Invite, InviteRefusal> {
        self.store.command_line().invite(&Email::parse(email).unwrap(), target, 60).await.unwrap()
    }

    async fn user(&self, email: &str, target: InviteTarget<'_>) -> UserId {
        let invite = self.invite(email, target).await.unwrap();
        self.store.accept_invite(&invite.token, "first hash").await.unwrap().unwrap().0
    }

    async fn session(&self, user: &UserId) -> platen_shared::token::Token {
        let origin = Origin { address: String::new(), agent: String::new() };
        self.store.begin_session(user, &origin, None, LIFETIMES).await.unwrap()
    }

    async fn current_user(&self, token: &platen_shared::token::Token) -> Option<CurrentUser> {
        self.store.current_user(token, LIFETIMES).await.unwrap()
    }

    /// Actor, account, action and subject of every entry, the oldest first.
    async fn log(&self) -> Vec<(String, Option<String>, String, String)> {
        let everything = AuditFilter { since: 0, until: i64::MAX, actor: None, text: None };
        let entries = self.store.command_line().log(&everything, None, 100).await.unwrap().into_iter().rev();
        entries.map(|entry| (entry.actor, entry.account, entry.action, entry.subject)).collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_and_its_audit_entry_are_one_statement() {
    let fixture = Fixture::new().await;
    let operator = fixture.store.command_line();
    let id = fixture.account("acme").await;
    let name = |name| Name::parse(name).unwrap();
    assert_eq!(operator.create_account(&name("acme"), None).await.unwrap(), Err(NameRefusal::Taken));
    assert!(operator.set_quota(&id, Some(7)).await.unwrap());
    assert!(!operator.set_quota("acc_x", Some(7)).await.unwrap());
    fixture.account("other").await;
    assert_eq!(operator.rename_account(&id, &name("other")).await.unwrap(), Err(NameRefusal::Taken));
    assert_eq!(operator.rename_account("acc_x", &name("new")).await.unwrap(), Ok(false));
    assert_eq!(operator.rename_account(&id, &name("ACME")).await.unwrap(), Ok(true));
    assert!(operator.set_account_disabled(&id, true).await.unwrap());

    let account = operator.account(&id).await.unwrap().unwrap();
    let owned = operator.account_scope(&account.id);
    let (key, _) = owned.create_key(&name("k"), None).await.unwrap().unwrap();
    assert!(owned.set_key_disabled(key.as_str(), true).await.unwrap());
    assert!(owned.delete_key(key.as_str()).await.unwrap());
    assert!(!owned.delete_key(key.as_str()).await.unwrap());
    assert!(owned.keys().await.unwrap().is_empty());
    let record =
        |html| TemplateRecord::new(Name::parse("t").unwrap(), html, TemplateOptions::default()).unwrap();
    let template = owned.create_template(record("a"), None).await.unwrap();
    let save =
        async |html, revision| owned.save_template(template.as_str(), record(html), None, revision).await;
    assert!(matches!(save("b", None).await.unwrap(), SaveOutcome::Saved(_)));
    // Another revision than the stored one: nothing is saved, unless the content is the same.
    let SaveOutcome::Conflict(stored) = save("c", Some(1)).await.unwrap() else { panic!("no conflict") };
    assert_eq!(
        (stored.html.as_str(), stored.revision, stored.saved_by.as_deref()),
        ("b", 2, Some("command line"))
    );
    assert!(matches!(save("b", Some(1)).await.unwrap(), SaveOutcome::Saved(_)));
    let versions = owned.versions(template.as_str()).await.unwrap();
    assert_eq!(versions.len(), 1);
    assert_eq!(versions[0].saved_by.as_deref(), Some("command line"));
    let missing = owned.save_template("tpl_x", record("b"), None, None).await.unwrap();
    assert!(matches!(missing, SaveOutcome::NotFound));
    assert!(owned.delete_template(template.as_str()).await.unwrap());
    assert!(owned.versions(template.as_str()).await.unwrap().is_empty());

    let expected = [
        ("created account", "acme"),
        ("changed quota", "7"),
        ("created account", "other"),
        ("renamed account", "ACME"),
        ("disabled account", "ACME"),
        ("created key", "k"),
        ("disabled key", "k"),
        ("deleted key", "k"),
        ("created template", "t"),
        ("saved template", "t"),
        ("deleted template", "t"),
    ];
    let log = fixture.log().await;
    let actions: Vec<_> =
        log.iter().map(|(_, _, action, subject)| (action.as_str(), subject.as_str())).collect();
    assert_eq!(actions, expected);
    assert!(log.iter().all(|(actor, account, ..)| actor == "command line" && account.is_some()));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_has_one_open_invite_which_works_once() {
    let fixture = Fixture::new().await;
    let (account, other) = (fixture.account("acme").await, fixture.account("other").await);
    let of = |account| InviteTarget { account: Some(account), role: Role::Member, operator: false };
    let nothing = InviteTarget { account: None, role: Role::Member, operator: false };
    let first = fixture.invite("ann@b", of(&account)).await.unwrap();
    let second = fixture.invite("ann@b", OPERATOR).await.unwrap();
    assert!(second.operator && second.account.is_none());
    assert!(fixture.store.accept_invite(&first.token, "x").await.unwrap().is_none());
    let (user, email) = fixture.store.accept_invite(&second.token, "x").await.unwrap().unwrap();
    assert_eq!(email, "ann@b");
    assert!(fixture.store.accept_invite(&second.token, "y").await.unwrap().is_none());

    // A new link for an existing user keeps the rights and ends the sessions.
    let session = fixture.session(&user).await;
    assert!(fixture.current_user(&session).await.unwrap().is_operator());
    let third = fixture.invite("ann@b", of(&account)).await.unwrap();
    assert_eq!((third.operator, third.account.map(|id| id.to_string())), (true, Some(account.clone())));
    assert_eq!(fixture.store.accept_invite(&third.token, "z").await.unwrap().unwrap().0, user);
    assert!(fixture.current_user(&session).await.is_none());
    assert_eq!(fixture.store.credentials("ann@b").await.unwrap(), Some((user.clone(), "z".to_owned())));
    let session = fixture.session(&user).await;
    let current = fixture.current_user(&session).await.unwrap();
    assert!(current.is_operator() && current.works_in(&account));

    let refused = async |email, target| fixture.invite(email, target).await.unwrap_err();
    assert_eq!(refused("ann@b", of(&other)).await, InviteRefusal::OtherAccount);
    assert_eq!(refused("new@b", of("acc_x")).await, InviteRefusal::NoSuchAccount);
    assert_eq!(refused("new@b", nothing).await, InviteRefusal::NoTarget);
    fixture.invite("ann@b", nothing).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_user_has_neither_sessions_nor_an_open_invite() {
    let fixture = Fixture::new().await;
    let account = fixture.account("acme").await;
    let target = InviteTarget { account: Some(&account), role: Role::Member, operator: false };
    let (guest, operator) = (fixture.user("guest@b", target).await, fixture.user("op@b", OPERATOR).await);
    let (session, link) = (fixture.session(&guest).await, fixture.invite("guest@b", target).await.unwrap());
    let operator_session = fixture.session(&operator).await;
    let current = fixture.current_user(&operator_session).await.unwrap();
    let operators = fixture.store.operator(&current).unwrap();
    let removed = operators.remove_operator(operator.as_str()).await.unwrap();
    assert_eq!(removed, MemberChange::NotFound, "an operator removed itself");
    assert_eq!(operators.remove_operator(guest.as_str()).await.unwrap(), MemberChange::NotFound);
    assert_eq!(operators.remove_user(&account, guest.as_str()).await.unwrap(), MemberChange::Done);
    assert_eq!(operators.remove_user(&account, guest.as_str()).await.unwrap(), MemberChange::NotFound);
    assert!(fixture.current_user(&session).await.is_none());
    assert!(fixture.store.accept_invite(&link.token, "x").await.unwrap().is_none());
    assert!(operators.users(&account).await.unwrap().is_empty());
    assert!(operators.join(&account).await.unwrap());
    let entry = |action: &str, subject: &str| {
        ("op@b".to_owned(), Some("acme".to_owned()), action.to_owned(), subject.to_owned())
    };
    let expected = [entry("removed user", "guest@b"), entry("switched account", "op@b")];
    assert_eq!(fixture.log().await[fixture.log().await.len() - 2..], expected);
}

/// A key of a new account with this quota.
pub(super) async fn key_with_quota(fixture: &Fixture, quota: u32) -> (String, platen_shared::key::ApiKey) {
    let operator = fixture.store.command_line();
    let account = fixture.account("acme").await;
    operator.set_quota(&account, Some(quota)).await.unwrap();
    let record = operator.account(&account).await.unwrap().unwrap();
    let key = operator
        .account_scope(&record.id)
        .create_key(&Name::parse("k").unwrap(), None)
        .await
        .unwrap()
        .unwrap()
        .1;
    (account, key)
}

/// The row of a rendered attempt.
pub(super) fn row(id: i64, key: &platen_shared::key::ApiKey, account: &AccountId) -> Attempt {
    Attempt {
        id,
        key_hash: key.hash(),
        account_id: account.clone(),
        endpoint: "render",
        format: "png",
        status: 200,
        counted: true,
        ms: 1,
        bytes: None,
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

#[tokio::test(flavor = "multi_thread")]
async fn a_refund_that_is_sent_twice_refunds_once() {
    let fixture = Fixture::new().await;
    let (account, key) = key_with_quota(&fixture, 1).await;
    let presented = || PresentedKey { key: &key, month: "1970-01", now: 1_000_000 };
    let running = RunningAttempt { id: 1, max_seconds: 30 };
    let claim = async || attempts::claim(fixture.backend(), presented(), running, None).await.unwrap();
    let used = async || {
        let status = attempts::key_status(&fixture.backend(), presented(), KeyPurpose::Source).await;
        status.unwrap().unwrap().attempts
    };
    let row = |id, claim: &Claim, refunded: bool| {
        let row = row(id, &key, &claim.account);
        if !refunded {
            return row;
        }
        let (refunded_month, code) = (Some(claim.month.clone()), Some("queue_full"));
        Attempt { status: 503, counted: false, refunded_month, code, ..row }
    };
    let refused = claim().await.unwrap();
    assert!(claim().await.is_none() && used().await == 1);
    let large_id = attempts::attempt_id([0xff; 8]);
    let rows = [row(large_id, &refused, true)];
    attempts::log(&fixture.backend(), &rows).await.unwrap();
    assert_eq!(used().await, 0);
    let rendered = claim().await.unwrap();
    // The answer to the first statement was lost, and another row has been added since. One account was deleted.
    let gone = Attempt { account_id: AccountId::from_text("acc_gone"), ..row(2, &refused, true) };
    let rows = [rows[0].clone(), gone, row(3, &rendered, false)];
    for _ in 0..2 {
        attempts::log(&fixture.backend(), &rows).await.unwrap();
        assert_eq!(used().await, 1);
    }
    let operator = fixture.store.command_line();
    let record = operator.account(&account).await.unwrap().unwrap();
    let everything = RequestFilter { until: i64::MAX, ..RequestFilter::default() };
    let logged = operator.account_scope(&record.id).requests(&everything, None, 10).await.unwrap();
    let logged: Vec<_> = logged.iter().map(|it| (it.status, it.counted, it.key_name.as_deref())).collect();
    assert_eq!(logged, [(200, true, Some("k")), (503, false, Some("k"))]);
}

/// Attempts that are recorded, and rows that refund them: with ids of one moment, and with the same id.
#[tokio::test(flavor = "multi_thread")]
async fn no_row_takes_the_place_of_another() {
    const ROWS: u32 = 10_000;
    let fixture = Fixture::new().await;
    let (account, key) = key_with_quota(&fixture, 1_000_000).await;
    let presented = || PresentedKey { key: &key, month: "1970-01", now: 1_000_000 };
    let running = RunningAttempt { id: 1, max_seconds: 30 };
    let claim = attempts::claim(fixture.backend(), presented(), running, None).await.unwrap().unwrap();
    let set = format!("UPDATE usage SET attempts = {}", ROWS + 3);
    fixture.backend().execute(&set, &[]).await.unwrap();
    let refund = |id, at| {
        let (refunded_month, code) = (Some(claim.month.clone()), Some("queue_full"));
        Attempt { status: 503, counted: false, refunded_month, code, at, ..row(id, &key, &claim.account) }
    };
    // Random numbers with the same beginnings.
    let mut random = 1_u64;
    let mut rows: Vec<_> = (0..ROWS)
        .map(|_| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            refund(attempts::attempt_id(random.to_le_bytes()), 1_000_000)
        })
        .collect();
    let id = rows[0].id;
    rows.extend([refund(id, 999_999), refund(id, 1_000_001), refund(id + 1, 1_000_000)]);
    for _ in 0..2 {
        for rows in rows.chunks(200) {
            attempts::log(&fixture.backend(), rows).await.unwrap();
        }
        let status = attempts::key_status(&fixture.backend(), presented(), KeyPurpose::Source).await;
        assert_eq!(status.unwrap().unwrap().attempts, 0);
    }
    let operator = fixture.store.command_line();
    let record = operator.account(&account).await.unwrap().unwrap();
    let everything = RequestFilter { until: i64::MAX, ..RequestFilter::default() };
    let logged = operator.account_scope(&record.id).requests(&everything, None, 2 * ROWS).await.unwrap();
    assert_eq!(logged.len(), rows.len());
}
