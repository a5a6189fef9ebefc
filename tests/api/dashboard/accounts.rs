//! The operators' list of accounts and of invites: search, pages, many accounts. The first operator.

use super::support::{Person, between, new_email, percent};
use crate::prelude::*;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::any_database("dashboard/accounts/are_searched", search),
        Case::own_server("dashboard/accounts/have_pages", pages),
        Case::any_database("dashboard/accounts/all_invites_are_seen_and_revoked", invites),
        Case::own_server("dashboard/accounts/the_first_operator_has_an_account", first_operator),
    ]
}

const PATH: &str = "/dashboard/operator";

/// The ids of the accounts on a page of the list.
fn listed(page: &str) -> Vec<&str> {
    let links = page.split("data-label=\"Name\"><a href=\"/dashboard/operator/accounts/").skip(1);
    links.filter_map(|rest| rest.split('"').next()).collect()
}

async fn search(stage: Stage) -> Result<()> {
    let app = &*stage.service().await?;
    let mut operator = Person::invited(app, &new_email("op"), &["--operator"]).await?;
    let tag = format!("{:08x}", rand::random::<u32>());
    let mut ids = Vec::new();
    for name in ["Straßenbau", "Café <b>", "ΟΔΟΣ", "請求書"] {
        let created = operator.post(PATH, &[("name", &format!("{name} {tag}"))]).await?.is(303)?;
        let (page, _) = created.location().split_once('?').context("a page")?;
        ids.push(page.rsplit('/').next().context("an id")?.to_owned());
    }
    let email = new_email("Ünal");
    Person::invited(app, &email, &["--account", &ids[1]]).await?;
    operator.post(&format!("{PATH}/accounts/{}/disable", ids[2]), &[]).await?.is(303)?;
    for (text, state, found) in [
        (format!("STRASSE {tag}"), "", Some(0)),
        (format!("{tag} cafe"), "", Some(1)),
        (format!("{tag} <B>"), "active", Some(1)),
        (format!("οδός {tag}"), "", Some(2)),
        (format!("οδός {tag}"), "disabled", Some(2)),
        (format!("οδός {tag}"), "active", None),
        (format!("請求 {tag}"), "", Some(3)),
        (ids[3].to_uppercase(), "", Some(3)),
        (email.to_uppercase(), "", Some(1)),
        (email.replace('ü', "u"), "unknown", Some(1)),
        (format!("{tag} %"), "", None),
        (format!("{tag} ' OR 1=1 --"), "", None),
    ] {
        let page = operator.get(&format!("{PATH}?q={}&state={state}", percent(&text))).await?.is(200)?.body;
        let expected: Vec<&str> = found.iter().map(|index: &usize| ids[*index].as_str()).collect();
        ensure!(listed(&page) == expected, "{text} {state}: {:?}", listed(&page));
        ensure!(found.is_some() || page.contains("No accounts match."), "{page}");
    }
    let page = operator.get(&format!("{PATH}?q={tag}&state=disabled")).await?.is(200)?.body;
    ensure!(listed(&page) == [&ids[2]], "{:?}", listed(&page));
    ensure!(page.contains("<option value=\"disabled\" selected>"), "the filter is not shown");
    Ok(())
}

async fn pages(stage: Stage) -> Result<()> {
    let stand_in = stage.start_stand_in(None).await?;
    let app = &stand_in.app;
    let mut operator = Person::invited(app, &new_email("op"), &["--operator"]).await?;
    app.execute(
        "INSERT INTO accounts (id, name, quota, created_at) \
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) \
         SELECT 'acc_many' || i, 'Many ' || i, i, 1700000000 FROM n",
    )
    .await?;
    app.execute(
        "INSERT INTO users (id, email, account_id, operator, password, created_at) \
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) \
         SELECT 'usr_many' || i, 'user' || i || '@many.example', 'acc_many' || i, 0, 'x', 1700000000 FROM n",
    )
    .await?;
    let began = Instant::now();
    let page = operator.get(PATH).await?.is(200)?.body;
    let all = began.elapsed();
    let total = app.execute("SELECT count(*) FROM accounts").await?.context("a number")?;
    ensure!(total > 5_000 && page.contains(&format!("1–50 of 5,{:03} accounts", total - 5_000)), "{page}");
    ensure!(listed(&page).len() == 50, "{} rows", listed(&page).len());
    let last = operator.get(&format!("{PATH}?page=101")).await?.is(200)?.body;
    ensure!(
        listed(&last).len() == usize::try_from(total - 5_000)? && !last.contains("rel=\"next\""),
        "{last}"
    );
    for wild in ["page=0", "page=-1", "page=99999999999999999999", "page=x", "state=%00", "q=%00"] {
        operator.get(&format!("{PATH}?{wild}")).await?.is(200)?;
    }
    let began = Instant::now();
    let page = operator.get(&format!("{PATH}?q=USER49+many")).await?.is(200)?.body;
    let searched = began.elapsed();
    ensure!(page.contains("1–50 of 111 accounts") && page.contains("q=USER49+many&#38;page=2"), "{page}");
    let third = operator.get(&format!("{PATH}?q=USER49+many&page=3")).await?.is(200)?.body;
    ensure!(listed(&third).len() == 11, "{:?}", listed(&third));
    // A new account is compared with all of them.
    let began = Instant::now();
    operator.post(PATH, &[("name", "many 4999")]).await?.is(422)?;
    operator.post(PATH, &[("name", "One more")]).await?.is(303)?;
    println!("5,000 accounts: {all:?} to list, {searched:?} to search, {:?} to create", began.elapsed());
    Ok(())
}

async fn invites(stage: Stage) -> Result<()> {
    let (app, account) = stage.account(Quota::Of(1)).await?;
    let mut owner = Person::of(&app, &account).await?;
    let mut operator = Person::invited(&app, &new_email("op"), &["--operator"]).await?;
    let member_email = new_email("member");
    let mut member = Person::invited(&app, &member_email, &["--account", &account.id]).await?;
    let by_owner = new_email("by-owner");
    let form = [("email", by_owner.as_str()), ("role", "owner")];
    let created = owner.post("/dashboard/people/invite", &form).await?.is(303)?;
    let link = between(&owner.get(created.location()).await?.body, "Invite link\">", "<")?;
    let (operator_email, account_email) = (new_email("new-op"), new_email("by-command"));
    let links = [
        (by_owner, link.replacen(&app.base_url, "", 1), "Owner"),
        (operator_email.clone(), app.operator.invite(&operator_email, &["--operator"]).await?, "Operator"),
        (
            account_email.clone(),
            app.operator.invite(&account_email, &["--account", &account.id]).await?,
            "Member",
        ),
        (member_email.clone(), app.operator.invite(&member_email, &[]).await?, "New password"),
    ];
    let mut guest = Person::signed_out(&app)?;
    for (email, link, kind) in &links {
        guest.get(link).await?.is(200)?;
        let mut page = operator.get("/dashboard/operator/invites").await?.is(200)?.body;
        // There are invites of other cases too.
        while !page.contains(email.as_str()) {
            let next = between(&page, "/dashboard/operator/invites?page=", "\" rel=\"next\"")?;
            page = operator.get(&format!("/dashboard/operator/invites?page={next}")).await?.is(200)?.body;
        }
        let (_, row) = page.split_once(email.as_str()).context("the row")?;
        let row = row.split("</tr>").next().unwrap_or_default();
        ensure!(row.contains(kind), "{email} is no {kind}: {row}");
        let id = between(row, "/dashboard/operator/invites/", "/")?;
        let revoke = format!("/dashboard/operator/invites/{id}/revoke");
        member.post(&revoke, &[]).await?.is(404)?;
        operator.post(&revoke, &[]).await?.is(303)?;
        operator.post(&revoke, &[]).await?.is(404)?;
        let page = guest.get(link).await?.is(410)?.body;
        ensure!(page.contains("This invite was revoked."), "{page}");
        let fields = [("password", super::support::PASSWORD), ("again", super::support::PASSWORD)];
        let page = guest.post(link, &fields).await?;
        ensure!(page.status == 410 || page.status == 403, "a revoked link is accepted: {}", page.status);
    }
    // The member's password is as before.
    member.get("/dashboard/keys").await?.is(200)?;
    let page = operator.get(&format!("/dashboard/operator/accounts/{}", account.id)).await?.is(200)?.body;
    ensure!(!page.contains("Pending invites"), "{page}");
    Ok(())
}

async fn first_operator(stage: Stage) -> Result<()> {
    let stand_in = stage.start_stand_in(None).await?;
    let app = &stand_in.app;
    let invite = |email: String, target: &'static [&'static str]| async move {
        Person::invited(app, &email, target).await
    };
    let mut first = invite(new_email("first"), &["--operator", "--first"]).await?;
    ensure!(first.get("/dashboard").await?.is(200)?.body.contains("Overview"), "no account to work in");
    first.new_template("t", "x").await?;
    let (_, key) = first.new_key("k").await?;
    let target = app.target(&stand_in.account).with_key(&key);
    target.renders().await?;
    let accounts = app.operator.run(&["account", "list"]).await?;
    let names: Vec<_> = accounts.as_array().context("a list")?.iter().map(|it| it["name"].clone()).collect();
    ensure!(names.iter().filter(|name| *name == "default").count() == 1, "{names:?}");
    // A second operator has no account of its own.
    ensure!(
        app.operator.invite(&new_email("x"), &["--operator", "--first"]).await.is_err(),
        "a second first operator"
    );
    let mut second = invite(new_email("second"), &["--operator"]).await?;
    ensure!(second.get("/dashboard").await?.is(303)?.location() == "/dashboard/operator", "an account");
    Ok(())
}
