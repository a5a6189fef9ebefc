//! The profile page: the password and the sessions of the user.

use platen_component::platform;

use super::sign_in;
use crate::{
    component::{
        answer::Answer,
        context::{Context, redirect_if_found, redirect_with_notice},
        page_error::PageError,
    },
    form::{Field, Form},
    pages::{Section, profile::ProfilePage},
    password::Password,
    throttle::{self, Subject},
};

const PATH: &str = "/dashboard/you";

pub(in crate::component) async fn page(c: &Context<'_>) -> Result<Answer, PageError> {
    show(c, Field::default(), (Field::default(), Field::default())).await
}

pub(in crate::component) async fn change_password(c: &Context<'_>, form: &Form) -> Result<Answer, PageError> {
    let current_user = c.current_user()?;
    let field = |name| form.get(name).unwrap_or_default();
    let current_error = |error: &str| show(c, Field::invalid("", error), Default::default());
    // Counted like sign-ins, because an open browser must not allow unlimited guesses either.
    let subject = Subject::email(&current_user.email);
    if let Some(seconds) = c.store.count_try(&subject).await? {
        return Ok(current_error(&throttle::wait_message(seconds)).await?.status(429));
    }
    let stored = c.store.credentials(&current_user.email).await?;
    if !Password::entered(field("current")).matches(stored.as_ref().map(|(_, hash)| hash.as_str())) {
        return Ok(current_error("The current password is incorrect").await?.status(422));
    }
    c.store.forget_tries(&subject, &Subject::address("")).await?;
    match Password::new(field("password"), field("again"), &current_user.email) {
        Ok(password) => {
            c.store.set_password(current_user, &password.hash(platform::random())).await?;
            Ok(redirect_with_notice(PATH, "password-changed"))
        }
        Err(error) => Ok(show(c, Field::default(), sign_in::password_fields(error)).await?.status(422)),
    }
}

pub(in crate::component) async fn end_session(c: &Context<'_>, id: &str) -> Result<Answer, PageError> {
    let found = c.store.end_session_of(c.current_user()?, id).await?;
    redirect_if_found(found, PATH, "session-ended")
}

pub(in crate::component) async fn end_other_sessions(c: &Context<'_>) -> Result<Answer, PageError> {
    let current_user = c.current_user()?;
    c.store.end_sessions(&current_user.user, Some(&current_user.session)).await?;
    Ok(redirect_with_notice(PATH, "sessions-ended"))
}

async fn show(
    c: &Context<'_>,
    current: Field,
    (password, repeated): (Field, Field),
) -> Result<Answer, PageError> {
    let current_user = c.current_user()?;
    let sessions = c.store.sessions(current_user, c.settings.lifetimes).await?;
    let layout = c.layout("Profile", Section::Profile);
    c.page(&ProfilePage { layout, email: current_user.email.clone(), sessions, current, password, repeated })
}
