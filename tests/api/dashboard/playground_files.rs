//! What is entered into the playground by files and by keyboard.

use super::{
    playground::{RECORD, playground},
    support::{choose, new_email, owner_page, render},
};
use crate::prelude::*;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::any_database("dashboard/playground/files_of_a_pdf_are_chosen", chosen_files),
        Case::any_database("dashboard/playground/a_refused_render_does_not_count", refused),
        Case::any_database("dashboard/playground/typed_tags_are_not_closed_twice", typed_tags),
    ]
}

/// Chooses files, as `[name, text, type]`, in the field of this selector.
async fn choose_files(page: &Page, field: &str, files: &Value) -> Result<()> {
    let script = format!(
        "(() => {{ const field = document.querySelector('{field}'); const transfer = new DataTransfer(); \
         for (const [name, text, type] of {files}) transfer.items.add(new File([text], name, {{ type }})); \
         field.files = transfer.files; field.dispatchEvent(new Event('change', {{ bubbles: true }})); }})()"
    );
    page.eval(&script).await?;
    Ok(())
}

async fn chosen_files(stage: Stage) -> Result<()> {
    let app = &*stage.real_service().await?;
    let page = Browser::start().await?.page().await?;
    playground(app, &page, &new_email("pg")).await?;
    page.eval(RECORD).await?;
    choose(&page, "format", "pdf").await?;
    page.eval("document.querySelectorAll('details.group').forEach((group) => { group.open = true })").await?;
    let files =
        json!([["figures.csv", "a,b\n", "text/csv"], ["terms.txt", "x", "text/plain"], ["c", "c", ""]]);
    choose_files(&page, "#choose-attachments", &files).await?;
    let rows = "document.querySelectorAll('.attached li').length";
    page.wait(&format!("{rows} === 3")).await?;
    // A name, a description and a relationship are entered, and one is removed.
    page.choose(".attached li:nth-child(2) input", "terms 2026.txt").await?;
    page.choose(".attached li:nth-child(1) [placeholder=Description]", "Sales \"by\" month").await?;
    page.choose(".attached li:nth-child(1) select", "data").await?;
    page.click("[aria-label='Remove c']").await?;
    page.wait(&format!("{rows} === 2")).await?;
    ensure!(
        page.eval("document.activeElement.closest('.attached') !== null").await? == true,
        "the focus is lost"
    );
    let listed =
        page.text("document.querySelector('.changed-options [data-field=attachments]').innerText").await?;
    ensure!(listed.contains("figures.csv, terms 2026.txt") && !listed.contains('{'), "{listed}");
    render(&page).await?;
    page.wait("document.querySelector('#rendered').checkVisibility()").await?;
    let sent = page.eval("window.sent").await?;
    let body: Value = serde_json::from_str(sent[0][1].as_str().context("a body")?)?;
    let attachments = json!([
        { "name": "figures.csv", "content": "YSxiCg==", "mimeType": "text/csv", "description": "Sales \"by\" month", "relationship": "data" },
        { "name": "terms 2026.txt", "content": "eA==", "mimeType": "text/plain" },
    ]);
    ensure!(body["attachments"] == attachments, "{body}");
    // Text that is no list shows none, and is not lost.
    page.fill("#option-attachments", "[{\"name\": \"typed\", \"content\": \"eA==\"}]").await?;
    page.wait(&format!("{rows} === 1 && document.querySelector('.attached input').value === 'typed'"))
        .await?;
    page.fill("#option-attachments", "[{").await?;
    page.wait(&format!("{rows} === 0")).await?;
    page.fill("#option-attachments", "").await?;
    choose_files(&page, "#choose-invoiceXml", &json!([["x.xml", "<?xml version='1.0'?><a/>", "text/xml"]]))
        .await?;
    page.wait("document.querySelector('#option-invoiceXml-editor').innerText.includes('<a/>')").await?;
    render(&page).await?;
    page.wait("document.querySelector('#option-invoiceXml-error').checkVisibility()").await?;
    Ok(())
}

async fn refused(stage: Stage) -> Result<()> {
    let (app, _, page) = owner_page(&stage, Quota::Of(0)).await?;
    page.go(&format!("{}/dashboard/playground", app.base_url)).await?;
    render(&page).await?;
    page.shows("Monthly quota exhausted. Nothing was rendered; this does not count.").await?;
    page.press("Show the request").await?.shows("429 Over limit").await
}

async fn typed_tags(stage: Stage) -> Result<()> {
    let app = &*stage.real_service().await?;
    let page = Browser::start().await?.page().await?;
    playground(app, &page, &new_email("pg")).await?;
    page.fill("#option-html", "").await?;
    page.eval("document.querySelector('#option-html-editor .cm-content').focus()").await?;
    page.type_text("<p>a</p>").await?;
    let text = "document.querySelector('#option-html-editor .cm-content').innerText";
    page.wait(&format!("{text}.trim() === '<p>a</p>'")).await?;
    // A URL has no preview, and the pane says so.
    let none = "document.querySelector('#preview-none').checkVisibility()";
    ensure!(page.eval(none).await? == false, "markup has a preview");
    page.eval("void document.querySelector('[name=source][value=url]').click()").await?;
    page.wait(none).await
}
