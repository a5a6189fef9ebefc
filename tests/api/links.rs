//! Links: signed addresses, which may be called without a key, and not changed without the secret.

mod cache;
mod limits;

use http::{Method, header};
use platen_harness::{client::ErrorBody, operator::text};
use platen_shared::{
    job::Source,
    key::{ApiKey, RANDOM_BYTES},
    link::{LinkFile, LinkId, LinkSecret},
    refusal::FirstError,
};

use crate::database::{NO_SERVER, is_file as is_file_database};
use crate::prelude::*;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::own_server("links/a_file_is_rendered_and_counted_once", files),
        Case::own_server("links/what_is_not_signed_writes_nothing", unsigned),
        Case::own_server("links/another_spelling_is_redirected", spellings),
        Case::own_server("links/values_are_those_of_the_template", values),
        Case::own_server("links/the_limit_of_a_day_is_exact", limits::daily_limit),
        Case::own_server("links/the_limits_of_the_account_hold", limits::limits),
        Case::own_server("links/are_rolled_disabled_and_deleted", limits::changes),
        Case::own_server("links/a_cache_in_front_keeps_files", cache::keeps_files)
            .not_on_spin("the cache is the same"),
        Case::own_server("links/none_is_a_key", no_key),
        Case::own_server("links/errors_say_nothing_about_the_page", errors),
        Case::own_server("database/an_address_of_a_link_takes_one_read", limits::round_trips)
            .except(is_file_database, NO_SERVER),
        Case::own_server("claims_ahead/a_link_is_refused_at_its_claim", limits::claims_ahead),
    ]
}

const MARKUP: &str = "<p>{{ title }} {{ author }}</p>";
const VALUES: [(&str, &str); 2] = [("title", "Größe + 1"), ("author", "O'Neil & <b>")];

struct Link {
    id: LinkId,
    secret: LinkSecret,
}

impl Link {
    async fn create(app: &TestApp, account: &Account, template: &str, more: &[&str]) -> Result<Self> {
        let create = ["link", "create", "--account", &account.id, "--template", template, "--name", "Card"];
        let created = app.operator.run(&[&create, more].concat()).await?;
        let id = LinkId::parse(&text(&created, "id")?).context("an id")?;
        let secret = LinkSecret::parse(&text(&created, "secret")?).context("a secret")?;
        Ok(Self { id, secret })
    }

    /// The signed path with its query.
    fn address(&self, file: &str, values: &[(&str, &str)]) -> Result<String> {
        let values = values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Ok(LinkFile::new(self.id.clone(), file, values)?.signed(&self.secret).spelling())
    }
}

struct Fixture {
    stand_in: StandIn,
    account: Account,
    target: Target,
    template: String,
    link: Link,
}

impl Fixture {
    async fn new(stage: &Stage, quota: Quota, more: &[&str]) -> Result<Self> {
        Self::of(stage.start_stand_in(None).await?, quota, MARKUP, more).await
    }

    async fn of(stand_in: StandIn, quota: Quota, markup: &str, more: &[&str]) -> Result<Self> {
        let (account, target) = stand_in.app.account(quota).await?;
        let template = stand_in.app.operator.template(&account.id, "Card", markup).await?;
        let link = Link::create(&stand_in.app, &account, &template, more).await?;
        Ok(Self { stand_in, account, target, template, link })
    }

    async fn get(&self, address: &str) -> Result<Answer> {
        call(&self.target, Method::GET, address).await
    }

    /// Checks that nothing was recorded and no job was sent beyond this many.
    async fn is_counted(&self, jobs: usize) -> Result<()> {
        let received = self.stand_in.farm.received_from(&self.account.id).len();
        ensure!(received == jobs, "{received} jobs instead of {jobs}");
        let attempts = self.stand_in.app.operator.attempts(&self.account.id).await?;
        ensure!(attempts == jobs as u64, "{attempts} attempts instead of {jobs}");
        Ok(())
    }
}

async fn call(target: &Target, method: Method, address: &str) -> Result<Answer> {
    let call = target.post(address, "").method(method);
    call.without(&header::AUTHORIZATION).without(&header::CONTENT_TYPE).send().await
}

/// Checks everything that the contract promises for a file of a link.
fn is_file(answer: &Answer, name: &str, content_type: &str, max_age: u32) -> Result<()> {
    ensure!(answer.status == 200, "expected a file, got {}", answer.summary());
    for (header, expected) in [
        ("content-type", content_type),
        ("content-disposition", &format!("inline; filename=\"{name}\"")),
        ("cache-control", &format!("public, max-age={max_age}")),
        ("x-content-type-options", "nosniff"),
        ("access-control-allow-origin", "*"),
    ] {
        ensure!(answer.header(header)? == expected, "{header} of {}", answer.summary());
    }
    says_nothing_else(answer)
}

/// No header is about the account or the page.
fn says_nothing_else(answer: &Answer) -> Result<()> {
    let known = |name: &str| {
        matches!(
            name,
            "content-type"
                | "content-disposition"
                | "cache-control"
                | "x-content-type-options"
                | "location"
                | "access-control-allow-origin"
                | "x-request-id"
                | "content-length"
                | "date"
                | "retry-after"
                | "transfer-encoding"
                | "connection"
                | "vary"
                | "server"
                | "allow"
        )
    };
    let other = answer.headers.keys().find(|name| !known(name.as_str()));
    ensure!(other.is_none(), "{other:?} of {}", answer.summary());
    Ok(())
}

/// Checks everything that the contract promises for an error of a link; its message.
fn is_error(answer: &Answer, status: u16, code: &str) -> Result<String> {
    ensure!(answer.status == status, "expected {status} {code}, got {}", answer.summary());
    let body = ErrorBody::read(status, &answer.body).with_context(|| answer.summary())?;
    ensure!(body.code.as_deref() == Some(code) && body.field.is_none(), "{code}: {}", answer.summary());
    ensure!(answer.header("cache-control")? == "no-store", "{}", answer.summary());
    ensure!(answer.header("content-type")? == "application/json", "{}", answer.summary());
    let has_retry_after = answer.headers.contains_key("retry-after");
    ensure!(has_retry_after == matches!(status, 429 | 503), "retry-after of {}", answer.summary());
    says_nothing_else(answer)?;
    Ok(body.error)
}

async fn files(stage: Stage) -> Result<()> {
    let fixture = Fixture::new(&stage, Quota::Of(100), &["--format", "png,pdf", "--max-age", "60"]).await?;
    let (app, account) = (&fixture.stand_in.app, &fixture.account);
    let png = fixture.link.address("card.png", &VALUES)?;
    let answer = fixture.get(&png).await?;
    is_file(&answer, "card.png", "image/png", 60)?;
    ensure!(answer.body == platen_harness::farm::FILE, "another file");
    let pdf = fixture.link.address("a-1.pdf", &VALUES)?;
    is_file(&fixture.get(&pdf).await?, "a-1.pdf", "application/pdf", 60)?;
    let jobs = fixture.stand_in.farm.received_from(&account.id);
    let Source::Html(html) = &jobs[0].job.source else { anyhow::bail!("a job without markup") };
    let filled = "<p>Größe + 1 O&#39;Neil &amp; &lt;b&gt;</p>";
    ensure!(html.as_str() == filled, "{}", html.as_str());
    fixture.is_counted(2).await?;
    let head = call(&fixture.target, Method::HEAD, &png).await?;
    is_file(&head, "card.png", "image/png", 60)?;
    ensure!(head.body.is_empty() && !head.headers.contains_key("content-length"), "{}", head.summary());
    fixture.is_counted(2).await?;
    // Usage and requests show it as they show a key.
    let of_link = format!(
        "key_id = '{}' AND key_name = 'Card' AND endpoint = 'link' AND template_id = '{}' AND counted AND status = 200",
        fixture.link.id, fixture.template
    );
    app.until_rows(account, &of_link, 2).await?;
    let used = format!("SELECT attempts FROM usage_parts WHERE key_id = '{}'", fixture.link.id);
    ensure!(app.execute(&used).await? == Some(2), "the usage of the link");
    let listed = app.operator.run(&["link", "list", "--account", &account.id]).await?;
    ensure!(listed[0]["attempts_today"] == 2 && listed[0].get("secret").is_none(), "{listed}");
    let post = fixture.target.post(&png, "").send().await?;
    ensure!(post.status == 405 && post.header("allow")? == "GET, HEAD", "{}", post.summary());
    fixture.is_counted(2).await
}

async fn unsigned(stage: Stage) -> Result<()> {
    let fixture = Fixture::new(&stage, Quota::Of(100), &["--format", "png"]).await?;
    let (app, account) = (&fixture.stand_in.app, &fixture.account);
    let other = Link::create(app, account, &fixture.template, &[]).await?;
    let good = fixture.link.address("card.png", &VALUES)?;
    let other_secret = Link { id: fixture.link.id.clone(), secret: other.secret.clone() };
    let unknown = Link { id: LinkId::from_random([7; 32]), secret: other.secret };
    let id = fixture.link.id.as_str();
    let wrong = "invalid_signature";
    for (address, status, code) in [
        // Another link's, truncated, changed.
        (good.replace(id, other.id.as_str()), 403, wrong),
        (other_secret.address("card.png", &VALUES)?, 403, wrong),
        (good.replace("card.png", "cards.png"), 403, wrong),
        (good.replace("O%27Neil", "O%27Neal"), 403, wrong),
        (good.split('?').next().unwrap_or_default().to_owned(), 403, wrong),
        (good.replace(".png", ".webp"), 403, wrong),
        (format!("{good}&width=7680"), 403, wrong),
        (good.replace("/card.png", "A/card.png"), 403, wrong),
        (format!("/v1/links/{id}//card.png"), 403, wrong),
        (unknown.address("card.png", &VALUES)?, 404, "not_found"),
        (format!("/v1/links/{id}x/{wrong}/card.png"), 404, "not_found"),
        (good.replace("/card.png", "/Card.png"), 404, "not_found"),
        (good.replace("/card.png", "/card.gif"), 404, "not_found"),
        ("/v1/links/".to_owned(), 404, "not_found"),
        // Signed, but in a format that the link does not have.
        (fixture.link.address("card.webp", &VALUES)?, 404, "not_found"),
        (format!("{good}&title=2"), 400, "invalid_request"),
        (format!("{good}%F"), 400, "invalid_request"),
        (format!("{good}%FF"), 400, "invalid_request"),
        (format!("{good}{}", "x".repeat(8_000)), 400, "invalid_request"),
    ] {
        for method in [Method::GET, Method::HEAD] {
            let answer = call(&fixture.target, method.clone(), &address).await?;
            if method == Method::GET {
                is_error(&answer, status, code).with_context(|| address.clone())?;
            } else {
                ensure!(answer.status == status && answer.body.is_empty(), "{address}: {}", answer.summary());
            }
        }
    }
    fixture.is_counted(0).await?;
    ensure!(app.rows(account, "true").await? == 0, "a refused address has a row");
    is_file(&fixture.get(&good).await?, "card.png", "image/png", 86_400)
}

async fn spellings(stage: Stage) -> Result<()> {
    let fixture = Fixture::new(&stage, Quota::Of(100), &["--format", "png"]).await?;
    let good = fixture.link.address("card.png", &[("title", "Größe + 1"), ("author", "O'Neil")])?;
    let (path, query) = good.split_once('?').context("a query")?;
    ensure!(query == "author=O%27Neil&title=Gr%C3%B6%C3%9Fe%20%2B%201", "{query}");
    for query in [
        "title=Gr%C3%B6%C3%9Fe%20%2B%201&author=O%27Neil",
        "author=O'Neil&title=Gr%C3%B6%C3%9Fe+%2B+1",
        "author=O%27Neil&title=Gr%c3%b6%c3%9fe%20%2b%201",
        "author=O%27Neil&title=Gr%C3%B6%C3%9Fe%20%2B%201&",
        "%61uthor=O%27Neil&title=Gr%C3%B6%C3%9Fe%20%2B%201",
    ] {
        for method in [Method::GET, Method::HEAD] {
            let answer = call(&fixture.target, method, &format!("{path}?{query}")).await?;
            ensure!(answer.status == 308, "{query}: {}", answer.summary());
            ensure!(answer.header("location")? == good, "{query}: {}", answer.summary());
            says_nothing_else(&answer)?;
        }
    }
    let answer = fixture.get(&good.replace("card", "%63ard").replacen("lnk_", "lnk%5f", 1)).await?;
    ensure!(answer.status == 308 && answer.header("location")? == good, "{}", answer.summary());
    let empty = Fixture::of(stage.start_stand_in(None).await?, Quota::Of(1), "x", &[]).await?;
    let plain = empty.link.address("card.png", &[])?;
    let answer = empty.get(&format!("{plain}?")).await?;
    ensure!(answer.status == 308 && answer.header("location")? == plain, "{}", answer.summary());
    fixture.is_counted(0).await?;
    is_file(&fixture.get(&good).await?, "card.png", "image/png", 86_400)
}

async fn values(stage: Stage) -> Result<()> {
    let fixture = Fixture::new(&stage, Quota::Of(100), &["--format", "png"]).await?;
    let (app, account) = (&fixture.stand_in.app, &fixture.account);
    let one = fixture.link.address("card.png", &VALUES[..1])?;
    is_error(&fixture.get(&one).await?, 400, "missing_template_variable")?;
    // None is an option of a render.
    for name in ["width", "html", "url", "format", "titel"] {
        let more = [VALUES.as_slice(), &[(name, "1")]].concat();
        let message =
            is_error(&fixture.get(&fixture.link.address("card.png", &more)?).await?, 400, "invalid_request")?;
        ensure!(!message.contains(name), "{message}");
    }
    fixture.is_counted(0).await?;
    app.until_rows(account, "rejected AND NOT counted", 6).await?;
    let jinja = "{% set y = 1 %}{{ title }}{% for x in range(y) %}{{ author | upper }}{% endfor %}";
    let template = app.operator.jinja_template(&account.id, "Jinja", jinja).await?;
    let link = Link::create(app, account, &template, &[]).await?;
    is_file(&fixture.get(&link.address("card.png", &VALUES)?).await?, "card.png", "image/png", 86_400)?;
    for name in ["y", "x", "range", "data"] {
        let more = [VALUES.as_slice(), &[(name, "1")]].concat();
        is_error(&fixture.get(&link.address("card.png", &more)?).await?, 400, "invalid_request")?;
    }
    fixture.is_counted(1).await
}

async fn no_key(stage: Stage) -> Result<()> {
    let fixture = Fixture::new(&stage, Quota::Of(100), &[]).await?;
    let address = fixture.link.address("card.png", &VALUES)?;
    let id = fixture.link.id.as_str();
    let body = json!({ "templateId": fixture.template, "variables": { "title": "1", "author": "2" } });
    for text in [id, fixture.link.secret.expose(), &id.replace("lnk_", "plt_")] {
        let target = fixture.target.with_key(text);
        target.render_template(&body).send().await?.error(401, "Invalid API key")?;
        target.minimal().send().await?.error(401, "Invalid API key")?;
    }
    // A link with the header of a key makes no key known.
    let made_up = ApiKey::from_random(rand::random::<[u8; RANDOM_BYTES]>());
    for _ in 0..2 {
        let call = fixture.target.post(&address, "").method(Method::GET).key(made_up.expose());
        is_file(&call.without(&header::CONTENT_TYPE).send().await?, "card.png", "image/png", 86_400)?;
        let call = fixture.target.post(RENDER, "{").key(made_up.expose());
        call.send().await?.error(401, "Invalid API key")?;
    }
    // Nor can what the commands take for a key be a link.
    for command in ["disable", "delete", "roll"] {
        ensure!(fixture.stand_in.app.operator.run(&["key", command, id]).await.is_err(), "key {command}");
    }
    let keys = fixture.stand_in.app.operator.run(&["key", "list", "--account", &fixture.account.id]).await?;
    ensure!(keys.as_array().is_some_and(|keys| keys.len() == 1), "{keys}");
    fixture.is_counted(2).await
}

async fn errors(stage: Stage) -> Result<()> {
    let fixture = Fixture::new(&stage, Quota::Of(100), &[]).await?;
    let address = fixture.link.address("card.png", &VALUES)?;
    let message = "ReferenceError: secret of the page".into();
    let page = Refusal::FunctionFailed { message, first_error: FirstError(None) };
    for (behaviour, status, code) in [
        (Behaviour::Refuse(page), 422, "function_failed"),
        (Behaviour::Refuse(Refusal::QueueFull), 503, "renderer_busy"),
        (Behaviour::Answer(502, "text/html", "<p>proxy</p>"), 502, "renderer_failed"),
        (Behaviour::HangUp, 502, "renderer_failed"),
    ] {
        fixture.stand_in.farm.behave(&fixture.account.id, behaviour);
        let message = is_error(&fixture.get(&address).await?, status, code)?;
        ensure!(!message.contains("secret"), "{message}");
    }
    Ok(())
}
