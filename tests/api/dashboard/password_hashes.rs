//! Stored password hashes with other parameters than the current ones.

use anyhow::{Result, ensure};
use platen_tests::{case::Case, operator::Quota, service::Service, suite::Stage};

use super::support::{Person, new_email};

pub(crate) fn cases() -> Vec<Case> {
    vec![Case::any_database("dashboard/password_hashes/an_outdated_hash_is_replaced_at_sign_in", replaced)]
}

const PASSWORD: &str = "correct horse";
/// A hash of that password with 8 MiB and one pass.
const OTHER_PARAMETERS: &str =
    "$argon2id$v=19$m=8192,t=1,p=1$BwcHBwcHBwcHBwcHBwcHBw$U1lV4uDIHlZJ5QZiMc9N7rUdH3v8exBr9n/KsrezaeM";
/// A hash of that password with the current parameters, in hexadecimal digits as earlier versions stored it.
const HEXADECIMAL: &str = "$argon2id$v=19$m=19456,t=2,p=1$07070707070707070707070707070707$7132e6a6028b7abb94eb36beb767146777cd7c75426211a827c8a7a5c50d7307";

async fn replaced(stage: Stage) -> Result<()> {
    let app = &*stage.service().await?;
    let account = app.operator.account(Quota::Of(1)).await?;
    for outdated in [OTHER_PARAMETERS, HEXADECIMAL] {
        let email = new_email("hash");
        Person::invited(app, &email, &["--account", &account.id]).await?;
        app.execute(&format!("UPDATE users SET password = '{outdated}' WHERE email = '{email}'")).await?;
        let current = "$argon2id$v=19$m=19456,t=2,p=1$%";

        ensure!(sign_in(app, &email, "wrong horse").await? == 422, "a wrong password signs in");
        ensure!(is_stored(app, &email, outdated).await, "a wrong password replaces the hash");
        ensure!(sign_in(app, &email, PASSWORD).await? == 303, "{outdated} does not match");
        ensure!(!is_stored(app, &email, outdated).await, "{outdated} is still stored");
        ensure!(is_stored(app, &email, current).await, "the new hash has other parameters");
        ensure!(sign_in(app, &email, PASSWORD).await? == 303, "the new hash does not match");
        ensure!(sign_in(app, &email, "wrong horse").await? == 422, "the new hash matches a wrong password");
    }
    Ok(())
}

async fn sign_in(app: &Service, email: &str, password: &str) -> Result<u16> {
    let mut person = Person::signed_out(app)?;
    person.get("/dashboard/sign-in").await?.is(200)?;
    Ok(person.post("/dashboard/sign-in", &[("email", email), ("password", password)]).await?.status)
}

/// Whether the user's stored hash matches a `LIKE` pattern. Statements give no rows here, so this one violates
/// `NOT NULL` if it finds the row.
async fn is_stored(app: &Service, email: &str, pattern: &str) -> bool {
    let sql = format!("UPDATE users SET email = NULL WHERE email = '{email}' AND password LIKE '{pattern}'");
    app.execute(&sql).await.is_err()
}
