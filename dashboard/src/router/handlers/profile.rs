//! The profile page: the password and the sessions of the user.

use platen_spin::platform;

use super::sign_in;
use crate::{
    cookies::Theme,
    form::{Field, Form},
    next,
    pages::{Section, users::ProfilePage},
    password::Password,
    router::{
        context::{Context, count_try, redirect_if_found, redirect_with_notice},
        page_error::{PageError, PageResult},
        response::PageResponse,
    },
    throttle::{self, Subject},
};

const PATH: &str = "/dashboard/you";

pub(crate) async fn page(context: &Context<'_>) -> PageResult {
    show(context, Field::default(), Default::default()).await
}

/// Keeps the theme in the browser, and returns to the page with the form.
pub(crate) fn set_theme(context: &Context<'_>, form: &Form) -> PageResult {
    let theme = form.get("theme").and_then(Theme::find).ok_or(PageError::NotFound)?;
    let target = form.get(next::FIELD).and_then(next::checked).unwrap_or("/dashboard");
    Ok(PageResponse::redirect(target).with_header("set-cookie", theme.set(context.head.secure)))
}

pub(crate) async fn change_password(context: &Context<'_>, form: &Form) -> PageResult {
    let current_user = context.current_user()?;
    let field = |name| form.get(name).unwrap_or_default();
    let current_error = |error: &str| show(context, Field::invalid("", error), Default::default());
    // Counted like sign-ins, because an open browser must not allow unlimited guesses either.
    let subject = Subject::email_from(&current_user.email, &context.address());
    if let Some(seconds) = count_try(&context.store, &subject).await? {
        return Ok(current_error(&throttle::wait_message(seconds)).await?.with_status(429));
    }
    let stored = context.store.credentials(&current_user.email).await?;
    if !Password::entered(field("current")).matches(stored.as_ref().map(|(_, hash)| hash.as_str())) {
        return Ok(current_error("The current password is incorrect").await?.with_status(422));
    }
    context.store.delete_sign_ins(&subject.hash, throttle::WINDOW_SECONDS).await?;
    match Password::new(field("password"), field("again"), &current_user.email, Some(field("current"))) {
        Ok(password) => {
            context.store.set_password(current_user, &password.hash(platform::random())).await?;
            Ok(redirect_with_notice(PATH, "password-changed"))
        }
        Err(error) => {
            Ok(show(context, Field::default(), sign_in::password_fields(error)).await?.with_status(422))
        }
    }
}

pub(crate) async fn end_session(context: &Context<'_>, id: &str) -> PageResult {
    let found = context.store.end_session_of(context.current_user()?, id).await?;
    redirect_if_found(found, PATH, "session-ended")
}

pub(crate) async fn end_other_sessions(context: &Context<'_>) -> PageResult {
    let current_user = context.current_user()?;
    context.store.end_other_sessions(current_user).await?;
    Ok(redirect_with_notice(PATH, "sessions-ended"))
}

async fn show(context: &Context<'_>, current: Field, (password, repeated): (Field, Field)) -> PageResult {
    let current_user = context.current_user()?;
    let sessions = context.store.sessions(current_user, context.settings.lifetimes).await?;
    let layout = context.layout("Profile", Section::Profile);
    context.page(&ProfilePage { layout, user: current_user.clone(), sessions, current, password, repeated })
}
