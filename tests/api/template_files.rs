//! Files of templates in renders: saved by `platen template put --assets`, sent with a job and kept by the farm, deleted when none uses them.

use std::{fs, path::Path};

use platen_harness::image_file::{BLUE, RED};

use crate::prelude::*;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::any_template("template/files_are_in_each_file_of_the_template", rendered),
        Case::any_database("template/files_do_not_count_as_those_of_a_request", limits),
        Case::any_database("template/files_that_are_damaged_or_gone_make_no_file", damaged),
        Case::any_database("template/files_that_nothing_uses_are_deleted_after_a_day", deleted),
    ]
}

const HTML: &str = "<!doctype html><link rel=stylesheet href=css/page.css><body>{{ a }}<img src='img/dot #1.png' \
                    onerror=\"document.body.style.background = 'red'\">";
const STYLE: &str =
    "body { margin: 0; background: rgb(0, 128, 0) } img { position: absolute; top: 50px; left: 0 }";

/// Saves a template with the files of a folder, in place of `id` if there is one.
async fn put(service: &Service, account: &str, folder: &Path, id: Option<&str>) -> Result<String> {
    let file = tempfile::NamedTempFile::new()?;
    fs::write(file.path(), HTML.replace('#', "%23"))?;
    let path = |path: &Path| path.to_str().map(str::to_owned).context("a path is UTF-8");
    let (file_path, folder) = (path(file.path())?, path(folder)?);
    let mut put =
        vec!["template", "put", "--account", account, "--name", "t", "--assets", &folder, &file_path];
    put.extend(id.into_iter().flat_map(|id| ["--id", id]));
    let saved = service.operator.run(&put).await?;
    Ok(saved["id"].as_str().context("no id")?.to_owned())
}

fn folder(style: &str) -> Result<tempfile::TempDir> {
    let folder = tempfile::tempdir()?;
    for name in ["css", "img", ".git"] {
        fs::create_dir(folder.path().join(name))?;
    }
    fs::write(folder.path().join("css/page.css"), style)?;
    fs::write(folder.path().join("img/dot #1.png"), Picture::png_of(BLUE, 10, 10)?)?;
    fs::write(folder.path().join(".git/secret"), "s")?;
    Ok(folder)
}

fn body(id: &str, assets: Option<Value>) -> Value {
    let mut body = json!({ "templateId": id, "variables": { "a": "" }, "width": 100, "height": 100 });
    if let Some(assets) = assets {
        body["assets"] = assets;
    }
    body
}

async fn rendered(stage: Stage) -> Result<()> {
    let service = stage.real_service().await?;
    let (account, other) =
        (service.operator.account(Quota::Of(9)).await?, service.operator.account(Quota::Of(9)).await?);
    let files = folder(STYLE)?;
    let id = put(&service, &account.id, files.path(), None).await?;
    let target = service.target(&account);
    let picture = async |target: &Target, body: Value| -> Result<Picture> {
        let answer = target.render_template(&body).send().await?;
        Picture::decode(answer.file("image/png")?, "image/png")
    };
    let shown = picture(&target, body(&id, None)).await?;
    shown.expect(90, 90, GREEN)?;
    shown.expect(5, 55, BLUE)?;
    // A file of the request takes the place of one, in whatever way its path is written.
    let replaced = json!({ "%63ss/page.css": { "text": "body { background: blue }" } });
    picture(&target, body(&id, Some(replaced))).await?.expect(90, 90, BLUE)?;
    // The same content in two accounts is stored for each, and is deleted with its own uses.
    let same = put(&service, &other.id, files.path(), None).await?;
    picture(&service.target(&other), body(&same, None)).await?.expect(90, 90, GREEN)?;
    service.operator.run(&["template", "delete", &same]).await?;
    picture(&target, body(&id, None)).await?.expect(90, 90, GREEN)?;
    // A save without files keeps them; one with files replaces all of them.
    let red = tempfile::tempdir()?;
    fs::create_dir(red.path().join("css"))?;
    fs::write(red.path().join("css/page.css"), "body { background: rgb(0, 0, 255) } img { display: none }")?;
    put(&service, &account.id, red.path(), Some(&id)).await?;
    let without_picture = picture(&target, body(&id, None)).await?;
    without_picture.expect(90, 90, RED)?;
    // The farm has kept it.
    service.execute("UPDATE template_files SET content = x'00'").await?;
    picture(&target, body(&id, None)).await?.expect(90, 90, RED)?;
    Ok(())
}

async fn limits(stage: Stage) -> Result<()> {
    let stand_in = stage.stand_in().await?;
    let service = stand_in.app.service();
    let account = service.operator.account(Quota::Of(9)).await?;
    let id = put(&service, &account.id, folder(STYLE)?.path(), None).await?;
    let assets: Value = (0..100)
        .map(|number| (number.to_string(), json!({ "text": "" })))
        .collect::<serde_json::Map<_, _>>()
        .into();
    service.target(&account).render_template(&body(&id, Some(assets))).send().await?.file("image/png")?;
    let received = stand_in.farm.received_from(&account.id);
    let job = &received.first().context("the farm received nothing")?.job;
    let paths = job.options.assets.iter().flatten().map(|asset| asset.path.as_str()).collect::<Vec<_>>();
    ensure!(paths.len() == 102 && paths.ends_with(&["css/page.css", "img/dot %231.png"]), "{paths:?}");
    Ok(())
}

async fn damaged(stage: Stage) -> Result<()> {
    let stand_in = stage.stand_in().await?;
    let service = stand_in.app.service();
    let account = service.operator.account(Quota::Of(1)).await?;
    let id = put(&service, &account.id, folder(STYLE)?.path(), None).await?;
    let of_account = format!("account_id = '{}'", account.id);
    for change in [
        format!("UPDATE template_files SET content = x'00' WHERE {of_account}"),
        format!("DELETE FROM template_files WHERE {of_account}"),
    ] {
        service.execute(&change).await?;
        let answer = service.target(&account).render_template(&body(&id, None)).send().await?;
        answer.error(500, "Internal error")?;
        ensure!(answer.rate_limit()?.left == 1, "an attempt without a file was counted");
    }
    ensure!(stand_in.farm.received_from(&account.id).is_empty());
    Ok(())
}

async fn deleted(stage: Stage) -> Result<()> {
    let service = stage.service().await?;
    let account = service.operator.account(Quota::Of(1)).await?;
    let files = folder(STYLE)?;
    let id = put(&service, &account.id, files.path(), None).await?;
    let of_account = format!("account_id = '{}'", account.id);
    let count = format!("SELECT count(*) FROM template_files WHERE {of_account}");
    let stored_after_pruning = async || {
        service.execute("UPDATE retention SET pruned_at = unixepoch()").await?;
        service.execute(&count).await
    };
    let is_old = format!("UPDATE template_files SET put_at = put_at - 86401 WHERE {of_account}");
    service.execute(&is_old).await?;
    ensure!(stored_after_pruning().await? == Some(2), "files that a template uses were deleted");
    // The version that is kept uses them too.
    let empty = tempfile::tempdir()?;
    put(&service, &account.id, empty.path(), Some(&id)).await?;
    ensure!(stored_after_pruning().await? == Some(2), "files that a version uses were deleted");
    // Another version of the same files, and the template again.
    put(&service, &account.id, files.path(), Some(&id)).await?;
    service.execute(&is_old).await?;
    put(&service, &account.id, empty.path(), Some(&id)).await?;
    ensure!(stored_after_pruning().await? == Some(2), "files that two versions use were deleted");
    // Uploaded again a moment ago: a save may follow.
    put(&service, &account.id, files.path(), Some(&id)).await?;
    service.operator.run(&["template", "delete", &id]).await?;
    ensure!(stored_after_pruning().await? == Some(2), "files of the last day were deleted");
    service.execute(&is_old).await?;
    ensure!(stored_after_pruning().await? == Some(0), "files that nothing uses were kept");
    Ok(())
}
