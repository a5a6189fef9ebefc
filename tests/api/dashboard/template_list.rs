//! The list of templates: search in all scripts, pages, and many templates. Templates to start from.

use super::support::{owner_page, percent, person};
use crate::prelude::*;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::any_database("dashboard/template_list/is_searched_without_regard_to_case_and_accents", search),
        Case::any_database("dashboard/template_list/has_pages", pages),
        Case::any_database("dashboard/starters_become_templates", starters),
    ]
}

async fn search(stage: Stage) -> Result<()> {
    let (_, _, mut person) = person(&stage, Quota::Of(1)).await?;
    let names = ["Rechnung Straße", "Café menu", "ΟΔΟΣ", "請求書", "Ünicode & <b>"];
    let mut ids = Vec::new();
    for name in names {
        ids.push(person.new_template(name, "<p>x</p>").await?);
    }
    for (text, found) in [
        ("STRASSE", 0),
        ("straße rech", 0),
        ("cafe", 1),
        ("οδός", 2),
        ("請求", 3),
        ("unicode", 4),
        ("& <B>", 4),
        (ids[2].as_str(), 2),
        (&ids[1].to_uppercase(), 1),
        (&ids[3][..12], 3),
    ] {
        let page = person.get(&format!("/dashboard/templates?q={}", percent(text))).await?.is(200)?.body;
        for (index, id) in ids.iter().enumerate() {
            let is_shown = page.contains(&format!("/dashboard/templates/{id}\""));
            ensure!(is_shown == (index == found), "{text}: {} is shown: {is_shown}", names[index]);
        }
    }
    let nothing = person.get("/dashboard/templates?q=%25").await?.is(200)?.body;
    ensure!(nothing.contains("No templates match"), "a percent sign is not a pattern: {nothing}");
    Ok(())
}

async fn pages(stage: Stage) -> Result<()> {
    let (app, account, mut person) = person(&stage, Quota::Of(1)).await?;
    person.new_template("The first", "<p>{{ name }}</p>").await?;
    let many = format!(
        "INSERT INTO templates (account_id, id, name, packed_html, options, placeholders, created_at, updated_at, samples, saved_by) \
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) \
         SELECT account_id, id || i, 'Letter ' || i, packed_html, options, placeholders, created_at, updated_at + i, samples, saved_by \
         FROM n, (SELECT * FROM templates WHERE account_id = '{}')",
        account.id
    );
    app.execute(&many).await?;
    let rows = |body: &str| body.matches("<td data-label=\"templateId\">").count();
    let began = Instant::now();
    let page = person.get("/dashboard/templates").await?.is(200)?.body;
    let listed = began.elapsed();
    ensure!(page.contains("1–50 of 5,001 templates") && rows(&page) == 50, "{page}");
    ensure!(page.contains(">Letter 5000</a>") && page.contains("?page=2\""), "{page}");
    let page = person.get("/dashboard/templates?page=101").await?.is(200)?.body;
    ensure!(
        page.contains("5,001–5,001 of 5,001") && page.contains(">The first</a>") && rows(&page) == 1,
        "{page}"
    );
    ensure!(!page.contains("rel=\"next\"") && page.contains("?page=100\""), "{page}");
    for wild in ["page=0", "page=-1", "page=99999999999999999999", "page=x", "page="] {
        person.get(&format!("/dashboard/templates?{wild}")).await?.is(200)?;
    }
    let began = Instant::now();
    let page = person.get("/dashboard/templates?q=LETTER+49").await?.is(200)?.body;
    println!("5,001 templates: {listed:?} to list, {:?} to search", began.elapsed());
    // 49, 490 to 499 and 4900 to 4999; the name has the words in any place.
    ensure!(page.contains(" templates</span>") && page.contains("q=LETTER+49&#38;page=2"), "{page}");
    let second = person.get("/dashboard/templates?q=LETTER+49&page=2").await?.is(200)?.body;
    ensure!(rows(&page) == 50 && rows(&second) == 50, "{} and {}", rows(&page), rows(&second));
    person.get("/dashboard/playground").await?.is(200)?;
    Ok(())
}

async fn starters(stage: Stage) -> Result<()> {
    let (app, _, page) = owner_page(&stage, Quota::Of(9)).await?;
    let new = format!("{}/dashboard/templates/new", app.base_url);
    page.go(&new).await?;
    let links = page.eval("[...document.querySelectorAll('.starters a')].map((a) => a.href)").await?;
    let links = links.as_array().context("links")?;
    ensure!(links.len() == 9, "{links:?}");
    for link in &links[1..] {
        page.go(link.as_str().context("a link")?).await?;
        // The stand-in farm fills no templates.
        page.wait("document.querySelector('#preview-size').textContent !== '' || document.querySelector('#language').value === 'jinja'").await?;
        page.press("Create template").await?.shows("Template created.").await?;
        page.wait("document.querySelector('#render').textContent === 'Render'").await?;
        let empty = page
            .eval(
                "document.querySelector('#language').value === 'jinja' ? Number(document.querySelector('#sample-data').value.length < 100) \
                 : [...document.querySelectorAll('[data-sample]')].filter((f) => f.value === '').length",
            )
            .await?;
        ensure!(empty == 0, "{link} has placeholders without a value");
    }
    // The options of the last one belong to it from now on.
    page.wait("document.querySelector('[name=locale]').value === 'ar'").await?;
    page.go(&page.text("location.origin + location.pathname").await?).await?;
    page.wait("document.querySelector('[name=locale]').value === 'ar' && document.querySelector('[name=format]').value === 'pdf'").await?;
    page.shows("of 210 × 297 mm.").await?;
    // An unknown one is an empty template.
    page.go(&format!("{new}?starter=../invoice")).await?;
    page.wait("document.querySelector('#html').value.includes('Hello {{ name }}')").await
}
