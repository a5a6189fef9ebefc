//! The name in `content-disposition`: always a short ASCII slug.

use crate::prelude::*;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::any_database("file_names/of_renders", of_renders),
        Case::any_database("file_names/of_templates", of_templates),
        Case::any_server("file_names/of_the_real_farm", of_the_real_farm),
    ]
}

async fn of_renders(stage: Stage) -> Result<()> {
    let service = stage.service().await?;
    let target = service.target(&service.operator.account(Quota::Unlimited).await?);
    // The rules are tested with `slugify`.
    for (given, stem) in [
        ("Invoice_2026.PDF", "invoice-2026-pdf"),
        ("  --Ünïcödé Straße--  ", "unicode-strasse"),
        ("北京", "bei-jing"),
        ("e\u{301}te\u{301}", "ete"),
        ("a\r\n\r\n<html>", "a-html"),
        ("a\"; filename=\"b.exe", "a-filename-b-exe"),
        ("per%20cent%0d%0a", "per-20cent-0d-0a"),
        ("../../etc/passwd", "etc-passwd"),
        ("..", "render"),
        ("nul\0byte", "nul-byte"),
        (&"a".repeat(160), &"a".repeat(80)),
    ] {
        let answer = target.render(&json!({ "html": "x", "fileName": given })).send().await?;
        answer.file("image/png").with_context(|| format!("{given:?}"))?;
        let name = answer.file_name()?;
        ensure!(name == format!("{stem}.png"), "{given:?} became {name:?}, not {stem:?}");
    }
    Ok(())
}

async fn of_templates(stage: Stage) -> Result<()> {
    let (service, account, target) = stage.account_with_key(Quota::Unlimited).await?;
    for (template, given, name) in [
        ("Monthly Invoice", None, "monthly-invoice.png"),
        ("Rechnung für Zoë", None, "rechnung-fur-zoe.png"),
        ("***", None, "render.png"),
        ("../x", None, "x.png"),
        ("Monthly Invoice", Some("Mine"), "mine.png"),
        // Nothing remains of the given name: the default is the name of the template.
        ("Monthly Invoice", Some("***"), "monthly-invoice.png"),
        ("!!!", Some("***"), "render.png"),
    ] {
        let id = service.operator.template(&account.id, template, "<p>x</p>").await?;
        let mut body = json!({ "templateId": id });
        if let Some(given) = given {
            body["fileName"] = given.into();
        }
        let answer = target.render_template(&body).send().await?;
        answer.file("image/png")?;
        ensure!(answer.file_name()? == name, "{template:?}, {given:?}: {}", answer.file_name()?);
    }
    Ok(())
}

async fn of_the_real_farm(stage: Stage) -> Result<()> {
    let target = stage.common().await?;
    let body =
        json!({ "html": "x", "width": 8, "height": 8, "fileName": "Größe: \"8\"\r\nx", "format": "webp" });
    let answer = target.render(&body).send().await?;
    answer.file("image/webp")?;
    ensure!(answer.file_name()? == "grosse-8-x.webp", "{}", answer.summary());
    Ok(())
}
