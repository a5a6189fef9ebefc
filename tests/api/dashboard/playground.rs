//! The playground: what it shows is what it sends, and what is entered is not lost.

use image::codecs::png::{CompressionType, FilterType, PngEncoder};
use platen_harness::{browser::Theme, settings::tests_dir, wait::until_true};

use super::support::{Person, accept_invite, between, choose, new_email, person, render};
use crate::prelude::*;
use crate::snippets::{self, LANGUAGES, Language};

pub(crate) fn cases() -> Vec<Case> {
    let programs = LANGUAGES.iter().map(|language| {
        let name = format!("dashboard/playground/programs_run/{}", id(language));
        language.where_it_sends(Case::any_database(name, move |stage| program_runs(stage, language)))
    });
    let cases = [
        Case::any_database("dashboard/playground/saves_markup_as_a_template", save_as_template),
        Case::any_database("dashboard/playground/programs_show_what_was_sent", sent),
        Case::any_database("dashboard/playground/every_option_has_a_control", controls),
        Case::any_database("dashboard/playground/errors_are_at_their_control", errors),
        Case::any_database("dashboard/playground/renders_every_source", sources),
        Case::any_database("dashboard/playground/shows_the_picture", picture),
        Case::any_database("dashboard/playground/begins_with_an_invoice", invoice),
    ];
    programs.chain(cases).collect()
}

/// The name of a language in the page.
fn id(language: &Language) -> &'static str {
    match language.block {
        "sh" => "curl",
        "js" => "javascript",
        name => name,
    }
}

/// A browser page at the playground of a new account.
pub(super) async fn playground(app: &Service, page: &Page, email: &str) -> Result<()> {
    let account = app.operator.account(Quota::Of(20)).await?;
    accept_invite(page, app, email, &["--account", &account.id]).await?;
    open(app, page, "").await
}

pub(super) async fn open(app: &Service, page: &Page, query: &str) -> Result<()> {
    page.go(&format!("{}/dashboard/playground{query}", app.base_url)).await?;
    page.wait("document.querySelector('#render')?.textContent === 'Render'").await
}

/// The first steps lead to a playground that renders an invoice.
async fn invoice(stage: Stage) -> Result<()> {
    let app = &*stage.real_service().await?;
    let page = Browser::start().await?.page().await?;
    let account = app.operator.account(Quota::Of(20)).await?;
    accept_invite(&page, app, &new_email("pg"), &["--account", &account.id]).await?;
    page.go(&format!("{}/dashboard", app.base_url)).await?;
    page.follow("a[href*='example=invoice']").await?;
    page.wait("document.querySelector('#render')?.textContent === 'Render'").await?;
    page.eval(RECORD).await?;
    render(&page).await?;
    page.wait("document.querySelector('#rendered').innerText.includes('B, 1 page')").await?;
    let sent = page.eval("window.sent").await?;
    let body: Value = serde_json::from_str(sent[0][1].as_str().context("a body")?)?;
    let html = std::fs::read_to_string(tests_dir().join("../examples/invoice.html"))?;
    ensure!(
        body == json!({ "html": html, "format": "pdf", "printBackground": true }),
        "another request: {body}"
    );
    Ok(())
}

/// Records the bodies of requests to the API in `window.sent`.
pub(super) const RECORD: &str = "void (() => {
    const send = window.fetch;
    window.sent = [];
    window.fetch = (address, init) => {
      if (String(address).startsWith('/v1/')) window.sent.push([address, init.body]);
      return send(address, init);
    };
})()";

async fn sent(stage: Stage) -> Result<()> {
    let app = &*stage.real_service().await?;
    let page = Browser::start().await?.page().await?;
    playground(app, &page, &new_email("pg")).await?;
    page.eval(RECORD).await?;
    page.fill("#option-html", "<h1>It's `${1 + 1}` \\ \"quoted\"</h1>\n<p>€ 10.50</p>").await?;
    for (option, value) in [
        ("format", "pdf"),
        ("margin.top", "2cm"),
        ("landscape", "true"),
        ("scale", "0.50"),
        ("locale", "de-DE"),
    ] {
        choose(&page, option, value).await?;
    }
    render(&page).await?;
    // This browser shows no PDFs.
    page.wait(
        "!navigator.pdfViewerEnabled && document.querySelector('#rendered').innerText.includes('B, 1 page')",
    )
    .await?;
    page.shows("19 attempts are left this month.").await?;
    let sent = page.eval("window.sent").await?;
    let body = sent[0][1].as_str().context("a body")?;
    ensure!(sent[0][0] == "/v1/render", "{sent}");
    let parsed: Value = serde_json::from_str(body)?;
    ensure!(
        parsed
            == json!({
                "html": "<h1>It's `${1 + 1}` \\ \"quoted\"</h1>\n<p>€ 10.50</p>", "format": "pdf", "landscape": true, "scale": 0.50,
                "margin": { "top": "2cm" }, "locale": "de-DE",
            }),
        "{parsed}"
    );
    ensure!(body.contains("0.50"), "the spelling of a number: {body}");
    for id in ["curl", "javascript", "python", "go", "php", "rust"] {
        let program = page.text(&format!("document.querySelector('#snippet-{id}').textContent")).await?;
        ensure!(
            program.contains(body) && program.contains(&app.base_url),
            "{id} has another body: {program}"
        );
    }
    // Options of another format are hidden, and not sent.
    choose(&page, "format", "png").await?;
    page.wait("!document.querySelector('#snippet-curl').textContent.includes('landscape')").await?;
    ensure!(page.eval("document.querySelector('[name=landscape]').closest('.option').hidden").await? == true);
    render(&page).await?;
    page.wait("document.querySelector('#rendered img')?.naturalWidth === 1280").await?;
    let sent = page.eval("window.sent").await?;
    let parsed: Value = serde_json::from_str(sent[1][1].as_str().context("a body")?)?;
    ensure!(
        parsed["landscape"].is_null() && parsed["margin"].is_null() && parsed["locale"] == "de-DE",
        "{parsed}"
    );
    // The image is shown in the width of the page, and in its own.
    let width = "document.querySelector('#rendered img').getBoundingClientRect().width";
    let fitted = page.eval(width).await?.as_f64().context("a width")?;
    page.click("#rendered .row button").await?;
    ensure!(fitted < 1280.0 && page.eval(width).await? == 1280.0, "{fitted}");
    page.shows("1280 × 720 pixels").await
}

async fn save_as_template(stage: Stage) -> Result<()> {
    let app = &*stage.real_service().await?;
    let page = Browser::start().await?.page().await?;
    playground(app, &page, &new_email("pg")).await?;
    page.fill("#option-html", "<h1>For {{ name }}</h1>").await?;
    choose(&page, "format", "pdf").await?;
    choose(&page, "landscape", "true").await?;
    page.click("#save-as-template").await?;
    page.wait("document.querySelector('#template-form #html-editor') !== null").await?;
    page.frames_show("For").await?;
    page.fill("#sample-name", "Ada").await?;
    page.frames_show("For Ada").await?;
    page.fill("#name", "From the playground").await?;
    page.click("#save").await?;
    page.wait("location.search.includes('template-created') && document.querySelector('[name=landscape]')")
        .await?;
    let saved =
        "['format', 'landscape'].map((name) => document.querySelector(`[name=${name}]`).value).join()";
    ensure!(page.text(saved).await? == "pdf,true", "{}", page.text(saved).await?);
    ensure!(page.text("document.querySelector('#html').value").await? == "<h1>For {{ name }}</h1>");

    // What is not markup is no template.
    open(app, &page, "?url=https://example.com/").await?;
    page.wait("!document.querySelector('#save-as-template').checkVisibility()").await
}

async fn controls(stage: Stage) -> Result<()> {
    let (_, _, mut person) = person(&stage, Quota::Of(1)).await?;
    let page = person.get("/dashboard/playground").await?.is(200)?.body;
    let document = person.get("/v1/openapi.json").await?.is(200)?;
    let document: Value = serde_json::from_str(&document.body)?;
    let schemas = document["components"]["schemas"].as_object().context("schemas")?;
    let fields = ["RenderRequest", "TemplateRenderRequest"].iter().flat_map(|name| {
        schemas.get(*name).and_then(|schema| schema["properties"].as_object()).into_iter().flatten()
    });
    let mut count = 0;
    for (name, _) in fields {
        let has_control =
            page.contains(&format!("name=\"{name}\"")) || page.contains(&format!("name=\"{name}."));
        ensure!(has_control, "{name} has no control");
        count += 1;
    }
    ensure!(count > 60, "the document has only {count} fields");
    Ok(())
}

async fn program_runs(stage: Stage, language: &Language) -> Result<()> {
    let app = &*stage.real_service().await?;
    let (account, target) = app.account(Quota::Unlimited).await?;
    let mut person = Person::of(app, &account).await?;
    person.get("/dashboard/playground").await?.is(200)?;
    // In the form of `dashboard/src/playground/snippets.rs`, whose program in Rust is compiled.
    let small = "<h1>Playground</h1><p>\"#it's</p>".to_owned();
    let large = format!("<h1>Playground</h1><p>\"#it's</p><!-- {} -->", "'`${x}\\".repeat(4_000));
    for (html, is_large) in [(small, false), (large, true)] {
        let fields = [("source", "html"), ("html", html.as_str()), ("format", "pdf"), ("margin.top", "2cm")];
        let shown = person.post("/dashboard/playground/request", &fields).await?.is(200)?;
        let shown: Value = serde_json::from_str(&shown.body)?;
        ensure!(shown["readsFile"] == is_large, "{}", shown["readsFile"]);
        let file = person.post("/dashboard/playground/request.json", &fields).await?.is(200)?;
        ensure!(Some(file.body.as_str()) == shown["body"].as_str(), "the file has another body");
        let id = id(language);
        let program = shown["snippets"][id].as_str().with_context(|| id.to_owned())?;
        if id == "rust" && is_large {
            continue;
        }
        let directory = tempfile::tempdir()?;
        if is_large {
            std::fs::write(directory.path().join("request.json"), &file.body)?;
        }
        let compiled = env!("CARGO_BIN_EXE_playground");
        let output = snippets::run(language, (program, compiled), &target, directory.path())?;
        ensure!(output.status.success(), "{id}: {output:?}");
        let text = Pdf::parse(&std::fs::read(directory.path().join("file.pdf"))?)?.text()?;
        ensure!(text.contains("Playground") && text.contains("\"#it's"), "{id}: {text}");
    }
    Ok(())
}

async fn errors(stage: Stage) -> Result<()> {
    let app = &*stage.real_service().await?;
    let page = Browser::start().await?.page().await?;
    playground(app, &page, &new_email("pg")).await?;
    page.fill("#option-html", "<p>x</p>").await?;
    choose(&page, "format", "pdf").await?;
    for (option, value, message) in [
        ("margin.left", "1 parsec", "must be a length"),
        ("pageRanges", "5-2", "pageRanges"),
        ("timezone", "Mars/Olympus", "timezone"),
        ("pdfWidth", "100mm", "\"pdfHeight\" is required with \"pdfWidth\""),
    ] {
        choose(&page, option, value).await?;
        render(&page).await?;
        let control = if option == "pdfWidth" { "pdfHeight" } else { option };
        let shown = format!(
            "(() => {{ const field = document.querySelector('[name=\"{control}\"]'); \
             const line = document.getElementById(field.id + '-error'); \
             return field.getAttribute('aria-invalid') === 'true' && line.checkVisibility() && line.textContent.includes({}) \
             && document.activeElement === field && field.getAttribute('aria-describedby').includes(line.id); }})()",
            json!(message)
        );
        page.wait(&shown).await.with_context(|| format!("the error of {option}"))?;
        choose(&page, option, "").await?;
    }
    // An error that only the renderer finds.
    choose(&page, "pageRanges", "7").await?;
    render(&page).await?;
    page.wait("document.querySelector('#option-pageRanges-error').checkVisibility()").await?;
    page.shows("Nothing was rendered; this counts as one attempt.").await?;
    page.press("Show the request").await?.shows("422 Page failed").await?;
    ensure!(
        page.eval("document.querySelectorAll('#requests tbody tr').length").await? == 1,
        "other requests"
    );
    open(app, &page, "").await?;
    choose(&page, "pageRanges", "").await?;
    // Without a valid request there are no programs of one.
    page.eval("void document.querySelector('[name=source][value=url]').click()").await?;
    page.click("#request-pane-tab").await?;
    page.shows("The request is not valid yet.").await?;
    page.fill("#option-url", "http://127.0.0.1/").await?;
    render(&page).await?;
    page.wait("document.querySelector('#option-url-error').checkVisibility()").await?;
    page.eval("void document.querySelector('[name=source][value=template]').click()").await?;
    page.fill("#option-templateId", "tpl_unknown").await?;
    render(&page).await?;
    page.shows("The account has no template with this name or ID.").await
}

async fn sources(stage: Stage) -> Result<()> {
    let (app, account, mut person) = person(&stage, Quota::Of(5)).await?;
    let html = "<p>{{ a }} and {{ b }}</p>";
    let fields = [("name", "Two"), ("html", html), ("sample.a", "one"), ("sample.b", "two \"quoted\"")];
    let created = person.post("/dashboard/templates/new", &fields).await?.is(303)?;
    let id = between(created.location(), "/dashboard/templates/", "?")?;
    // The template of the address has its sample values.
    let page = person.get(&format!("/dashboard/playground?template={id}")).await?.is(200)?.body;
    ensure!(
        page.contains("two \\&#34;quoted\\&#34;") || page.contains("two \\&quot;quoted\\&quot;"),
        "{page}"
    );
    let samples = person.get(&format!("/dashboard/playground/template?id={id}")).await?.is(200)?;
    let samples: Value = serde_json::from_str(&samples.body)?;
    let variables = samples["variables"].as_str().context("variables")?;
    ensure!(
        serde_json::from_str::<Value>(variables)? == json!({ "a": "one", "b": "two \"quoted\"" }),
        "{variables}"
    );
    for fields in [
        vec![("source", "html"), ("html", "<p>x</p>"), ("width", "300"), ("height", "200")],
        vec![
            ("source", "template"),
            ("templateId", &*id),
            ("variables", variables),
            ("width", "300"),
            ("height", "200"),
        ],
    ] {
        let request = person.post("/dashboard/playground/render", &fields).await?.is(200)?;
        let request: Value = serde_json::from_str(&request.body)?;
        let text = |name: &str| request[name].as_str().map(str::to_owned).context("a text");
        let target = app.target(&account).with_key(&text("key")?);
        let body: Value = serde_json::from_str(&text("body")?)?;
        let sent = match text("path")?.as_str() {
            "/v1/render" => target.render(&body),
            "/v1/render/template" => target.render_template(&body),
            path => anyhow::bail!("{path}"),
        };
        sent.send().await?.file("image/png")?;
    }
    // Attempts of it are shown under the name of the key, which is not a key of the list.
    until_true("the attempts are recorded", async || {
        let page = person.get("/dashboard/requests").await?.body;
        Ok(page.matches("Render button").count() >= 2)
    })
    .await
}

/// A picture of the page is saved with `PLATEN_PICTURES`, for the README.
async fn picture(stage: Stage) -> Result<()> {
    let app = &*stage.real_service().await?;
    let page = Browser::start().await?.page().await?;
    page.set_viewport(1200, 720, Theme::Light).await?;
    playground(app, &page, &new_email("pg")).await?;
    let examples = tests_dir().join("../examples");
    let mut markup = std::fs::read_to_string(examples.join("certificate.html"))?;
    let request: Value = serde_json::from_slice(&std::fs::read(examples.join("certificate.json"))?)?;
    for (name, value) in request["variables"].as_object().context("variables")? {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        markup = markup
            .replace(&format!("{{{{{{{name}}}}}}}"), &value)
            .replace(&format!("{{{{{name}}}}}"), &value);
    }
    page.fill("#option-html", &markup).await?;
    choose(&page, "width", "794").await?;
    choose(&page, "height", "760").await?;
    render(&page).await?;
    page.wait("document.querySelector('#rendered img')?.naturalWidth === 794").await?;
    if let Some(folder) = std::env::var_os("PLATEN_PICTURES") {
        let picture = image::load_from_memory(&page.screenshot().await?)?.crop_imm(0, 0, 1200, 720);
        let file = std::fs::File::create(std::path::Path::new(&folder).join("playground.png"))?;
        // Smaller for a page of few colours than with a filter.
        let encoder = PngEncoder::new_with_quality(file, CompressionType::Best, FilterType::NoFilter);
        picture.into_rgb8().write_with_encoder(encoder)?;
    }
    Ok(())
}
