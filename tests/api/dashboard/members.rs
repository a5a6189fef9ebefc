//! Owners and members of an account: what members may not do, and invites by owners.

use super::support::{PASSWORD, Person, accept_invite, between, new_email, set_password};
use crate::prelude::*;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::any_database("dashboard/members/take_nothing_away", takes_nothing_away),
        Case::any_database("dashboard/members/are_managed_by_owners", owner_manages_people),
        Case::any_database("dashboard/members/owners_invite_new_users_only", invites_of_owners),
        Case::any_database("dashboard/members/of_other_accounts_are_not_found", foreign_ids),
    ]
}

pub(super) const PEOPLE: &str = "/dashboard/people";

/// An owner and a member of an account, with their addresses.
pub(super) async fn people(app: &Service, account: &Account) -> Result<[(Person, String); 2]> {
    let (first, second) = (new_email("owner"), new_email("member"));
    // The first user is an owner, whatever the invite says.
    let owner = Person::invited(app, &first, &["--account", &account.id, "--role", "member"]).await?;
    let member = Person::invited(app, &second, &["--account", &account.id]).await?;
    Ok([(owner, first), (member, second)])
}

/// The id of a user, from a page that lists users.
fn id_of(page: &str, email: &str) -> Result<String> {
    let (rows, _) = page.split_once(&row_of(email)).with_context(|| format!("no {email} in {page}"))?;
    let (_, row) = rows.rsplit_once("<tr id=\"").context("a row")?;
    Ok(row.split('"').next().unwrap_or_default().to_owned())
}

/// The beginning of the cell of a user in a list.
pub(super) fn row_of(email: &str) -> String {
    format!("<th scope=\"row\" title=\"{email}\">")
}

pub(super) async fn ids(person: &mut Person, emails: [&str; 2]) -> Result<[String; 2]> {
    let page = person.get(PEOPLE).await?.is(200)?.body;
    Ok([id_of(&page, emails[0])?, id_of(&page, emails[1])?])
}

/// The number of owners of an account.
pub(super) async fn owners(app: &Service, account: &Account) -> Result<i64> {
    let sql = format!("SELECT count(*) FROM users WHERE account_id = '{}' AND is_owner", account.id);
    app.execute(&sql).await?.context("a number")
}

async fn takes_nothing_away(stage: Stage) -> Result<()> {
    let (app, account) = stage.account(Quota::Of(20)).await?;
    let [(mut owner, owner_email), (mut member, member_email)] = people(&app, &account).await?;
    let [owner_id, member_id] = ids(&mut owner, [&owner_email, &member_email]).await?;
    let link = owner.post(&format!("{PEOPLE}/invite"), &[("email", &new_email("new"))]).await?.is(303)?;
    let page = owner.get(link.location()).await?.is(200)?.body;
    let invite = between(&page, &format!("{PEOPLE}/invites/"), "/")?;
    // A member creates, renames, saves, restores and duplicates.
    let (key, secret) = member.new_key("web").await?;
    let template = member.new_template("card", "<p>one</p>").await?;
    let (k, t) = (format!("/dashboard/keys/{key}"), format!("/dashboard/templates/{template}"));
    member.post(&format!("{k}/name"), &[("name", "web server")]).await?.is(303)?;
    member.post(&t, &[("name", "card"), ("html", "<p>two</p>")]).await?.is(303)?;
    member.post(&format!("{t}/versions/1/restore"), &[]).await?.is(303)?;
    member.post(&format!("{t}/duplicate"), &[]).await?.is(303)?;
    member.post("/dashboard/playground/render", &[("source", "html"), ("html", "x")]).await?.is(200)?;
    // What takes something away is not offered.
    for (path, hidden) in [
        ("/dashboard/keys".to_owned(), &["/disable\"", "/enable\"", "/delete\""][..]),
        (k.clone(), &["/disable\"", "/delete\"", "/expiry\"", "/roll\""]),
        (t.clone(), &["/delete\""]),
        (PEOPLE.to_owned(), &["/invite\"", "/role\"", "/remove\"", "/revoke\""]),
    ] {
        let (of_member, of_owner) =
            (member.get(&path).await?.is(200)?.body, owner.get(&path).await?.is(200)?.body);
        for part in hidden {
            ensure!(!of_member.contains(part), "{path} offers {part} to a member: {of_member}");
            ensure!(
                of_owner.contains(part) || *part == "/enable\"",
                "{path} does not offer {part} to an owner"
            );
        }
    }
    // By hand, with a valid token, it is refused with a page of the site.
    for (path, fields) in [
        (format!("{k}/expiry"), &[("expires", "2999-12-31")][..]),
        (format!("{k}/roll"), &[("grace", "0")]),
        (format!("{k}/disable"), &[]),
        (format!("{k}/enable"), &[]),
        (format!("{k}/delete"), &[]),
        (format!("{t}/delete"), &[]),
        (format!("{PEOPLE}/invite"), &[("email", "friend@example.com"), ("role", "owner")]),
        (format!("{PEOPLE}/invites/{invite}/revoke"), &[]),
        (format!("{PEOPLE}/{member_id}/role"), &[("role", "owner")]),
        (format!("{PEOPLE}/{owner_id}/role"), &[("role", "member")]),
        (format!("{PEOPLE}/{owner_id}/remove"), &[]),
        (format!("{PEOPLE}/{member_id}/remove"), &[]),
        // What does not exist is refused in the same way.
        ("/dashboard/keys/key_x/delete".to_owned(), &[]),
        ("/dashboard/templates/tpl_x/delete".to_owned(), &[]),
        (format!("{PEOPLE}/usr_x/remove"), &[]),
    ] {
        let refused = member.post(&path, fields).await?.is(403).with_context(|| path.clone())?;
        ensure!(
            refused.body.contains("Only an owner of this account may do this")
                && refused.body.contains("<nav id=\"nav\" aria-label=\"Main\""),
            "{path}: {}",
            refused.body
        );
    }
    for path in [format!("{k}/delete"), format!("{t}/delete"), format!("{PEOPLE}/{member_id}/remove")] {
        member.get(&path).await?.is(403).with_context(|| path.clone())?;
        owner.get(&path).await?.is(200).with_context(|| path.clone())?;
    }
    // Nothing has changed.
    let target = app.target(&account).with_key(&secret);
    target.renders().await?;
    let page = owner.get(PEOPLE).await?.is(200)?.body;
    ensure!(page.contains(&owner_email) && page.contains(&invite) && !page.contains("friend@"), "{page}");
    ensure!(owners(&app, &account).await? == 1, "the roles have changed");
    // The owner may.
    owner.post(&format!("{k}/disable"), &[]).await?.is(303)?;
    owner.post(&format!("{k}/enable"), &[]).await?.is(303)?;
    owner.post(&format!("{k}/delete"), &[]).await?.is(303)?;
    owner.post(&format!("{t}/delete"), &[]).await?.is(303)?;
    target.minimal().send().await?.error(401, "Invalid API key")
}

async fn owner_manages_people(stage: Stage) -> Result<()> {
    let (app, account) = stage.account(Quota::Of(5)).await?;
    let browser = Browser::start().await?;
    let page = browser.page().await?;
    let email = new_email("owner");
    accept_invite(&page, &app, &email, &["--account", &account.id]).await?;
    page.press("People").await?.shows("There are no pending invites.").await?;
    let guest_email = new_email("guest");
    page.submit(&[("#email", "no address")], "Create invite").await?;
    page.shows("An e-mail address looks like").await?;
    // A revoked link says so, also after the address was invited again.
    page.submit(&[("#email", &guest_email)], "Create invite").await?;
    let revoked = page.text("document.querySelector('#link').textContent").await?;
    page.press(&format!("Revoke the invite of {guest_email}")).await?.shows("Invite revoked.").await?;
    let guest = browser.page().await?;
    guest.go(&revoked).await?.shows("This invite was revoked").await?;
    page.fill("#email", &guest_email).await?;
    page.choose("#role", "member").await?;
    page.press("Create invite").await?;
    let link = page.text("document.querySelector('#link').textContent").await?;
    guest.go(&revoked).await?.shows("This invite was revoked").await?;
    guest.go(&link).await?;
    set_password(&guest).await?;
    guest.shows("API Keys").await?;
    guest.go(&format!("{}{PEOPLE}", app.base_url)).await?;
    guest.shows("Ask an owner to invite or remove users.").await?;
    // Roles take effect with the next request.
    page.go(&format!("{}{PEOPLE}", app.base_url)).await?;
    page.press(&format!("Make owner {guest_email}")).await?.shows("Role changed.").await?;
    guest.go(&format!("{}{PEOPLE}", app.base_url)).await?;
    guest.press(&format!("Make member {email}")).await?.shows("Role changed.").await?;
    page.press(&format!("Make member {guest_email}")).await?;
    page.shows("Only an owner of this account may do this.").await?;
    // The only owner cannot become a member, and is not offered to.
    let offered = guest.eval("document.body.textContent.includes('Make member')").await?;
    ensure!(offered == false, "the only owner may become a member");
    guest.press(&format!("Remove {email}")).await?.shows(&format!("Remove {email}?")).await?;
    guest.press("Remove").await?.shows("User removed").await?;
    page.go(&format!("{}{PEOPLE}", app.base_url)).await?.shows("Sign in").await
}

async fn invites_of_owners(stage: Stage) -> Result<()> {
    let app = &*stage.service().await?;
    let (a, b) = (app.operator.account(Quota::Of(1)).await?, app.operator.account(Quota::Of(1)).await?);
    let [(mut owner, owner_email), (_, member_email)] = people(app, &a).await?;
    let [_, (_, other_email)] = people(app, &b).await?;
    let operator_email = new_email("op");
    Person::invited(app, &operator_email, &["--operator"]).await?;
    let invite = format!("{PEOPLE}/invite");
    // A link for a user who exists would set that user's password.
    for (email, error) in [
        (&owner_email, "The user is in this account already"),
        (&member_email, "The user is in this account already"),
        (&other_email, "cannot be invited by an owner"),
        (&operator_email, "cannot be invited by an owner"),
    ] {
        let refused = owner.post(&invite, &[("email", email), ("role", "owner")]).await?.is(422)?;
        ensure!(between(&refused.body, "id=\"email-error\">", "<")?.contains(error), "{}", refused.body);
    }
    // Nor does an owner replace the invite of another account, of an operator or for a new password.
    let elsewhere = [
        (new_email("b"), vec!["--account", b.id.as_str()]),
        (new_email("new-op"), vec!["--operator"]),
        (new_email("own-op"), vec!["--operator", "--account", a.id.as_str()]),
    ];
    for (email, target) in &elsewhere {
        let link = app.operator.invite(email, target).await?;
        owner.post(&invite, &[("email", email), ("operator", "1")]).await?.is(422)?;
        Person::signed_out(app)?.get(&link).await?.is(200)?;
    }
    ensure!(
        !owner.get(PEOPLE).await?.body.contains(&elsewhere[0].0),
        "an invite of another account is listed"
    );
    // Its own ones are replaced. The rights of an operator cannot be given.
    let email = new_email("twice");
    let first =
        owner.post(&invite, &[("email", &email), ("operator", "1"), ("role", "owner")]).await?.is(303)?;
    let first = between(&owner.get(first.location()).await?.body, "Invite link\">", "<")?;
    let second =
        owner.post(&invite, &[("email", &email), ("operator", "1"), ("role", "other")]).await?.is(303)?;
    let second = between(&owner.get(second.location()).await?.body, "Invite link\">", "<")?;
    let path = |link: &str| link.replacen(&app.base_url, "", 1);
    let mut guest = Person::signed_out(app)?;
    guest.get(&path(&first)).await?.is(410)?;
    guest.get(&path(&second)).await?.is(200)?;
    let fields = [("password", PASSWORD), ("again", PASSWORD)];
    guest.post(&path(&second), &fields).await?.is(303)?;
    guest.get("/dashboard/operator").await?.is(404)?;
    guest.post(&invite, &[("email", "x@example.com")]).await?.is(403)?;
    ensure!(owners(app, &a).await? == 1, "a role that does not exist is that of an owner");
    // The link of an owner's invite does not change a user who has come to exist in another way.
    let late = new_email("late");
    let link = owner.post(&invite, &[("email", &late)]).await?.is(303)?;
    let link = between(&owner.get(link.location()).await?.body, "Invite link\">", "<")?;
    let mut thief = Person::signed_out(app)?;
    thief.get(&path(&link)).await?.is(200)?;
    app.execute(&format!("UPDATE users SET email = '{late}' WHERE email = '{other_email}'")).await?;
    thief.post(&path(&link), &fields).await?.is(410)?;
    Ok(())
}

async fn foreign_ids(stage: Stage) -> Result<()> {
    let app = &*stage.service().await?;
    let (a, b) = (app.operator.account(Quota::Of(1)).await?, app.operator.account(Quota::Of(1)).await?);
    let [(mut attacker, _), _] = people(app, &a).await?;
    let [(mut owner, owner_email), (_, member_email)] = people(app, &b).await?;
    let [owner_id, member_id] = ids(&mut owner, [&owner_email, &member_email]).await?;
    let invited = owner.post(&format!("{PEOPLE}/invite"), &[("email", &new_email("new"))]).await?.is(303)?;
    let page = owner.get(invited.location()).await?.body;
    let invite = between(&page, &format!("{PEOPLE}/invites/"), "/")?;
    for id in [&owner_id, &member_id] {
        attacker.get(&format!("{PEOPLE}/{id}/remove")).await?.is(404)?;
        attacker.post(&format!("{PEOPLE}/{id}/remove"), &[]).await?.is(404)?;
        for role in ["owner", "member", "", "operator"] {
            attacker.post(&format!("{PEOPLE}/{id}/role"), &[("role", role)]).await?.is(404)?;
        }
    }
    attacker.post(&format!("{PEOPLE}/invites/{invite}/revoke"), &[]).await?.is(404)?;
    attacker.post(&format!("/dashboard/operator/invites/{invite}/revoke"), &[]).await?.is(404)?;
    let page = attacker.get(PEOPLE).await?.is(200)?.body;
    ensure!(!page.contains(&owner_email) && !page.contains(&member_email), "{page}");
    ensure!(owner.get(PEOPLE).await?.body.contains(&invite), "the invite is gone");
    ensure!(owners(app, &b).await? == 1, "the roles have changed");
    Ok(())
}
