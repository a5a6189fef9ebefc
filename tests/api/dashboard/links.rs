//! Links of templates: made, changed and rolled in the dashboard, and programs that sign their addresses.

use platen_shared::link::{LinkFile, LinkId, LinkSecret};

use super::support::{Person, between, insert, new_email, person};
use crate::prelude::*;
use crate::snippets::LANGUAGES;

pub(crate) fn cases() -> Vec<Case> {
    let programs = PROGRAMS.iter().map(|(id, block, file)| {
        let name = format!("dashboard/links/programs_run/{id}");
        let case = Case::any_database(name, move |stage| program_runs(stage, id, block, file));
        match LANGUAGES.iter().find(|language| language.block == *block) {
            Some(language) => language.where_it_runs(case),
            None => case.needs_program(block),
        }
    });
    let cases = [
        Case::any_database("dashboard/links/a_secret_is_shown_once_and_signs", shown_once),
        Case::any_database("dashboard/links/wrong_input_names_its_field", wrong_input),
        Case::any_database("dashboard/links/change_disable_roll_and_delete", changes),
        Case::any_database("dashboard/links/members_and_strangers", others),
        Case::any_database("dashboard/links/requests_and_usage_show_links", shown_as_keys),
    ];
    programs.chain(cases).collect()
}

/// Each program of the page, the code block of its language in the quick start or else its interpreter, and its file.
const PROGRAMS: &[(&str, &str, &str)] = &[
    ("node", "js", "sign.mjs"),
    ("webcrypto", "js", "sign.mjs"),
    ("python", "python", "sign.py"),
    ("php", "php", "sign.php"),
    ("go", "go", "sign.go"),
    ("ruby", "ruby", "sign.rb"),
    ("rust", "rust", ""),
];

const GOOD: [(&str, &str); 6] = [
    ("name", "Blog cards"),
    ("format.png", "on"),
    ("format.pdf", "on"),
    ("maxAge", "2"),
    ("unit", "hours"),
    ("dailyLimit", "50"),
];

/// A link as its user has it.
struct NewLink {
    id: String,
    secret: LinkSecret,
    path: String,
    template: String,
}

async fn new_link(person: &mut Person) -> Result<NewLink> {
    let template = person.new_template("card", "<h1>{{ title }}</h1><p>{{ author }}</p>").await?;
    let created = person.post(&format!("/dashboard/templates/{template}/links"), &GOOD).await?.is(303)?;
    let id = between(created.location(), "/dashboard/links/", "?")?;
    let page = person.get(created.location()).await?.is(200)?;
    let secret = LinkSecret::parse(&between(&page.body, "aria-label=\"The secret\">", "<")?);
    Ok(NewLink { path: format!("/dashboard/links/{id}"), id, secret: secret.context("no secret")?, template })
}

impl NewLink {
    fn signed(&self, file: &str, values: &[(&str, &str)]) -> Result<String> {
        let values = values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let link = LinkId::parse(&self.id).context("no id")?;
        Ok(LinkFile::new(link, file, values)?.signed(&self.secret).spelling())
    }
}

/// The text of the element with this label.
fn labelled(page: &str, label: &str) -> Result<String> {
    Ok(unescaped(&between(page, &format!("aria-label=\"{label}\">"), "</pre>")?))
}

fn unescaped(html: &str) -> String {
    [("&#60;", "<"), ("&#62;", ">"), ("&#34;", "\""), ("&#39;", "'"), ("&#38;", "&")]
        .iter()
        .fold(html.to_owned(), |text, (escape, sign)| text.replace(escape, sign))
}

async fn shown_once(stage: Stage) -> Result<()> {
    let (app, account, mut ann) = person(&stage, Quota::Of(5)).await?;
    let link = new_link(&mut ann).await?;
    let again = ann.get(&link.path).await?.is(200)?.body;
    ensure!(!again.contains(link.secret.expose()), "the secret is shown twice");
    let list = ann.get(&format!("/dashboard/templates/{}/links", link.template)).await?.is(200)?.body;
    for text in ["Blog cards", "PNG, PDF", "2 hours", "0 of 50", "Active"] {
        ensure!(list.contains(text), "no {text}: {list}");
    }
    ensure!(!list.contains(link.secret.expose()), "the list has the secret");

    // The values of the form are in the address, which is the one that the secret signs.
    let values = [("title", "Größe + 1 & \"2\""), ("author", "O'Neil")];
    let fields =
        [("stem", "card-1"), ("extension", "png"), ("value.title", values[0].1), ("value.author", "O'Neil")];
    let page = ann.post(&link.path, &fields).await?.is(200)?.body;
    let expected = link.signed("card-1.png", &values)?;
    let url = format!("{}{expected}", app.base_url);
    ensure!(labelled(&page, "Signed address")? == url, "{page}");
    let tags = labelled(&page, "Meta tags")?;
    ensure!(tags.contains(&format!("content=\"{}\"", url.replace('&', "&amp;"))), "{tags}");
    ensure!(
        tags.contains("og:image:width\" content=\"1280\"") && tags.contains(":height\" content=\"720\""),
        "{tags}"
    );
    let shown = format!("<img src=\"{}\"", expected.replace('&', "&#38;"));
    ensure!(page.contains(&shown), "{page}");
    ensure!(!again.contains("<img src=\"/v1/links/"), "a visit of the page renders");

    let mut pdf = fields;
    pdf[1].1 = "pdf";
    let page = ann.post(&link.path, &pdf).await?.is(200)?.body;
    ensure!(page.contains("Open the PDF") && labelled(&page, "Meta tags").is_err(), "{page}");
    for (stem, value, message) in [
        ("Card", "x", "The name of the file must be"),
        ("card", &*"ä".repeat(2_000), "The address must have at most 8000 bytes"),
    ] {
        let fields = [("stem", stem), ("extension", "png"), ("value.title", value)];
        let page = ann.post(&link.path, &fields).await?.is(422)?.body;
        ensure!(page.contains(message) && page.contains(value), "{page}");
    }
    ensure!(app.operator.attempts(&account.id).await? == 0, "an address costs an attempt");
    Ok(())
}

async fn wrong_input(stage: Stage) -> Result<()> {
    let (app, account, mut ann) = person(&stage, Quota::Of(5)).await?;
    let link = new_link(&mut ann).await?;
    let lists = format!("/dashboard/templates/{}/links", link.template);
    for (field, value, error) in [
        ("name", " ", "id=\"name-error\">A name has 1 to 200"),
        ("format.png", "", "id=\"formats-error\">Choose at least one format."),
        ("maxAge", "1.5", "id=\"maxAge-error\">Enter a whole number"),
        ("maxAge", "8761", "id=\"maxAge-error\">Enter a whole number"),
        ("dailyLimit", "0", "id=\"dailyLimit-error\">Enter a whole number"),
    ] {
        let mut fields = GOOD.to_vec();
        if field == "format.png" {
            fields.retain(|(name, _)| !name.starts_with("format."));
        } else {
            fields.iter_mut().filter(|(name, _)| *name == field).for_each(|pair| pair.1 = value);
        }
        for path in [lists.clone(), format!("{}/settings", link.path)] {
            let page = ann.post(&path, &fields).await?.is(422)?.body;
            ensure!(page.contains(error) && page.matches("class=\"error\"").count() == 1, "{field}: {page}");
            ensure!(
                field == "dailyLimit" || page.contains("value=\"50\""),
                "{field}: what was entered is lost"
            );
        }
    }
    let count = app
        .execute(&format!(
            "SELECT count(*) FROM api_keys WHERE account_id = '{}' AND kind = 'link'",
            account.id
        ))
        .await?;
    ensure!(count == Some(1), "a wrong link is made");
    Ok(())
}

async fn changes(stage: Stage) -> Result<()> {
    let (app, account, mut ann) = person(&stage, Quota::Of(5)).await?;
    let link = new_link(&mut ann).await?;
    let settings =
        [("name", "Cards"), ("format.webp", "on"), ("maxAge", "0"), ("unit", "days"), ("dailyLimit", "")];
    ann.post(&format!("{}/settings", link.path), &settings).await?.is(303)?;
    let list = format!("/dashboard/templates/{}/links", link.template);
    let page = ann.get(&list).await?.body;
    ensure!(page.contains("Not cached") && page.contains("0, no limit") && page.contains("WEBP"), "{page}");

    // Disabling and deleting ask before.
    ensure!(
        ann.get(&format!("{}/disable", link.path)).await?.is(200)?.body.contains("Disable the link “Cards”?")
    );
    ann.post(&format!("{}/disable", link.path), &[]).await?.is(303)?;
    let fields = [("stem", "card"), ("extension", "webp")];
    let page = ann.post(&link.path, &fields).await?.is(200)?.body;
    ensure!(page.contains("The link is disabled") && !page.contains("<img src=\"/v1/links/"), "{page}");
    ann.post(&format!("{}/enable", link.path), &[]).await?.is(303)?;

    for bad in ["", "25h", "-1"] {
        ann.post(&format!("{}/roll", link.path), &[("grace", bad)]).await?.is(404)?;
    }
    let asked = ann.post(&format!("{}/roll", link.path), &[("grace", "0")]).await?.is(200)?.body;
    ensure!(asked.contains("Roll the secret of the link “Cards” immediately?"), "{asked}");
    let rolled = ann.post(&format!("{}/roll", link.path), &[("grace", "1h")]).await?.is(303)?;
    let page = ann.get(rolled.location()).await?.is(200)?.body;
    let secret =
        LinkSecret::parse(&between(&page, "aria-label=\"The secret\">", "<")?).context("no secret")?;
    ensure!(secret.expose() != link.secret.expose() && page.contains("work until"), "{page}");
    let rolled = NewLink { secret, ..link };
    let values = [("title", ""), ("author", "")];
    let expected = format!("{}{}", app.base_url, rolled.signed("card.webp", &values)?);
    let page = ann.post(&rolled.path, &fields).await?.is(200)?.body;
    ensure!(labelled(&page, "Signed address")? == expected, "{page}");
    let confirmed = [("grace", "0"), ("confirmed", "1")];
    let at_once = ann.post(&format!("{}/roll", rolled.path), &confirmed).await?.is(303)?;
    ensure!(!ann.get(at_once.location()).await?.body.contains("work until"), "an overlap of 0");

    let page = ann.get(&format!("/dashboard/templates/{}/delete", rolled.template)).await?.is(200)?.body;
    ensure!(page.contains("Delete the template “card” with 0 earlier versions and 1 link?"), "{page}");
    ensure!(
        ann.get(&format!("{}/delete", rolled.path)).await?.is(200)?.body.contains("Delete the link “Cards”?")
    );
    ann.post(&format!("{}/delete", rolled.path), &[]).await?.is(303)?;
    ann.get(&rolled.path).await?.is(404)?;
    ann.post(&format!("{}/delete", rolled.path), &[]).await?.is(404)?;
    ensure!(ann.get(&list).await?.is(200)?.body.contains("No links yet."));
    let entries = app
        .execute(&format!(
        "SELECT count(DISTINCT action) FROM audit WHERE account_id = '{}' AND action IN ('created link', 'changed link', \
         'disabled link', 'enabled link', 'rolled secret of link', 'deleted link')",
        account.id
    ))
    .await?;
    ensure!(entries == Some(6), "the audit log");
    Ok(())
}

async fn others(stage: Stage) -> Result<()> {
    let (app, account, mut ann) = person(&stage, Quota::Of(5)).await?;
    let link = new_link(&mut ann).await?;
    let list = format!("/dashboard/templates/{}/links", link.template);
    let mut member = Person::invited(&app, &new_email("member"), &["--account", &account.id]).await?;
    let other = app.operator.account(Quota::Of(5)).await?;
    let mut stranger = Person::of(&app, &other).await?;
    for path in [list.clone(), link.path.clone(), format!("{}/delete", link.path)] {
        let page = stranger.get(&path).await?.is(404)?.body;
        ensure!(!page.contains("Blog cards"), "{path}: {page}");
    }
    stranger.get("/dashboard/you").await?;
    stranger.post(&list, &GOOD).await?.is(404)?;

    // A member makes links, and sees those of others without signed addresses.
    let file = [("stem", "card"), ("extension", "png"), ("value.title", "x"), ("value.author", "y")];
    let page = member.get(&link.path).await?.is(200)?.body;
    ensure!(page.contains("Blog cards") && !page.contains("/settings"), "{page}");
    for page in [page, member.post(&link.path, &file).await?.is(200)?.body] {
        let signature = link.signed("card.png", &[("title", "x"), ("author", "y")])?;
        let signature = signature.split('/').nth(4).context("no signature")?;
        let is_signed =
            page.contains("Signed address\"") || page.contains("<img src=\"/v1/") || page.contains(signature);
        ensure!(!is_signed && page.contains("createHmac"), "{page}");
    }
    member.post(&list, &GOOD).await?.is(303)?;
    for (action, fields) in [
        ("settings", &GOOD[..]),
        ("roll", &[("grace", "24h")]),
        ("disable", &[]),
        ("enable", &[]),
        ("delete", &[]),
    ] {
        let path = format!("{}/{action}", link.path);
        member.post(&path, fields).await?.is(403).with_context(|| path.clone())?;
        stranger.post(&path, fields).await?.is(404).with_context(|| path.clone())?;
    }
    ensure!(ann.get(&link.path).await?.is(200)?.body.contains("Active"), "the link has changed");
    Ok(())
}

async fn shown_as_keys(stage: Stage) -> Result<()> {
    let (app, account, mut ann) = person(&stage, Quota::Of(5)).await?;
    let link = new_link(&mut ann).await?;
    let id = format!("'{}'", link.id);
    let columns = [
        ("key_id", id.as_str()),
        ("key_name", "'Blog cards'"),
        ("endpoint", "'link'"),
        ("counted", "1"),
        ("request_id", "'row-of-link'"),
    ];
    insert(&app, &account, 1, &columns).await?;
    let shown = format!("<span class=\"tag\">Link</span> <a href=\"{}\"", link.path);
    for path in ["/dashboard/requests".to_owned(), format!("/dashboard/requests?key={}", link.id)] {
        let page = ann.get(&path).await?.is(200)?.body;
        ensure!(page.contains(&shown) && page.contains("row-of-link"), "{page}");
        ensure!(page.contains(">Link Blog cards</option>"), "{page}");
    }
    ensure!(ann.get("/dashboard/usage").await?.is(200)?.body.contains(&shown), "usage");
    ensure!(
        ann.get(&link.path).await?.is(200)?.body.contains("<strong>1</strong> attempt,"),
        "the link's chart"
    );
    let row = app.execute(&format!("SELECT id FROM attempts WHERE account_id = '{}'", account.id)).await?;
    let page = ann.get(&format!("/dashboard/requests/{}", row.context("no row")?)).await?.is(200)?.body;
    ensure!(page.contains(&shown) && page.contains("/v1/links/…"), "{page}");
    Ok(())
}

async fn program_runs(stage: Stage, id: &str, block: &str, file: &str) -> Result<()> {
    let (app, _, mut ann) = person(&stage, Quota::Of(5)).await?;
    let mut link = new_link(&mut ann).await?;
    if id == "rust" {
        // The compiled program has the link and the values of the unit test of `dashboard/src/link_programs.rs`.
        "lnk_000000000000000000000000000000001tCLNu".clone_into(&mut link.id);
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_sign-link"))
            .env("PLATEN_LINK_SECRET", link.secret.expose())
            .output()?;
        let title = "Größe + 1, in a title that is too long for one line of the program";
        let expected = link.signed("card.png", &[("author", "O'Neil \"*\""), ("title", title)])?;
        let printed = String::from_utf8(output.stdout)?;
        ensure!(printed.trim() == format!("http://127.0.0.1:3000{expected}"), "{printed}");
        return Ok(());
    }
    let interpreter: &[&str] = match LANGUAGES.iter().find(|language| language.block == block) {
        Some(language) => language.command(),
        None => &[block],
    };
    let [program, arguments @ ..] = interpreter else { anyhow::bail!("no interpreter") };
    for (title, author) in [
        ("Größe + 1 & \"2\"", "O'Neil (!*) ~._-"),
        ("\\ ${x} #{x} {$x} $x `x` %41 </pre>", "two\nlines\tand 𝒜 \u{e000}"),
        ("", ""),
    ] {
        let fields =
            [("stem", "card"), ("extension", "png"), ("value.title", title), ("value.author", author)];
        let page = ann.post(&link.path, &fields).await?.is(200)?.body;
        let code = between(&page, &format!("<pre id=\"program-{id}\""), "</pre>")?;
        let code = unescaped(code.split_once('>').context("no code")?.1);
        let directory = tempfile::tempdir()?;
        std::fs::write(directory.path().join(file), code)?;
        let mut command = std::process::Command::new(program);
        command.args(arguments).arg(file).current_dir(directory.path()).env("HOME", directory.path());
        let output = command.env("PLATEN_LINK_SECRET", link.secret.expose()).output()?;
        let expected = link.signed("card.png", &[("title", title), ("author", author)])?;
        let printed = String::from_utf8_lossy(&output.stdout);
        ensure!(printed.trim() == format!("{}{expected}", app.base_url), "{id}: {output:?}");
    }
    Ok(())
}
