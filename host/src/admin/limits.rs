//! The limits of an account, on a file: what one claim finds that others have left.

use platen_shared::{id::AccountId, key::ApiKey};
use platen_statements::{
    attempts::{self, Claim, KeyPurpose, PresentedKey},
    limits::{self, LimitUsage, NewLimits, RunningAttempt},
};

use super::tests::{Fixture, key_with_quota, row};

const MONTH: &str = "1970-01";

struct Limited {
    fixture: Fixture,
    account: AccountId,
    key: ApiKey,
}

impl Limited {
    async fn new(requests_per_minute: Option<u32>, concurrency: Option<u32>) -> Self {
        let fixture = Fixture::new().await;
        let (id, key) = key_with_quota(&fixture, 100).await;
        let limits =
            NewLimits { requests_per_minute: Some(requests_per_minute), concurrency: Some(concurrency) };
        assert!(fixture.store.command_line().set_limits(&id, limits).await.unwrap());
        Self { fixture, account: AccountId::from_text(id), key }
    }

    fn presented(&self) -> PresentedKey<'_> {
        PresentedKey { key: &self.key, month: MONTH, now: 1_000_000 }
    }

    async fn claim_of(&self, month: &str, id: i64) -> Option<Claim> {
        let presented = PresentedKey { month, ..self.presented() };
        let running = RunningAttempt { id, max_seconds: 30 };
        attempts::claim(self.fixture.backend(), presented, running, None).await.unwrap()
    }

    async fn claim(&self, id: i64) -> Option<Claim> {
        self.claim_of(MONTH, id).await
    }

    /// What a look-up finds.
    async fn usage(&self) -> Option<LimitUsage> {
        let status =
            attempts::key_status(&self.fixture.backend(), self.presented(), KeyPurpose::Source).await;
        status.unwrap().unwrap().limits
    }

    async fn run(&self, sql: &str) {
        self.fixture.database.query(sql, vec![]).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_place_is_free_when_its_attempt_ends_or_its_time_is_over() {
    let limited = Limited::new(None, Some(2)).await;
    for (id, running) in [(1, 1), (2, 2)] {
        let limits = limited.claim(id).await.unwrap().limits.unwrap();
        assert_eq!((limits.running, limits.concurrency), (running, Some(2)));
        assert_eq!(limited.usage().await.unwrap().running, running);
    }
    assert!(limited.claim(3).await.is_none());
    assert!(limited.usage().await.unwrap().is_concurrency_exhausted());
    // The edge ends it, repeatedly; another account's attempt of the same id is another one.
    let other = AccountId::from_text("acc_other");
    limits::end(&limited.fixture.backend(), &other, 1).await.unwrap();
    assert!(limited.claim(3).await.is_none());
    for _ in 0..2 {
        limits::end(&limited.fixture.backend(), &limited.account, 1).await.unwrap();
    }
    limited.claim(3).await.unwrap();
    assert!(limited.claim(4).await.is_none());
    // The row of a finished attempt ends it.
    let row = row(2, &limited.key, &limited.account);
    for _ in 0..2 {
        attempts::log(&limited.fixture.backend(), std::slice::from_ref(&row)).await.unwrap();
    }
    limited.claim(4).await.unwrap();
    assert!(limited.claim(5).await.is_none());
    // Of an edge that was killed.
    limited.run("UPDATE running_attempts SET ends_at = unixepoch() WHERE attempt_id = 3").await;
    assert_eq!(limited.claim(5).await.unwrap().limits.unwrap().running, 2);
    assert!(limited.claim(6).await.is_none());
    assert_eq!(limited.claim_of("1970-02", 7).await.map(|claim| claim.attempts), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_minute_ends_after_60_seconds_of_the_database() {
    let limited = Limited::new(Some(2), None).await;
    let left = async |id| limited.claim(id).await.map(|claim| claim.limits.unwrap().requests);
    assert_eq!(limited.usage().await.unwrap().seconds_left, 60);
    assert_eq!([left(1).await, left(2).await, left(3).await], [Some(1), Some(2), None]);
    // A new month does not begin a new minute.
    assert!(limited.claim_of("1970-02", 4).await.is_none());
    let begin = async |ago: i64| {
        limited.run(&format!("UPDATE usage_minutes SET began_at = unixepoch() - {ago}")).await;
    };
    begin(50).await;
    assert!(limited.claim(5).await.is_none());
    let usage = limited.usage().await.unwrap();
    assert!(usage.is_minute_exhausted() && (1..=10).contains(&usage.seconds_left), "{usage:?}");
    begin(60).await;
    assert_eq!(limited.usage().await.unwrap().requests, 0);
    assert_eq!([left(6).await, left(7).await, left(8).await], [Some(1), Some(2), None]);
    // The clock was set back: by a little it is the same minute, by more a new one begins.
    begin(-50).await;
    assert!(limited.claim(9).await.is_none());
    assert!(limited.usage().await.unwrap().seconds_left > 60);
    begin(-1_000).await;
    assert_eq!(left(10).await, Some(1));
    assert!(limited.usage().await.unwrap().seconds_left <= 60);
}
