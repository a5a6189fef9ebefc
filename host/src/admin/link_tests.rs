//! Links on a file: their changes, their limit of a day, and that none is a key.

use platen_shared::{
    id::TemplateId,
    job::Variable,
    key::ApiKey,
    link::{LinkFile, LinkId, LinkSecret},
    name::Name,
    request::TemplateOptions,
    template_record::TemplateRecord,
};
use platen_statements::{
    attempts::{self, Attempt, KeyOrLink, KeyPurpose, PresentedKey, RequestedTemplate},
    audit::AuditFilter,
    limits::RunningAttempt,
    links::{self, LinkSettings},
    requests::RequestFilter,
    templates::SaveOutcome,
};

use super::{
    tests::{Attempts, Fixture},
    *,
};

const DAY: u64 = 86_400;

async fn template(fixture: &Fixture, account: &AccountId) -> TemplateId {
    let name = Name::parse("t").unwrap();
    let record = TemplateRecord::new(name, "{{ b }}{{ a }}", TemplateOptions::default()).unwrap();
    let operator = fixture.store.command_line();
    let created = operator.account_scope(account).create_template(record, None, None).await.unwrap();
    let SaveOutcome::Saved(template) = created else { panic!("{created:?}") };
    template
}

fn settings(daily_limit: Option<u32>) -> LinkSettings {
    LinkSettings { formats: "png,webp".parse().unwrap(), max_age: 60, daily_limit }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_change_of_a_link_has_an_audit_entry() {
    let fixture = Fixture::new().await;
    let account = fixture.account().await;
    let template = template(&fixture, &account).await;
    let operator = fixture.store.command_line();
    let owned = operator.account_scope(&account);
    let name = |text| Name::parse(text).unwrap();
    let other = TemplateId::from_text("tpl_other");
    assert!(owned.create_link(&other, &name("l"), &settings(None)).await.unwrap().is_none());
    let (id, first) = owned.create_link(&template, &name("l"), &settings(None)).await.unwrap().unwrap();
    let signed = |secret: &LinkSecret| LinkFile::new(id.clone(), "card.png", []).unwrap().signed(secret);
    let accepts = async |secret: &LinkSecret, now: i64| {
        let link = links::find(&fixture.backend(), &id).await.unwrap()?;
        Some(link.has_signed(&signed(secret), now))
    };
    let text = id.as_str();
    assert!(owned.change_link(text, &name("card"), &settings(Some(5))).await.unwrap());
    let second = owned.roll_link(text, 2_000_000).await.unwrap().unwrap();
    assert_eq!(owned.link_secret(text).await.unwrap(), Some(second.clone()));
    assert_eq!([accepts(&first, 1_999_999).await, accepts(&second, 1_999_999).await], [Some(true); 2]);
    assert_eq!(
        [accepts(&first, 2_000_000).await, accepts(&second, 2_000_000).await],
        [Some(false), Some(true)]
    );
    let third = owned.roll_link(text, 2_000_000).await.unwrap().unwrap();
    assert_eq!([accepts(&first, 0).await, accepts(&second, 0).await], [Some(false), Some(true)]);
    assert!(owned.set_link_disabled(text, true).await.unwrap());
    assert_eq!(accepts(&third, 0).await, None);
    assert!(owned.link(text).await.unwrap().unwrap().disabled);
    assert!(owned.set_link_disabled(text, false).await.unwrap());
    assert_eq!(accepts(&third, 0).await, Some(true));
    let listed = owned.links(Some(template.as_str())).await.unwrap();
    assert_eq!(listed.len(), 1);
    let listed = &listed[0];
    assert_eq!((&listed.id, listed.name.as_str(), listed.daily_limit), (&id, "card", Some(5)));
    assert!(owned.links(Some("tpl_other")).await.unwrap().is_empty());
    // It is none of the keys.
    assert!(owned.keys().await.unwrap().is_empty() && owned.key(text).await.unwrap().is_none());
    assert!(!owned.rename_key(text, &name("x")).await.unwrap());
    assert!(!owned.set_key_disabled(text, true).await.unwrap() && !owned.delete_key(text).await.unwrap());
    assert!(owned.roll_key(text, 0).await.unwrap().is_none());
    assert!(owned.delete_link(text).await.unwrap() && !owned.delete_link(text).await.unwrap());
    assert_eq!(accepts(&third, 0).await, None);
    let everything = AuditFilter { since: 0, until: i64::MAX, actor: None, text: Some("link".to_owned()) };
    let log = operator.log(&everything, None, 100).await.unwrap();
    let actions: Vec<_> =
        log.iter().rev().map(|entry| (entry.action.as_str(), entry.subject.as_str())).collect();
    let expected = [
        ("created link", "l"),
        ("changed link", "card"),
        ("rolled secret of link", "card"),
        ("rolled secret of link", "card"),
        ("disabled link", "card"),
        ("enabled link", "card"),
        ("deleted link", "card"),
    ];
    assert_eq!(actions, expected);
}

/// An attempt of a link at its template, with these names of values.
async fn claim(attempts: &Attempts, link: &LinkId, template: &TemplateId, now: u64) -> bool {
    let variables = ["a", "b"].map(|name| (name.to_owned(), Variable::Text("1".to_owned()))).into();
    let requested = RequestedTemplate {
        id: template,
        variables: &variables,
        has_data: false,
        replaced: &[],
        format: None,
    };
    let presented = PresentedKey { caller: KeyOrLink::Link(link), month: "1970-01", now };
    let running = RunningAttempt { id: 1, max_seconds: 30 };
    let backend = attempts.fixture.backend();
    let claim =
        attempts::claim(attempts.fixture.backend(), presented, running, Some(requested)).await.unwrap();
    if claim.is_none() {
        let purpose = KeyPurpose::Template(requested);
        let status = attempts::key_status(&backend, presented, purpose).await.unwrap().unwrap();
        assert!(status.is_day_exhausted);
    }
    claim.is_some()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_limit_of_a_day_is_exact_and_a_refund_gives_back() {
    let attempts = Attempts::new(100).await;
    let template = template(&attempts.fixture, &attempts.account).await;
    let operator = attempts.fixture.store.command_line();
    let owned = operator.account_scope(&attempts.account);
    let name = Name::parse("l").unwrap();
    let (link, _) = owned.create_link(&template, &name, &settings(Some(2))).await.unwrap().unwrap();
    let claim = async |now| claim(&attempts, &link, &template, now).await;
    // The time of the store is in the day from 950,400 to 1,036,799.
    assert!(claim(950_400).await && claim(1_036_799).await && !claim(1_000_000).await);
    assert_eq!(owned.link(link.as_str()).await.unwrap().unwrap().attempts_today, 2);
    assert!(claim(1_036_800).await);
    let row = |id, at| Attempt {
        key_hash: KeyOrLink::Link(&link).hash(),
        endpoint: "link",
        template_id: Some(template.clone()),
        ..attempts.refund(id, at)
    };
    // A refund gives an attempt back to the day of its claim, once.
    let refund = row(1, 1_036_799);
    attempts.log(&[refund.clone(), refund]).await;
    assert!(claim(1_036_799).await && !claim(1_036_799).await);
    assert!(claim(1_036_800).await && !claim(1_036_800).await);
    assert!(claim(1_036_800 + 2 * DAY).await);
    assert_eq!(owned.link(link.as_str()).await.unwrap().unwrap().attempts_today, 0);
    // Usage and requests have it as a key.
    attempts.log(&[Attempt { refunded_month: None, counted: true, status: 200, ..row(2, 1_000_000) }]).await;
    let usage = owned.usage_by_key(0).await.unwrap();
    assert_eq!(
        (usage[0].id.as_str(), usage[0].name.as_deref(), usage[0].attempts),
        (link.as_str(), Some("l"), 1)
    );
    let filter = RequestFilter { until: i64::MAX, key: Some(link.to_string()), ..RequestFilter::default() };
    let rows = owned.requests(&filter, None, 10).await.unwrap();
    assert_eq!(rows.len(), 2);
    assert_eq!((rows[1].key_id.as_deref(), rows[1].key_name.as_deref()), (Some(link.as_str()), Some("l")));
    assert!(owned.link(link.as_str()).await.unwrap().unwrap().last_used_at.is_some());
    // It goes with its template.
    assert!(owned.delete_template(template.as_str()).await.unwrap());
    assert!(owned.links(None).await.unwrap().is_empty() && operator.links(None).await.unwrap().is_empty());
    let left = attempts.fixture.database.query("SELECT count(*) FROM link_days", vec![]).await.unwrap();
    assert_eq!(left, [vec![Value::from(0_i64)]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_link_is_a_key() {
    let attempts = Attempts::new(100).await;
    let template = template(&attempts.fixture, &attempts.account).await;
    let operator = attempts.fixture.store.command_line();
    let owned = operator.account_scope(&attempts.account);
    let name = Name::parse("l").unwrap();
    let (link, secret) = owned.create_link(&template, &name, &settings(None)).await.unwrap().unwrap();
    for text in [link.as_str(), secret.expose()] {
        assert!(ApiKey::parse(text).is_none());
        let bearer = format!("Bearer {text}").into_bytes();
        assert!(ApiKey::from_authorization(&[bearer]).is_none());
    }
    assert!(operator.owner_of_key(link.as_str()).await.unwrap().is_none());
    // The schema keeps what the table has for a key and for a link apart.
    for change in [
        "kind = 'key'",
        "kind = 'temporary'",
        "hash = printf('%064d', 1)",
        "secret = NULL",
        "template_id = NULL",
    ] {
        let sql = format!("UPDATE api_keys SET {change} WHERE kind = 'link'");
        assert!(attempts.fixture.database.query(&sql, vec![]).await.is_err(), "{change}");
    }
    for change in ["kind = 'link'", "hash = id", "secret = 's'", "daily_limit = 1"] {
        let sql = format!("UPDATE api_keys SET {change} WHERE kind = 'key'");
        assert!(attempts.fixture.database.query(&sql, vec![]).await.is_err(), "{change}");
    }
}
