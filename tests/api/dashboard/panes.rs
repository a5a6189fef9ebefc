//! The panes of the editor and the playground, and their options, in a real browser.

use platen_harness::browser::Theme;

use super::{
    playground::{open, playground},
    support::{Person, accept_invite, choose, new_email, owner_page, render},
};
use crate::prelude::*;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::any_database("dashboard/panes/stay_in_view", in_view),
        Case::any_database("dashboard/panes/are_tabs", tabs),
        Case::any_database("dashboard/panes/parts_of_a_template", parts),
        Case::any_database("dashboard/options/presets_switches_and_margins", options),
        Case::any_database("dashboard/options/errors_come_and_go_with_their_cause", problems),
        Case::any_database("dashboard/playground/a_template_is_found_by_name", by_name),
        Case::any_database("dashboard/playground/opens_a_request_of_the_list", requests),
    ]
}

/// Whether all of an element is in the viewport, from left to right and at least `part` of its height.
fn is_in_view(selector: &str) -> String {
    format!(
        "((b) => b.width > 0 && b.left >= 0 && b.right <= innerWidth && b.top >= 0 && b.top < innerHeight)\
         (document.querySelector('{selector}').getBoundingClientRect())"
    )
}

async fn in_view(stage: Stage) -> Result<()> {
    let (app, _, page) = owner_page(&stage, Quota::Of(1)).await?;
    page.go(&format!("{}/dashboard/templates/new?starter=email", app.base_url)).await?;
    page.frames_show("Thank you for your order").await?;
    for path in ["", "playground"] {
        if !path.is_empty() {
            open(&app, &page, "").await?;
        }
        page.set_viewport(1440, 900, Theme::Light).await?;
        for y in [0, 400, 100_000] {
            page.eval(&format!("scrollTo(0, {y})")).await?;
            for selector in [".bar .tabs", ".bar button:not([role])", "#preview-pane"] {
                let is_in_view = page.wait(&is_in_view(selector)).await;
                is_in_view.with_context(|| format!("{path}: {selector} at {y}"))?;
            }
        }
        page.set_viewport(390, 844, Theme::Light).await?;
        for y in [0, 400, 100_000] {
            page.eval(&format!("scrollTo(0, {y})")).await?;
            ensure!(page.eval(&is_in_view(".bar .tabs")).await? == true, "{path}: the tabs at {y}, narrow");
        }
        // One tap away, from its beginning, and back where one was.
        page.eval("scrollTo(0, 300)").await?;
        let shown = "[...document.querySelectorAll('[data-tab]')].filter((it) => it.checkVisibility()).map((it) => it.id).join()";
        for (pane, place) in
            [("preview", is_in_view("#preview-pane")), ("edit", "scrollY === 300".to_owned())]
        {
            page.click(&format!("#{pane}-pane-tab")).await?;
            ensure!(page.text(shown).await? == format!("{pane}-pane"), "{}", page.text(shown).await?);
            ensure!(page.eval(&place).await? == true, "{path}: {pane} is at {}", page.eval("scrollY").await?);
        }
    }
    Ok(())
}

async fn tabs(stage: Stage) -> Result<()> {
    let app = &*stage.real_service().await?;
    let page = Browser::start().await?.page().await?;
    playground(app, &page, &new_email("pg")).await?;
    let selected = "(() => {
        const tabs = [...document.querySelectorAll('[role=tab]')].filter((tab) => !tab.hidden);
        const chosen = tabs.filter((tab) => tab.ariaSelected === 'true' && tab.tabIndex === 0);
        const pane = document.getElementById(chosen[0].getAttribute('aria-controls'));
        const isShown = pane.checkVisibility() && pane.role === 'tabpanel' && pane.getAttribute('aria-labelledby') === chosen[0].id;
        return `${chosen.length} ${chosen[0].textContent} ${isShown} of ${tabs.length}`;
    })()";
    ensure!(page.text(selected).await? == "1 Preview true of 3", "{}", page.text(selected).await?);
    page.eval("document.querySelector('#preview-pane-tab').focus()").await?;
    for (key, tab) in [
        ("ArrowRight", "Result"),
        ("End", "Request"),
        ("ArrowRight", "Preview"),
        ("ArrowLeft", "Request"),
        ("Home", "Preview"),
    ] {
        let press = format!(
            "void document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {{ key: '{key}', bubbles: true, cancelable: true }}))"
        );
        page.eval(&press).await?;
        ensure!(
            page.text(selected).await? == format!("1 {tab} true of 3"),
            "{key}: {}",
            page.text(selected).await?
        );
        ensure!(page.text("document.activeElement.textContent").await? == tab, "the focus after {key}");
    }
    // A result is shown, also where there is room for one pane only.
    render(&page).await?;
    page.wait("document.querySelector('#rendered img')?.checkVisibility()").await?;
    page.set_viewport(390, 844, Theme::Light).await?;
    page.click("#edit-pane-tab").await?;
    ensure!(page.text(selected).await? == "1 Edit true of 4", "{}", page.text(selected).await?);
    render(&page).await?;
    page.wait("document.querySelector('#rendered img')?.checkVisibility()").await?;
    // An error is shown at its field, which is in another pane.
    choose(&page, "scale", "").await?;
    choose(&page, "format", "pdf").await?;
    choose(&page, "scale", "9").await?;
    render(&page).await?;
    page.wait("document.activeElement.name === 'scale' && document.activeElement.checkVisibility()").await?;
    ensure!(page.eval(&is_in_view("#render-status")).await? == true, "the message is out of view");
    page.shows("\"scale\" must be a number from 0.1 to 2").await
}

async fn parts(stage: Stage) -> Result<()> {
    let (app, _, page) = owner_page(&stage, Quota::Of(1)).await?;
    let new = format!("{}/dashboard/templates/new?starter=email", app.base_url);
    page.go(&new).await?;
    page.set_viewport(1440, 900, Theme::Light).await?;
    page.frames_show("Thank you for your order").await?;
    let shown = "[...document.querySelectorAll('[data-part]')].filter((it) => it.checkVisibility()).map((it) => it.id).join()";
    ensure!(page.text(shown).await? == "html-part", "{}", page.text(shown).await?);
    let is_high = "document.querySelector('#html-editor').clientHeight > innerHeight / 2 \
                   && document.querySelector('#template-form').clientHeight < innerHeight";
    ensure!(page.eval(is_high).await? == true, "the editor does not fill the window");
    page.click("#values-part-tab").await?;
    ensure!(page.text(shown).await? == "values-part", "{}", page.text(shown).await?);
    page.fill("#sample-headline", "Half a year").await?;
    page.frames_show("Half a year").await?;

    // The divider is kept for other pages, and leaves room for both sides.
    let width = "Math.round(100 * document.querySelector('#edit-pane').clientWidth / document.querySelector('.editor').clientWidth)";
    let move_to = |x: &str| {
        format!(
            "(() => {{
                const divider = document.querySelector('.divider');
                divider.setPointerCapture = () => {{}};
                divider.hasPointerCapture = () => true;
                divider.dispatchEvent(new PointerEvent('pointermove', {{ clientX: {x} }}));
                return {width};
            }})()"
        )
    };
    let middle =
        "((box) => box.left + box.width * 0.65)(document.querySelector('.editor').getBoundingClientRect())";
    for (x, [least, most]) in [(middle, [61, 66]), ("0", [22, 25]), ("innerWidth", [73, 75])] {
        let found = page.eval(&move_to(x)).await?.as_i64().context("a width")?;
        ensure!((least..=most).contains(&found), "{found} % with the divider at {x}");
    }
    page.eval("document.querySelector('.divider').focus()").await?;
    page.eval(
        "void document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowLeft' }))",
    )
    .await?;
    page.go(&new).await?;
    ensure!(page.text("document.querySelector('.divider').ariaValueNow").await? == "70", "the divider moved");

    // What is refused is shown.
    choose(&page, "format", "pdf").await?;
    choose(&page, "scale", "9").await?;
    page.eval("document.querySelector('#template-form').requestSubmit()").await?;
    page.shows("An option is not valid").await?;
    page.wait(&format!("{shown} === 'options-part'")).await
}

/// The entries of the list of options that are set.
const SET: &str =
    "[...document.querySelectorAll('.changed-options li')].map((it) => it.firstChild.textContent).join(', ')";

async fn options(stage: Stage) -> Result<()> {
    let (app, _, page) = owner_page(&stage, Quota::Of(1)).await?;
    page.go(&format!("{}/dashboard/templates/new", app.base_url)).await?;
    page.wait("document.querySelector('#html-editor')").await?;
    let set = async |expected: &str| {
        page.wait(&format!("{SET} === {}", json!(expected))).await.with_context(|| expected.to_owned())
    };
    set("").await?;
    page.click("#options-part-tab").await?;
    page.shows("No option is set.").await?;
    let preset = |name: &str| {
        format!(
            "void [...document.querySelectorAll('[data-preset]')].find((it) => it.textContent === '{name}').click()"
        )
    };
    page.eval(&preset("A4 document")).await?;
    set("format pdf, pdfFormat A4, printBackground true, margin 20mm").await?;
    page.shows("of 210 × 297 mm.").await?;
    page.eval(&preset("Label")).await?;
    set("format pdf, printBackground true, margin 0, pdfWidth 100mm, pdfHeight 150mm").await?;
    page.shows("About 1 page of 100 × 150 mm.").await?;
    page.eval(&preset("Full page")).await?;
    set("format png, fullPage true").await?;
    page.shows("The full page: 1280 ×").await?;
    ensure!(page.eval("document.querySelectorAll('[data-preset][aria-pressed=true]').length").await? == 1);
    // Only what fits the format.
    ensure!(page.eval("document.querySelector('[name=landscape]').closest('.option').hidden").await? == true);
    choose(&page, "format", "pdf").await?;
    set("format pdf").await?;
    ensure!(page.eval("document.querySelector('[name=fullPage]').closest('.option').hidden").await? == true);
    // Switches: what they show without a value is not given.
    for (option, value) in [("landscape", "true"), ("javaScript", "false")] {
        let toggle = format!("#option-{option}-switch");
        page.click(&toggle).await?;
        set(&format!("format pdf, {option} {value}")).await?;
        ensure!(page.text(&format!("document.querySelector('[name={option}]').value")).await? == value);
        page.click(&toggle).await?;
        set("format pdf").await?;
    }
    // One margin, or one for each side.
    page.eval("document.querySelectorAll('details').forEach((it) => { it.open = true })").await?;
    page.fill("[name=margin]", "2cm").await?;
    set("format pdf, margin 2cm").await?;
    page.fill("[name='margin.top']", "3cm").await?;
    set("format pdf, margin 3cm 2cm 2cm 2cm").await?;
    ensure!(page.value("[name=margin]").await?.is_empty());
    page.fill("[name=margin]", "1cm").await?;
    set("format pdf, margin 1cm").await?;
    // An entry is removed by its button, and opens its field by its name.
    page.eval("document.querySelector('[name=margin]').closest('.group').open = false").await?;
    page.click(".changed-options [data-field=margin] button").await?;
    page.wait("document.activeElement.name === 'margin' && document.activeElement.checkVisibility()").await?;
    page.click(".changed-options [aria-label='Remove margin']").await?;
    set("format pdf").await?;
    page.click("#option-landscape-switch").await?;
    page.fill("#name", "Options").await?;
    page.press("Create template").await?.shows("Template created.").await?;
    set("format pdf, landscape true").await?;
    ensure!(page.eval("document.querySelector('#option-landscape-switch').checked").await? == true);
    page.click("#options-part-tab").await?;
    // Help is behind a button.
    let help = "document.querySelector('[data-field=format] .help .hint').checkVisibility()";
    ensure!(page.eval(help).await? == false);
    page.click("[data-field=format] .help summary").await?;
    page.wait(help).await
}

async fn problems(stage: Stage) -> Result<()> {
    let (app, _, page) = owner_page(&stage, Quota::Of(1)).await?;
    page.go(&format!("{}/dashboard/templates/new", app.base_url)).await?;
    page.wait("document.querySelector('#html-editor')").await?;
    let message = "\"scale\" must be a number from 0.1 to 2.";
    let shown = "[document.querySelector('#option-scale-error').hidden, document.querySelector('[name=scale]').hasAttribute('aria-invalid'), \
        document.querySelector('.changed-options .invalid')?.dataset.field ?? '', document.querySelector('#render-status').textContent].join('; ')";
    choose(&page, "format", "pdf").await?;
    choose(&page, "scale", "9").await?;
    page.wait(&format!("{shown} === {}", json!(format!("false; true; scale; {message}")))).await?;
    choose(&page, "scale", "1.5").await?;
    page.wait(&format!("{shown} === 'true; false; ; '")).await?;
    // The cause may be another field.
    choose(&page, "scale", "9").await?;
    page.wait(&format!("{shown} === {}", json!(format!("false; true; scale; {message}")))).await?;
    page.fill("#name", "Wrong").await?;
    page.press("Create template").await?.shows("The template is not saved.").await?;
    page.wait(&format!("{shown}.startsWith('false; true; scale')")).await?;
    choose(&page, "scale", "").await?;
    page.wait("!document.querySelector('#options-error')").await?;
    page.wait(&format!("{shown} === 'true; false; ; '")).await?;
    page.press("Create template").await?.shows("Template created.").await
}

async fn by_name(stage: Stage) -> Result<()> {
    let app = &*stage.real_service().await?;
    let account = app.operator.account(Quota::Of(5)).await?;
    let page = Browser::start().await?.page().await?;
    accept_invite(&page, app, &new_email("pg"), &["--account", &account.id]).await?;
    let mut person = Person::of(app, &account).await?;
    let mut ids = Vec::new();
    for html in ["<p>first {{ x }}</p>", "<p>second {{ x }}</p>"] {
        let fields = [
            ("name", "An invoice"),
            ("html", html),
            ("sample.x", "value"),
            ("format", "pdf"),
            ("margin", "3cm"),
            ("printBackground", "true"),
            ("headerHtml", "<b>head of {{ x }}</b> <i class=pageNumber></i>"),
        ];
        person.get("/dashboard/templates/new").await?.is(200)?;
        let created = person.post("/dashboard/templates/new", &fields).await?.is(303)?;
        ids.push(super::support::between(created.location(), "/dashboard/templates/", "?")?);
    }
    open(app, &page, "").await?;
    page.eval("void document.querySelector('[name=source][value=template]').click()").await?;
    let suggested =
        page.text("[...document.querySelectorAll('#templates option')].map((it) => it.value).join()").await?;
    for id in &ids {
        ensure!(suggested.contains(&format!("An invoice · {id}")), "{suggested}");
    }
    choose(&page, "templateId", &format!("An invoice · {}", ids[1])).await?;
    page.frames_show("second value").await?;
    page.in_frames("[...document.documentElement.children].some((it) => it.shadowRoot?.textContent === 'head of value 1')").await?;
    page.wait(&format!(
        "document.querySelector('#snippet-curl').textContent.includes({})",
        json!(format!("\"{}\"", ids[1]))
    ))
    .await?;
    // The format is that of the template, and so are the controls and what they show.
    ensure!(page.value("[name=format]").await?.is_empty());
    ensure!(
        page.eval("document.querySelector('[name=landscape]').closest('.option').hidden").await? == false
    );
    ensure!(page.text("document.querySelector('[name=margin]').placeholder").await? == "3cm");
    ensure!(page.eval("document.querySelector('#option-printBackground-switch').checked").await? == true);
    page.shows("of 210 × 297 mm.").await?;
    // A value that differs from the template's is given.
    page.click("#option-printBackground-switch").await?;
    page.wait("document.querySelector('#snippet-curl').textContent.includes('\"printBackground\": false')")
        .await?;
    render(&page).await?;
    page.shows("Rendered in").await
}

async fn requests(stage: Stage) -> Result<()> {
    let app = &*stage.real_service().await?;
    let account = app.operator.account(Quota::Of(5)).await?;
    let page = Browser::start().await?.page().await?;
    accept_invite(&page, app, &new_email("pg"), &["--account", &account.id]).await?;
    let mut person = Person::of(app, &account).await?;
    person.get("/dashboard/templates/new").await?.is(200)?;
    let template = person.new_template("Kept", "<p>{{ x }}</p>").await?;
    let target = app.target(&account);
    target
        .render_template(&json!({ "templateId": template, "variables": { "x": 1 }, "format": "webp" }))
        .send()
        .await?
        .file("image/webp")?;
    target.render(&json!({ "url": "https://127.0.0.1.nip.invalid/path", "format": "pdf" })).send().await?;
    let open_request = async |id: String| {
        page.go(&format!("{}/dashboard/requests/{id}", app.base_url)).await?;
        page.press("Open in the playground").await?;
        page.wait("document.querySelector('#render')?.textContent === 'Render'").await
    };
    let find = async |what: &str| {
        let sql = format!("SELECT id FROM attempts WHERE account_id = '{}' AND {what}", account.id);
        wait::until_some("the row of a request", async || app.execute(&sql).await).await
    };
    let source = "document.querySelector('[name=source]:checked').value";
    open_request(find("template_id IS NOT NULL").await?.to_string()).await?;
    ensure!(page.text(source).await? == "template");
    ensure!(page.value("[name=templateId]").await? == format!("Kept · {template}"));
    ensure!(page.value("[name=format]").await? == "webp");
    open_request(find("host IS NOT NULL").await?.to_string()).await?;
    ensure!(page.text(source).await? == "url");
    ensure!(page.value("[name=url]").await? == "https://127.0.0.1.nip.invalid/");
    ensure!(page.value("[name=format]").await? == "pdf");
    Ok(())
}
