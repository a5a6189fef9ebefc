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
    let (a80, a160) = ("a".repeat(80), "a".repeat(160));
    let cut_at_dash = format!("{}-b", "a".repeat(79));
    let table: &[(&str, &str)] = &[
        ("invoice 2026", "invoice-2026"),
        ("Invoice_2026.PDF", "invoice-2026-pdf"),
        ("  spaces  ", "spaces"),
        ("--dashes--", "dashes"),
        ("a---b", "a-b"),
        ("Ünïcödé Straße", "unicode-strasse"),
        ("Ærøskøbing", "aeroskobing"),
        ("Łódź", "lodz"),
        ("北京", "bei-jing"),
        ("Москва", "moskva"),
        ("e\u{301}te\u{301}", "ete"),
        ("ａｂｃ", "abc"),
        ("a\r\nset-cookie: x=1", "a-set-cookie-x-1"),
        ("a\r\n\r\n<html>", "a-html"),
        ("\"quoted\"", "quoted"),
        ("a\"; filename=\"b.exe", "a-filename-b-exe"),
        ("semi;colon", "semi-colon"),
        ("per%20cent%0d%0a", "per-20cent-0d-0a"),
        ("../../etc/passwd", "etc-passwd"),
        ("..", "render"),
        (".htaccess", "htaccess"),
        ("C:\\Windows\\system32", "c-windows-system32"),
        ("\\\\server\\share", "server-share"),
        ("nul\0byte", "nul-byte"),
        ("\u{202e}gpj.exe", "gpj-exe"),
        ("a\u{200b}b", "ab"),
        ("***", "render"),
        ("!\"§$%&/()=?", "render"),
        (" ", "render"),
        ("-", "render"),
        ("0", "0"),
        (&a80, &a80),
        (&a160, &a80),
        (&cut_at_dash, &a80[..79]),
    ];
    for (given, stem) in table {
        let answer = target.render(&json!({ "html": "x", "fileName": given })).send().await?;
        answer.file("image/png").with_context(|| format!("{given:?}"))?;
        let name = answer.file_name()?;
        // For a few characters only the form is checked: they have more than one valid transliteration.
        let exact = !given.contains(['§', '\u{202e}', '\u{200b}']);
        ensure!(!exact || name == format!("{stem}.png"), "{given:?} became {name:?}, not {stem:?}");
        is_slug(name).with_context(|| format!("{given:?} became {name:?}"))?;
    }
    let answer = target.render(&json!({ "html": "x", "fileName": "a".repeat(161) })).send().await?;
    answer.error(400, "\"fileName\" must be 1 to 160 characters")?;
    for (format, name) in
        [("png", "x.png"), ("jpeg", "x.jpg"), ("jpg", "x.jpg"), ("webp", "x.webp"), ("pdf", "x.pdf")]
    {
        let answer = target.render(&json!({ "html": "x", "fileName": "x", "format": format })).send().await?;
        ensure!(answer.file_name()? == name, "{format}: {}", answer.summary());
    }
    Ok(())
}

/// 1 to 80 of `a-z0-9-`, no `-` at either end, and one extension.
fn is_slug(name: &str) -> Result<()> {
    let (stem, extension) = name.split_once('.').context("no extension")?;
    let plain = |text: &str| text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'));
    ensure!(plain(stem) && plain(extension), "other characters");
    ensure!(
        (1..=80).contains(&stem.len()) && !stem.starts_with('-') && !stem.ends_with('-'),
        "it begins or ends wrongly"
    );
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
    let target = stage.target().await?;
    let body =
        json!({ "html": "x", "width": 8, "height": 8, "fileName": "Größe: \"8\"\r\nx", "format": "webp" });
    let answer = target.render(&body).send().await?;
    answer.file("image/webp")?;
    ensure!(answer.file_name()? == "grosse-8-x.webp", "{}", answer.summary());
    Ok(())
}
