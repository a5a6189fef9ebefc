//! The person's own page.

use platen_component::platform;

use super::entry;
use crate::{
    component::{
        answer::Answer,
        context::{Context, done},
        page_error::PageError,
    },
    form::{Field, Form},
    pages::{Section, person::You},
    password::Password,
    throttle::{self, Subject},
};

const PAGE: &str = "/dashboard/you";

pub(in crate::component) async fn page(c: &Context<'_>) -> Result<Answer, PageError> {
    show(c, Field::default(), (Field::default(), Field::default())).await
}

pub(in crate::component) async fn change_password(c: &Context<'_>, form: &Form) -> Result<Answer, PageError> {
    let current_user = c.current_user()?;
    let none = || (Field::default(), Field::default());
    let field = |name| form.get(name).unwrap_or_default();
    // Whoever sits at an open browser may not guess without end either.
    let subject = Subject::email(&current_user.email);
    if let Some(seconds) = c.store.count_try(&subject).await? {
        return Ok(show(c, Field::wrong("", &throttle::wait_text(seconds)), none()).await?.status(429));
    }
    let stored = c.store.credentials(&current_user.email).await?;
    if !Password::typed(field("current")).matches(stored.as_ref().map(|(_, hash)| hash.as_str())) {
        return Ok(show(c, Field::wrong("", "This is not your password"), none()).await?.status(422));
    }
    c.store.forget_tries(&subject, &Subject::address("")).await?;
    match Password::new(field("password"), field("again"), &current_user.email) {
        Ok(password) => {
            c.store.set_password(current_user, &password.hash(platform::random())).await?;
            Ok(done(PAGE, "password-changed"))
        }
        Err(error) => Ok(show(c, Field::default(), entry::beside(error)).await?.status(422)),
    }
}

pub(in crate::component) async fn end_session(c: &Context<'_>, id: &str) -> Result<Answer, PageError> {
    if c.store.end_session_of(c.current_user()?, id).await? {
        Ok(done(PAGE, "session-ended"))
    } else {
        Err(PageError::NotFound)
    }
}

pub(in crate::component) async fn end_others(c: &Context<'_>) -> Result<Answer, PageError> {
    let current_user = c.current_user()?;
    c.store.end_other_sessions(current_user).await?;
    Ok(done(PAGE, "sessions-ended"))
}

async fn show(
    c: &Context<'_>,
    current: Field,
    (password, again): (Field, Field),
) -> Result<Answer, PageError> {
    let current_user = c.current_user()?;
    let sessions = c.store.sessions(current_user, c.settings.lifetimes).await?;
    let layout = c.layout("You", Section::You);
    c.page(&You { layout, email: current_user.email.clone(), sessions, current, password, again })
}
