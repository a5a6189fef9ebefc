//! What pages offer: each link and form that a page shows to a user of some role is one that this user may use.

use super::support::{Person, accept_invite, between, insert, new_email};
use crate::prelude::*;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::own_server("dashboard/offers/nothing_that_is_refused", nothing_refused),
        Case::any_database("dashboard/offers/a_first_user_is_an_owner_everywhere", first_user),
    ]
}

/// Follows every link from the first page, then submits every form as its page shows it. What takes something away comes last;
/// a form that is not shown any more is left out. The result is the number of pages and forms, and what was refused.
const USE_EVERYTHING: &str = "(async () => {
    const refused = [];
    const read = async (path) => {
        const response = await fetch(path);
        const page = new DOMParser().parseFromString(await response.text(), 'text/html');
        return { status: response.status, page };
    };
    const paths = new Set(['/dashboard']);
    const pageOfForm = new Map();
    for (const path of paths) {
        const { status, page } = await read(path);
        if (status >= 400) refused.push(`${path}: ${status}`);
        for (const link of page.querySelectorAll('a[href^=\"/dashboard\"]')) paths.add(link.getAttribute('href'));
        for (const form of page.querySelectorAll('form[method=post]')) pageOfForm.set(form.getAttribute('action'), path);
    }
    const takesAway = (action) => /role$/.test(action) ? 2 : /delete|remove|disable|roll|end|leave|revoke/.test(action) ? 1 : 0;
    const isPosted = (action) => action !== '/dashboard/sign-out' && !action.endsWith('/join');
    const actions = [...pageOfForm.keys()].filter(isPosted).sort((a, b) => takesAway(a) - takesAway(b));
    let forms = 0;
    for (const action of actions) {
        const { page } = await read(pageOfForm.get(action));
        const form = page.querySelector(`form[method=post][action='${action}']`);
        if (!form) continue;
        const body = new URLSearchParams(new FormData(form));
        const { name, value } = form.querySelector('button') ?? {};
        if (name) body.set(name, value);
        const { status } = await fetch(action, { method: 'POST', body });
        forms += 1;
        if (status >= 400 && status !== 422) refused.push(`POST ${action}: ${status}`);
    }
    return { pages: paths.size, forms, refused };
})()";

async fn nothing_refused(stage: Stage) -> Result<()> {
    let stand_in = stage.start_stand_in(None).await?;
    let app = &stand_in.app;
    let browser = Browser::start().await?;
    let mut sizes = Vec::new();
    for role in ["owner", "member", "operator", "visiting operator", "operator without an account"] {
        // With a user of each role, keys in each state, a template with a version, an invite and requests.
        let account = app.operator.account(Quota::Of(50)).await?;
        let of_account = ["--account", account.id.as_str()];
        let mut owner = Person::invited(app, &new_email("owner"), &of_account).await?;
        let target = [&of_account[..], &["--operator", "--role", "member"]].concat();
        Person::invited(app, &new_email("op"), &target).await?;
        Person::of(app, &account).await?;
        let (disabled, _) = owner.new_key("disabled").await?;
        owner.post(&format!("/dashboard/keys/{disabled}/disable"), &[]).await?.is(303)?;
        let template = owner.new_template("card", "<p>one</p>").await?;
        let path = format!("/dashboard/templates/{template}");
        owner.post(&path, &[("name", "card"), ("html", "<p>two</p>")]).await?.is(303)?;
        owner.post("/dashboard/people/invite", &[("email", &new_email("guest"))]).await?.is(303)?;
        let invite = [&of_account[..], &["--operator"]].concat();
        app.operator.invite(&new_email("next-op"), &invite).await?;
        insert(&app.service(), &account, 2, &[("template_id", &format!("'{template}'"))]).await?;

        let page = browser.page().await?;
        let of_role = match role {
            "owner" => [&of_account[..], &["--role", "owner"]].concat(),
            "member" => of_account.to_vec(),
            "operator" => target.clone(),
            _ => vec!["--operator"],
        };
        accept_invite(&page, app, &new_email("user"), &of_role).await?;
        if role == "visiting operator" {
            page.go(&format!("{}/dashboard/operator/accounts/{}", app.base_url, account.id)).await?;
            page.press("Switch to this account").await?;
        }
        let used = page.eval(USE_EVERYTHING).await?;
        ensure!(used["refused"] == json!([]), "{role}: {used:#}");
        sizes.push((role, used["pages"].as_u64().unwrap_or(0), used["forms"].as_u64().unwrap_or(0)));
    }
    ensure!(sizes.iter().all(|(_, pages, forms)| *pages > 8 && *forms > 4), "{sizes:?}");
    Ok(())
}

/// The form, the list of invites and the list of users call the first user of an account an owner.
async fn first_user(stage: Stage) -> Result<()> {
    let app = &*stage.service().await?;
    let account = app.operator.account(Quota::Of(1)).await?;
    let mut operator = Person::invited(app, &new_email("op"), &["--operator"]).await?;
    let path = format!("/dashboard/operator/accounts/{}", account.id);
    let page = operator.get(&path).await?.is(200)?.body;
    ensure!(!page.contains("<option value=\"member\">"), "the first user may be invited as a member");
    let email = new_email("first");
    let link = app.operator.invite(&email, &["--account", &account.id, "--role", "member"]).await?;
    let invited_as = async |operator: &mut Person| {
        let page = operator.get(&path).await?.is(200)?.body;
        between(&page, "data-label=\"Invited as\"><span><span class=\"tag on\">", "<")
    };
    ensure!(invited_as(&mut operator).await? == "Owner");
    let mut first = Person::signed_out(app)?;
    first.get(&link).await?.is(200)?;
    let password = [("password", super::support::PASSWORD), ("again", super::support::PASSWORD)];
    first.post(&link, &password).await?.is(303)?;
    let people = first.get("/dashboard/people").await?.is(200)?.body;
    ensure!(between(&people, "data-label=\"Role\"><span><span class=\"tag on\">", "<")? == "Owner");
    // The next one is what its invite says.
    app.operator.invite(&new_email("next"), &["--account", &account.id, "--role", "member"]).await?;
    let page = operator.get(&path).await?.is(200)?.body;
    ensure!(page.contains("<option value=\"member\">"), "{page}");
    ensure!(page.contains("data-label=\"Invited as\"><span><span class=\"tag\">Member<"), "{page}");
    Ok(())
}
