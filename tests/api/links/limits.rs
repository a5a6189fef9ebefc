//! The limits of a link and of its account, and changes of a link.

use futures::{
    future::try_join_all,
    stream::{self, StreamExt as _, TryStreamExt as _},
};
use http::Method;
use platen_harness::{
    delay_proxy::{DelayProxy, Link as NetworkLink},
    operator::text,
    service::DatabaseLocation,
};
use platen_shared::link::{LinkId, LinkSecret};

use super::{Fixture, Link, MARKUP, VALUES, call, is_error, is_file, says_nothing_else};
use crate::prelude::*;

pub(super) async fn daily_limit(stage: Stage) -> Result<()> {
    const LIMIT: usize = 10;
    let fixture = Fixture::new(&stage, Quota::Of(100), &["--daily-limit", "10"]).await?;
    let address = fixture.link.address("card.png", &VALUES)?;
    let calls = (0..40).map(|_| fixture.get(&address));
    let answers: Vec<Answer> = stream::iter(calls).buffer_unordered(16).try_collect().await?;
    let mut files = 0;
    for answer in &answers {
        if answer.status == 200 {
            files += 1;
            continue;
        }
        is_error(answer, 429, "daily_limit_exceeded")?;
        let wait: u64 = answer.header("retry-after")?.parse()?;
        ensure!((1..=86_400).contains(&wait), "retry-after {wait}");
    }
    ensure!(files == LIMIT, "{files} files");
    fixture.is_counted(LIMIT).await?;
    // The key of the account goes on.
    fixture.target.renders().await?;
    // What was not rendered is given back to the day.
    let other =
        Link::create(&fixture.stand_in.app, &fixture.account, &fixture.template, &["--daily-limit", "2"])
            .await?;
    let address = other.address("card.png", &VALUES)?;
    fixture.stand_in.farm.behave(&fixture.account.id, Behaviour::Refuse(Refusal::QueueFull));
    for _ in 0..4 {
        is_error(&fixture.get(&address).await?, 503, "renderer_busy")?;
    }
    fixture.stand_in.farm.behave(&fixture.account.id, Behaviour::File);
    for _ in 0..2 {
        is_file(&fixture.get(&address).await?, "card.png", "image/png", 86_400)?;
    }
    is_error(&fixture.get(&address).await?, 429, "daily_limit_exceeded").map(drop)
}

pub(super) async fn limits(stage: Stage) -> Result<()> {
    let fixture = Fixture::new(&stage, Quota::Of(3), &["--daily-limit", "unlimited"]).await?;
    let app = &fixture.stand_in.app;
    let address = fixture.link.address("card.png", &VALUES)?;
    fixture.target.renders().await?;
    let calls = try_join_all((0..8).map(|_| fixture.get(&address))).await?;
    ensure!(calls.iter().filter(|answer| answer.status == 200).count() == 2, "the quota is not exact");
    for answer in calls.iter().filter(|answer| answer.status != 200) {
        is_error(answer, 429, "quota_exhausted")?;
    }
    // The head of a file costs nothing.
    let head = call(&fixture.target, Method::HEAD, &address).await?;
    ensure!(head.status == 200, "{}", head.summary());
    fixture.is_counted(3).await?;
    let (limited, _) = app.account(Quota::Unlimited).await?;
    let limit = ["account", "limits", limited.id.as_str(), "--requests-per-minute", "1"];
    app.operator.run(&limit).await?;
    let template = app.operator.template(&limited.id, "Card", MARKUP).await?;
    let link = Link::create(app, &limited, &template, &[]).await?;
    let address = link.address("card.png", &VALUES)?;
    is_file(&fixture.get(&address).await?, "card.png", "image/png", 86_400)?;
    is_error(&fixture.get(&address).await?, 429, "rate_limit_exceeded")?;
    for command in [["account", "disable"], ["account", "enable"], ["account", "delete"]] {
        let more: &[&str] = if command[1] == "delete" { &["--yes"] } else { &[] };
        app.operator.run(&[&command, [limited.id.as_str()].as_slice(), more].concat()).await?;
        let (status, code) =
            if command[1] == "enable" { (429, "rate_limit_exceeded") } else { (404, "not_found") };
        is_error(&fixture.get(&address).await?, status, code).with_context(|| format!("{command:?}"))?;
    }
    Ok(())
}

pub(super) async fn changes(stage: Stage) -> Result<()> {
    let fixture = Fixture::new(&stage, Quota::Of(100), &[]).await?;
    let (app, id) = (&fixture.stand_in.app, fixture.link.id.as_str());
    let command = async |arguments: &[&str]| app.operator.run(&[&["link"], arguments].concat()).await;
    let secret = async |arguments: &[&str]| -> Result<Link> {
        let secret = LinkSecret::parse(&text(&command(arguments).await?, "secret")?).context("a secret")?;
        Ok(Link { id: fixture.link.id.clone(), secret })
    };
    let status = async |link: &Link| -> Result<u16> {
        let answer = fixture.get(&link.address("card.png", &VALUES)?).await?;
        says_nothing_else(&answer)?;
        Ok(answer.status)
    };
    let first = &fixture.link;
    ensure!(status(first).await? == 200, "a new link is refused");
    let second = secret(&["roll", id]).await?;
    ensure!((status(first).await?, status(&second).await?) == (200, 200), "one of both secrets is refused");
    let third = secret(&["roll", id, "--grace", "0"]).await?;
    ensure!(
        (status(first).await?, status(&second).await?, status(&third).await?) == (403, 403, 200),
        "a secret is good beyond its time"
    );
    command(&["disable", id]).await?;
    ensure!(status(&third).await? == 404, "a disabled link is accepted");
    command(&["enable", id]).await?;
    ensure!(status(&third).await? == 200, "an enabled link is refused");
    command(&["delete", id]).await?;
    ensure!(status(&third).await? == 404, "a deleted link is accepted");
    let of_template = Link::create(app, &fixture.account, &fixture.template, &[]).await?;
    ensure!(status(&of_template).await? == 200, "a new link is refused");
    app.operator.run(&["template", "delete", &fixture.template]).await?;
    ensure!(status(&of_template).await? == 404, "a link without a template is accepted");
    let entries = "SELECT count(*) FROM audit WHERE action LIKE '%link%' AND subject = 'Card' \
        AND actor = 'command line' AND account_id IS NOT NULL";
    // Two created, two rolled, disabled, enabled, deleted.
    ensure!(app.execute(entries).await? == Some(7), "{:?} audit entries", app.execute(entries).await?);
    Ok(())
}

pub(super) async fn claims_ahead(stage: Stage) -> Result<()> {
    let stand_in = stage.start_stand_in_with(|options| options.claim_ahead(30)).await?;
    let fixture = Fixture::of(stand_in, Quota::Of(1_000_000), MARKUP, &["--daily-limit", "30"]).await?;
    let (app, id) = (&fixture.stand_in.app, fixture.link.id.as_str());
    let address = fixture.link.address("card.png", &VALUES)?;
    let calls = (0..40).map(|_| fixture.get(&address));
    let answers: Vec<Answer> = stream::iter(calls).buffer_unordered(8).try_collect().await?;
    ensure!(answers.iter().filter(|answer| answer.status == 200).count() == 30, "the limit is not exact");
    fixture.is_counted(30).await?;
    // What an edge keeps of a link decides about signatures only.
    let other = Link::create(app, &fixture.account, &fixture.template, &[]).await?;
    let address = other.address("card.png", &VALUES)?;
    for _ in 0..5 {
        is_file(&fixture.get(&address).await?, "card.png", "image/png", 86_400)?;
    }
    app.operator.run(&["link", "disable", other.id.as_str()]).await?;
    for _ in 0..5 {
        is_error(&fixture.get(&address).await?, 404, "not_found")?;
    }
    fixture.target.with_key(id).minimal().send().await?.error(401, "Invalid API key")?;
    fixture.is_counted(35).await
}

/// The requests to the database that an address waits for.
pub(super) async fn round_trips(stage: Stage) -> Result<()> {
    let near = Fixture::new(&stage, Quota::Of(100), &["--format", "png"]).await?;
    let location = near.stand_in.app.database.location().clone();
    let address = location.address.strip_prefix("http://").context("the database has no http URL")?;
    let proxy = DelayProxy::start(address.parse()?, NetworkLink::default()).await?;
    let location = DatabaseLocation { address: proxy.url(), ..location };
    let options = Options {
        database: Some(location),
        ..Options::with_farm(stage.deployment, near.stand_in.farm.url())
    };
    let far = stage.start(&options).await?;
    let target = far.target(&near.account);
    let good = near.link.address("card.png", &VALUES)?;
    // Connections are open, and no row is on its way.
    is_file(&call(&target, Method::GET, &good).await?, "card.png", "image/png", 86_400)?;
    far.until_rows(&near.account, "status = 200", 1).await?;
    let wrong = good.replace("O%27Neil", "O%27Neal");
    let id = near.link.id.as_str();
    let not_rendered = [
        (Method::GET, wrong.clone(), 403, 1),
        (Method::HEAD, wrong, 403, 1),
        (Method::GET, good.replace(id, LinkId::from_random([9; 32]).as_str()), 404, 1),
        (Method::GET, good.replace(id, &format!("{id}x")), 404, 0),
        (Method::GET, good.replace("/card", "/Card"), 404, 0),
        (Method::GET, good.replace("/card.png", "x/card.png"), 403, 0),
        (Method::GET, format!("{good}%"), 400, 0),
        (Method::GET, format!("{good}&"), 308, 1),
        (Method::HEAD, good.clone(), 200, 1),
    ];
    for (method, address, status, expected) in not_rendered {
        let before = proxy.round_trips();
        let answer = call(&target, method, &address).await?;
        ensure!(answer.status == status, "{address}: {}", answer.summary());
        let found = proxy.round_trips() - before;
        ensure!(found == expected, "{address}: {found} round trips instead of {expected}");
    }
    let before = proxy.round_trips();
    proxy.hold(Some("INSERT INTO attempts"));
    is_file(&call(&target, Method::GET, &good).await?, "card.png", "image/png", 86_400)?;
    let found = proxy.round_trips() - before;
    ensure!(found == 2, "{found} round trips for a file");
    proxy.hold(None);
    far.until_rows(&near.account, "true", 2).await
}
