//! The files of a template in the editor, in a real browser and over HTTP.

use base64::{Engine as _, prelude::BASE64_STANDARD};

use super::support::{Person, between, owner_page};
use crate::prelude::*;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::any_database("dashboard/files/are_chosen_dropped_renamed_saved_and_restored", lifecycle),
        Case::any_database("dashboard/files/are_drafts_too_and_no_conflict_loses_them", conflict),
        Case::any_database("dashboard/files/that_cannot_be_saved_are_named", refused),
        Case::any_database("dashboard/files/run_no_scripts_and_stay_in_their_account", foreign),
        Case::any_database("dashboard/files/come_from_the_playground", playground),
    ]
}

/// A picture of one pixel.
const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
const SVG: &str = "<svg xmlns='http://www.w3.org/2000/svg' width='20' height='10' onload='top.ran = 1'>\
    <script>top.ran = 1; localStorage.ran = 1</script><rect width='20' height='10'/></svg>";

/// Adds files, each with name, media type and a script of its content, by the chooser or by a drop.
pub(super) async fn add(page: &Page, files: &[(&str, &str, &str)], is_drop: bool) -> Result<()> {
    let files: Vec<String> = files
        .iter()
        .map(|(name, mime_type, content)| {
            format!("new File([{content}], {}, {{ type: {} }})", json!(name), json!(mime_type))
        })
        .collect();
    let script = format!(
        "(() => {{
            const transfer = new DataTransfer();
            for (const file of [{}]) transfer.items.add(file);
            if ({is_drop}) {{
                const part = document.querySelector('#file-list');
                for (const type of ['dragenter', 'dragover', 'drop'])
                    part.dispatchEvent(new DragEvent(type, {{ dataTransfer: transfer, bubbles: true, cancelable: true }}));
                return;
            }}
            const chooser = document.querySelector('#choose-files');
            chooser.files = transfer.files;
            chooser.dispatchEvent(new Event('change', {{ bubbles: true }}));
        }})()",
        files.join(",")
    );
    page.eval(&format!("void {script}")).await?;
    Ok(())
}

/// The content of the picture as a script.
pub(super) fn png() -> String {
    format!("Uint8Array.from(atob('{PNG}'), (it) => it.charCodeAt(0))")
}

/// Waits until the list has these paths.
async fn has(page: &Page, paths: &str) -> Result<()> {
    let shown = "[...document.querySelectorAll('#file-list li')].map((it) => it.querySelector('input')?.value ?? it.querySelector('.path').textContent).sort().join()";
    page.wait(&format!("{shown} === {}", json!(paths))).await
}

async fn rename(page: &Page, path: &str, to: &str) -> Result<()> {
    page.choose(&format!("#file-list input[aria-label={}]", json!(format!("Path of {path}"))), to).await
}

/// Whether a picture of the list is shown.
const THUMBNAIL: &str =
    "[...document.querySelectorAll('#file-list img')].some((it) => it.complete && it.naturalWidth > 0)";
const HTML: &str = "<!doctype html><link rel=stylesheet href='css/style.css'><p id=text>text</p><img id=logo src='img/logo.png?v=1'>\
    <div id=box style='background: url(img/logo.png)'>box</div>";
const CSS: &str = "'p { color: rgb(1, 2, 3); background-image: url(../img/logo.png) }'";
/// Whether the page of [`HTML`] is shown with its files.
const IS_SHOWN: &str = "document.querySelector('#logo')?.naturalWidth === 1 \
    && getComputedStyle(document.querySelector('#text')).color === 'rgb(1, 2, 3)' \
    && ['#text', '#box'].every((it) => getComputedStyle(document.querySelector(it)).backgroundImage.includes('blob:'))";

async fn lifecycle(stage: Stage) -> Result<()> {
    let (app, _, page) = owner_page(&stage, Quota::Of(1)).await?;
    page.go(&format!("{}/dashboard/templates/new", app.base_url)).await?;
    page.fill("#name", "Files").await?;
    page.fill("#html", HTML).await?;
    page.click("#files-part-tab").await?;
    page.shows("This template has no files.").await?;
    add(&page, &[("logo.png", "image/png", &png())], false).await?;
    has(&page, "logo.png").await?;
    page.wait(THUMBNAIL).await?;
    page.shows("70 B, image/png").await?;
    add(&page, &[("style.css", "text/css", CSS), ("extra.txt", "", "'x'")], true).await?;
    has(&page, "extra.txt,logo.png,style.css").await?;
    rename(&page, "logo.png", "img/logo.png").await?;
    rename(&page, "style.css", "css/style.css").await?;
    rename(&page, "extra.txt", "css/style.css").await?;
    page.shows("another file has the path “css/style.css”").await?;
    has(&page, "css/style.css,extra.txt,img/logo.png").await?;
    page.click("[aria-label='Remove extra.txt']").await?;
    has(&page, "css/style.css,img/logo.png").await?;
    page.in_frames(IS_SHOWN).await?;
    page.press("Create template").await?.shows("Template created.").await?;
    let path = page.text("location.pathname").await?;
    page.click("#files-part-tab").await?;
    has(&page, "css/style.css,img/logo.png").await?;
    page.wait(THUMBNAIL).await?;
    page.in_frames(IS_SHOWN).await?;
    ensure!(!page.value("#files").await?.contains("content"), "a stored content is in the form");
    // A font is shown as a word.
    let font = std::fs::read("/usr/share/fonts/truetype/liberation/LiberationSerif-Bold.ttf")?;
    let font = format!("Uint8Array.from(atob('{}'), (it) => it.charCodeAt(0))", BASE64_STANDARD.encode(font));
    add(&page, &[("a.ttf", "font/ttf", &font)], false).await?;
    page.wait(
        "[...document.querySelectorAll('#file-list .sample')].some((it) => it.textContent === 'Sample')",
    )
    .await?;
    page.fill("#html", &format!("{HTML}<style>@font-face {{ font-family: own; src: url(a.ttf) }} i {{ font-family: own }}</style><i>i</i>")).await?;
    page.in_frames("[...document.fonts].some((it) => it.family === 'own' && it.status === 'loaded')").await?;
    page.go(&format!("{}{path}", app.base_url)).await?;
    page.wait("!document.querySelector('#draft').hidden").await?;
    page.click("#draft-discard").await?;
    // A save of other things keeps the files, also without JavaScript.
    page.enable_scripts(false).await?;
    page.go(&format!("{}{path}", app.base_url)).await?;
    let no_script = page.body().await?;
    ensure!(no_script.contains("css/style.css") && no_script.contains("img/logo.png"), "{no_script}");
    page.eval("document.querySelector('#name').value = 'Kept'").await?;
    page.press("Save").await?.shows("Template saved.").await?;
    page.enable_scripts(true).await?;
    page.go(&format!("{}{path}", app.base_url)).await?;
    page.press("Save").await?.shows("Nothing has changed").await?;
    has(&page, "css/style.css,img/logo.png").await?;
    // Without one of them, and back by its version.
    page.click("#files-part-tab").await?;
    page.click("[aria-label='Remove css/style.css']").await?;
    page.press("Save").await?.shows("Template saved.").await?;
    has(&page, "img/logo.png").await?;
    page.go(&format!("{}{path}/versions/2", app.base_url)).await?;
    has(&page, "css/style.css,img/logo.png").await?;
    page.wait(THUMBNAIL).await?;
    page.in_frames(IS_SHOWN).await?;
    let diff = page.text("document.querySelector('.diff').textContent").await?;
    ensure!(diff.contains("− css/style.css"), "{diff}");
    page.press("Restore this version").await?.shows("Version restored.").await?;
    has(&page, "css/style.css,img/logo.png").await?;
    page.press("Duplicate").await?.shows("Template duplicated.").await?;
    has(&page, "css/style.css,img/logo.png").await?;
    page.in_frames(IS_SHOWN).await?;
    let id = page.text("location.pathname.split('/')[3]").await?;
    page.go(&format!("{}/dashboard/playground?template={id}", app.base_url)).await?;
    page.in_frames(IS_SHOWN).await
}

async fn conflict(stage: Stage) -> Result<()> {
    let (app, account, page) = owner_page(&stage, Quota::Of(1)).await?;
    page.go(&format!("{}/dashboard/templates/new", app.base_url)).await?;
    page.submit(&[("#name", "Shared"), ("#html", HTML)], "Create template").await?;
    let path = page.text("location.pathname").await?;
    page.click("#files-part-tab").await?;
    add(&page, &[("logo.png", "image/png", &png())], false).await?;
    has(&page, "logo.png").await?;
    let kept = "withDrafts('readonly', (drafts) => drafts.getAll()).then((drafts) => drafts[0]?.files.includes('logo.png'))";
    page.wait(kept).await?;
    // The page is gone without a save.
    page.go(&format!("{}/dashboard/keys", app.base_url)).await?;
    page.go(&format!("{}{path}", app.base_url)).await?;
    has(&page, "").await?;
    page.wait("!document.querySelector('#draft').hidden").await?;
    page.click("#draft-restore").await?;
    has(&page, "logo.png").await?;
    page.click("#files-part-tab").await?;
    page.wait(THUMBNAIL).await?;
    let mut ben = Person::of(&app, &account).await?;
    let theirs = json!({ "of-ben.txt": { "text": "b" } }).to_string();
    ben.post(&path, &[("name", "Shared"), ("html", HTML), ("revision", "1"), ("files", &theirs)])
        .await?
        .is(303)?;
    page.press("Save").await?.shows("There is a newer version").await?;
    let diff = page.text("document.querySelector('.diff').textContent").await?;
    ensure!(diff.contains("− of-ben.txt") && diff.contains("+ logo.png"), "{diff}");
    has(&page, "logo.png").await?;
    page.press("Save over the newer version").await?.shows("Template saved.").await?;
    has(&page, "logo.png").await?;
    page.go(&format!("{}{path}/versions/2", app.base_url)).await?;
    has(&page, "of-ben.txt").await?;
    // What was saved is no draft.
    page.go(&format!("{}{path}", app.base_url)).await?;
    page.wait("withDrafts('readonly', (drafts) => drafts.getAll()).then((drafts) => drafts.length === 0)")
        .await
}

async fn refused(stage: Stage) -> Result<()> {
    let (app, account, page) = owner_page(&stage, Quota::Of(1)).await?;
    page.go(&format!("{}/dashboard/templates/new", app.base_url)).await?;
    page.submit(&[("#name", "Limits")], "Create template").await?;
    let path = page.text("location.pathname").await?;
    page.click("#files-part-tab").await?;
    let names: Vec<String> = (10..61).map(|number| format!("f{number}.txt")).collect();
    let many: Vec<(&str, &str, &str)> =
        names.iter().map(|name| (name.as_str(), "text/plain", "'x'")).collect();
    add(&page, &many, false).await?;
    page.shows("“f60.txt” was not added: a template has at most 50 files.").await?;
    page.wait("document.querySelectorAll('#file-list li').length === 50").await?;
    page.eval("document.querySelectorAll('#file-list li button').forEach((it) => it.click())").await?;
    add(
        &page,
        &[("big.bin", "", "new Uint8Array(4194305)"), ("fits.bin", "", "new Uint8Array(4194304)")],
        true,
    )
    .await?;
    page.shows("“big.bin” was not added: the files of a template have at most 4 MiB in all.").await?;
    has(&page, "fits.bin").await?;
    page.press("Save").await?.shows("Template saved.").await?;
    has(&page, "fits.bin").await?;
    // What the server refuses is still there.
    page.click("#files-part-tab").await?;
    page.click("[aria-label='Remove fits.bin']").await?;
    add(&page, &[("<script>alert(1)<.png", "image/png", &png())], false).await?;
    has(&page, "<script>alert(1)<.png").await?;
    let long = "x".repeat(300);
    for name in ["../x", &long, "a?b"] {
        page.choose("#file-list input", name).await?;
        page.press("Save").await?.shows("must be a relative path of 1 to 200 characters").await?;
        page.shows(&format!("The path “{}”", &name[..name.len().min(100)])).await?;
        ensure!(page.eval("document.querySelector('#files-part').checkVisibility()").await? == true);
        has(&page, name).await?;
        page.wait(THUMBNAIL).await?;
    }
    page.choose("#file-list input", "<script>alert(1)<.png").await?;
    page.press("Save").await?.shows("Template saved.").await?;
    has(&page, "<script>alert(1)<.png").await?;
    // Without the editor.
    let mut person = Person::of(&app, &account).await?;
    let file = json!({ "text": "x" });
    let of_paths = |paths: &mut dyn Iterator<Item = String>| {
        json!(paths.map(|path| (path, file.clone())).collect::<std::collections::BTreeMap<_, _>>())
            .to_string()
    };
    for (files, message) in [
        ("[]".to_owned(), "The files are not a JSON object"),
        ("{".to_owned(), "The files are not a JSON object"),
        (of_paths(&mut (0..51).map(|number| number.to_string())), "a template has at most 50 files"),
        (of_paths(&mut ["\u{fc}".to_owned(), "%C3%BC".to_owned()].into_iter()), "is there twice"),
        (
            json!({ "big": { "text": "x".repeat(4_194_305) } }).to_string(),
            "The largest is “big” with 4,194,305 bytes",
        ),
        (json!({ "a": { "content": "%" } }).to_string(), "The content of “a” is not valid base64"),
        (json!({ "a": { "text": "x", "mimeType": "x" } }).to_string(), "The media type of “a”"),
    ] {
        let fields = [("name", "Limits"), ("html", "x"), ("files", files.as_str())];
        let reply = person.post(&path, &fields).await?.is(422)?;
        ensure!(reply.body.contains(message), "{message} is not in {}", reply.body);
    }
    Ok(())
}

async fn foreign(stage: Stage) -> Result<()> {
    let (app, account, page) = owner_page(&stage, Quota::Of(1)).await?;
    page.go(&format!("{}/dashboard/templates/new", app.base_url)).await?;
    page.submit(&[("#name", "Drawing"), ("#html", "<img id=drawing src=a.svg>")], "Create template").await?;
    let path = page.text("location.pathname").await?;
    page.click("#files-part-tab").await?;
    add(&page, &[("a.svg", "image/svg+xml", &json!(SVG).to_string())], false).await?;
    page.wait(THUMBNAIL).await?;
    page.press("Save").await?.shows("Template saved.").await?;
    page.click("#files-part-tab").await?;
    page.wait(THUMBNAIL).await?;
    page.in_frames("document.querySelector('#drawing')?.naturalWidth === 20").await?;
    let hash = page.text("Object.values(JSON.parse(document.querySelector('#files').value))[0].hash").await?;
    // The content is no page, in a frame or by itself.
    let address = format!("/dashboard/files/{hash}");
    let mut person = Person::of(&app, &account).await?;
    let reply = person.get(&address).await?.is(200)?;
    ensure!(reply.body == SVG);
    for (name, value) in [
        ("content-type", "application/octet-stream"),
        ("x-content-type-options", "nosniff"),
        ("content-disposition", "attachment; filename=\"file\""),
        ("cache-control", "no-store"),
    ] {
        ensure!(reply.headers.get(name).is_some_and(|found| found == value), "{name}: {:?}", reply.headers);
    }
    ensure!(
        page.eval("window.ran === undefined && localStorage.ran === undefined").await? == true,
        "a script ran"
    );
    // Not for another account, and not without a session.
    let other = app.operator.account(Quota::Of(1)).await?;
    let mut stranger = Person::of(&app, &other).await?;
    stranger.get(&address).await?.is(404)?;
    stranger.get(&format!("/dashboard/files/{}", "0".repeat(64))).await?.is(404)?;
    stranger.get("/dashboard/files/..%2Fx").await?.is(404)?;
    Person::signed_out(&app)?.get(&address).await?.is(303)?;
    let files = json!({ "stolen.svg": { "hash": hash, "size": 1 } }).to_string();
    stranger.get("/dashboard/templates/new").await?.is(200)?;
    let fields = [("name", "Thief"), ("html", "x"), ("files", files.as_str())];
    let reply = stranger.post("/dashboard/templates/new", &fields).await?.is(422)?;
    ensure!(reply.body.contains("“stolen.svg”: its content is not stored"), "{}", reply.body);
    // A size is not believed: two files of the account that are too large together.
    let half = "x".repeat(2_200_000);
    let mut hashes = Vec::new();
    for (name, text) in [("a", half.clone()), ("b", format!("{half}b"))] {
        let files = json!({ name: { "text": text } }).to_string();
        person.post(&path, &[("name", "Drawing"), ("html", "x"), ("files", &files)]).await?.is(303)?;
        let body = person.get(&path).await?.body;
        hashes.push(between(&body, "&#34;hash&#34;:&#34;", "&#34;")?);
    }
    let files =
        json!({ "a": { "hash": hashes[0], "size": 1 }, "b": { "hash": hashes[1], "size": 1 } }).to_string();
    let reply =
        person.post(&path, &[("name", "Drawing"), ("html", "x"), ("files", &files)]).await?.is(422)?;
    ensure!(reply.body.contains("at most 4194304 bytes in all"), "{}", reply.body);
    Ok(())
}

async fn playground(stage: Stage) -> Result<()> {
    let (app, _, page) = owner_page(&stage, Quota::Of(1)).await?;
    page.go(&format!("{}/dashboard/playground", app.base_url)).await?;
    page.wait("document.querySelector('#render')?.textContent === 'Render'").await?;
    page.fill("#option-html", HTML).await?;
    let assets = json!({
        "img/logo.png": { "content": PNG },
        "css/style.css": { "text": "p { color: rgb(1, 2, 3); background: url(../img/logo.png) }" },
    });
    page.eval("document.querySelectorAll('details').forEach((it) => { it.open = true })").await?;
    page.fill("#option-assets", &assets.to_string()).await?;
    page.in_frames(IS_SHOWN).await?;
    page.follow("#save-as-template").await?;
    page.click("#files-part-tab").await?;
    has(&page, "css/style.css,img/logo.png").await?;
    page.wait(THUMBNAIL).await?;
    page.shows("70 B").await?;
    page.in_frames(IS_SHOWN).await?;
    page.submit(&[("#name", "Of the playground")], "Create template")
        .await?
        .shows("Template created.")
        .await?;
    has(&page, "css/style.css,img/logo.png").await?;
    page.in_frames(IS_SHOWN).await
}
