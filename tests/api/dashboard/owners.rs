//! An account keeps an owner; operators among the people of an account.

use super::{
    members::{PEOPLE, ids, owners, people, row_of},
    support::{Person, new_email},
};
use crate::prelude::*;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::any_database("dashboard/members/an_account_keeps_an_owner", keeps_an_owner),
        Case::any_database("dashboard/members/operators_are_changed_by_operators", operators_are_safe),
        Case::any_database("dashboard/members/an_operator_works_in_an_account_as_a_guest", visiting_operator),
    ]
}

/// Two owners who remove or demote each other at the same time: one of them stays an owner.
async fn keeps_an_owner(stage: Stage) -> Result<()> {
    let app = &*stage.service().await?;
    for round in 0..6 {
        let account = app.operator.account(Quota::Of(1)).await?;
        let emails = [new_email("one"), new_email("two")];
        let mut two = Vec::new();
        for email in &emails {
            two.push(Person::invited(app, email, &["--account", &account.id, "--role", "owner"]).await?);
        }
        let ids = ids(&mut two[0], [&emails[0], &emails[1]]).await?;
        two[1].get(PEOPLE).await?;
        let attack = async |person: &Person, id: &str, removes: bool| -> Result<u16> {
            let (action, fields) =
                if removes { ("remove", &[][..]) } else { ("role", &[("role", "member")][..]) };
            Ok(person.clone().post(&format!("{PEOPLE}/{id}/{action}"), fields).await?.status)
        };
        let removes = round % 2 == 0;
        let statuses = tokio::try_join!(
            attack(&two[0], &ids[1], removes),
            attack(&two[1], &ids[0], removes || round % 3 == 0),
            attack(&two[0], &ids[0], false),
            attack(&two[1], &ids[1], false),
        )?;
        let owners = owners(app, &account).await?;
        ensure!(owners == 1, "{owners} owners are left after {statuses:?}");
    }
    // An operator removes the last user of an account, but no owner whom other users need.
    let account = app.operator.account(Quota::Of(1)).await?;
    let [(mut owner, owner_email), (mut member, member_email)] = people(app, &account).await?;
    let [owner_id, member_id] = ids(&mut owner, [&owner_email, &member_email]).await?;
    let mut operator = Person::invited(app, &new_email("op"), &["--operator"]).await?;
    let path = format!("/dashboard/operator/accounts/{}/people", account.id);
    for (action, fields) in [("remove", &[][..]), ("role", &[("role", "member")])] {
        let refused = operator.post(&format!("{path}/{owner_id}/{action}"), fields).await?.is(409)?;
        ensure!(refused.body.contains("This user is the only owner of the account."), "{}", refused.body);
    }
    operator.post(&format!("{path}/{member_id}/role"), &[("role", "owner")]).await?.is(303)?;
    operator.post(&format!("{path}/{owner_id}/role"), &[("role", "member")]).await?.is(303)?;
    member.post(&format!("{PEOPLE}/{owner_id}/remove"), &[]).await?.is(303)?;
    owner.get("/dashboard/keys").await?.is(303)?;
    // An owner does not remove itself.
    member.post(&format!("{PEOPLE}/{member_id}/remove"), &[]).await?.is(404)?;
    operator.post(&format!("{path}/{member_id}/remove"), &[]).await?.is(303)?;
    let again = Person::of(app, &account).await?;
    drop(again);
    ensure!(owners(app, &account).await? == 1, "the first user is no owner");
    Ok(())
}

async fn operators_are_safe(stage: Stage) -> Result<()> {
    let (app, account) = stage.account(Quota::Of(1)).await?;
    let [(mut owner, owner_email), _] = people(&app, &account).await?;
    let operator_email = new_email("op");
    let target = ["--operator", "--account", &account.id, "--role", "member"];
    let mut operator = Person::invited(&app, &operator_email, &target).await?;
    let [operator_id, owner_id] = ids(&mut owner, [&operator_email, &owner_email]).await?;
    for (action, fields) in [("remove", &[][..]), ("role", &[("role", "owner")])] {
        let refused = owner.post(&format!("{PEOPLE}/{operator_id}/{action}"), fields).await?.is(409)?;
        ensure!(refused.body.contains("This user is an operator."), "{}", refused.body);
    }
    // Owners have no pages of operators.
    for path in ["", "/retention", "/invites", "/audit"] {
        owner.get(&format!("/dashboard/operator{path}")).await?.is(404)?;
    }
    // An operator may do what owners may, whatever its role.
    operator.get(PEOPLE).await?.is(200)?;
    operator.post(&format!("{PEOPLE}/invite"), &[("email", &new_email("x"))]).await?.is(303)?;
    operator.post(&format!("{PEOPLE}/{owner_id}/role"), &[("role", "member")]).await?.is(409)?;
    operator.post(&format!("{PEOPLE}/{operator_id}/role"), &[("role", "owner")]).await?.is(303)?;
    operator.post(&format!("{PEOPLE}/{owner_id}/role"), &[("role", "member")]).await?.is(303)?;
    owner.post(&format!("{PEOPLE}/invite"), &[("email", &new_email("y"))]).await?.is(403)?;
    Ok(())
}

async fn visiting_operator(stage: Stage) -> Result<()> {
    let app = &*stage.service().await?;
    let (own, other) = (app.operator.account(Quota::Of(1)).await?, app.operator.account(Quota::Of(1)).await?);
    let email = new_email("op");
    let mut operator = Person::invited(app, &email, &["--operator", "--account", &own.id]).await?;
    let [(mut owner, owner_email), _] = people(app, &other).await?;
    operator.new_key("of the own account").await?;
    operator.post(&format!("/dashboard/operator/accounts/{}/join", other.id), &[]).await?.is(303)?;
    let page = operator.get(PEOPLE).await?.is(200)?.body;
    ensure!(page.contains(&row_of(&owner_email)) && !page.contains(&row_of(&email)), "{page}");
    ensure!(!owner.get(PEOPLE).await?.body.contains(&email), "the operator is listed as a member");
    operator.new_key("of the other account").await?;
    let keys = owner.get("/dashboard/keys").await?.body;
    ensure!(keys.contains("of the other account") && !keys.contains("of the own account"), "{keys}");
    // The own account is still the operator's.
    ensure!(owners(app, &own).await? == 1, "the own account has no owner");
    operator.post(&format!("/dashboard/operator/accounts/{}/join", own.id), &[]).await?.is(303)?;
    ensure!(
        operator.get(PEOPLE).await?.body.contains(&row_of(&email)),
        "the operator is not in its own account"
    );
    operator.post("/dashboard/operator/accounts/acc_x/join", &[]).await?.is(404)?;
    Ok(())
}
