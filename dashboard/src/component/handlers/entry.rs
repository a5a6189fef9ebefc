//! Coming in and going out.
//!
//! Invariant: a wrong password, an unknown address and a disabled person cannot be told apart, by
//! the text or by the time it takes.

use platen_component::platform;
use platen_shared::{email::Email, token::Token};

use crate::{
    component::{
        answer::Answer,
        context::{Context, done},
        page_error::PageError,
    },
    cookies::Cookie,
    form::{Field, Form},
    pages::{
        Section,
        entry::{Invite, SignIn},
    },
    password::{BadPassword, Password},
    throttle::{self, Subject},
};

const WRONG: &str = "The e-mail address or the password is not right.";

pub(in crate::component) fn home(c: &Context<'_>) -> Result<Answer, PageError> {
    let place = if c.current_user()?.account.is_some() { "keys" } else { "operator" };
    Ok(Answer::redirect(&format!("/dashboard/{place}")))
}

pub(in crate::component) fn sign_in_page(c: &Context<'_>) -> Result<Answer, PageError> {
    if c.current_user.is_some() {
        return home(c);
    }
    c.page(&SignIn { layout: c.layout("Sign in", Section::Outside), email: Field::default() })
}

pub(in crate::component) async fn sign_in(c: &Context<'_>, form: &Form) -> Result<Answer, PageError> {
    let typed = form.text("email");
    let again = |error: String| -> Result<Answer, PageError> {
        let email = Field { value: typed.chars().take(300).collect(), error };
        c.page(&SignIn { layout: c.layout("Sign in", Section::Outside), email })
    };
    let Ok(email) = Email::parse(&typed) else { return Ok(again(WRONG.to_owned())?.status(422)) };
    let subjects = [Subject::email(email.as_str()), Subject::address(&c.address())];
    for subject in &subjects {
        if let Some(seconds) = c.store.count_try(subject).await? {
            return Ok(again(throttle::wait_text(seconds))?
                .status(429)
                .with("retry-after", seconds.to_string()));
        }
    }
    let stored = c.store.credentials(email.as_str()).await?;
    let hash = stored.as_ref().map(|(_, hash)| hash.as_str());
    if !Password::typed(form.get("password").unwrap_or_default()).matches(hash) {
        return Ok(again(WRONG.to_owned())?.status(422));
    }
    let Some((user, _)) = stored else { return Ok(again(WRONG.to_owned())?.status(422)) };
    let [email, address] = &subjects;
    c.store.forget_tries(email, address).await?;
    let token = c.store.begin_session(&user, &c.origin(), c.session.as_ref(), c.settings.lifetimes).await?;
    Ok(come_in(c, &token))
}

pub(in crate::component) async fn invite_page(c: &Context<'_>, token: &str) -> Result<Answer, PageError> {
    invite_form(c, token, Field::default(), Field::default()).await
}

pub(in crate::component) async fn accept_invite(
    c: &Context<'_>,
    token: &str,
    form: &Form,
) -> Result<Answer, PageError> {
    let secret = Token::parse(token).ok_or(PageError::BadInvite)?;
    let email = c.store.invited(&secret).await?.ok_or(PageError::BadInvite)?;
    let (typed, again) = (form.get("password").unwrap_or_default(), form.get("again").unwrap_or_default());
    let password = match Password::new(typed, again, &email) {
        Ok(password) => password,
        Err(error) => {
            let (first, second) = beside(error);
            return Ok(invite_form(c, token, first, second).await?.status(422));
        }
    };
    let hash = password.hash(platform::random());
    let user = c.store.accept_invite(&secret, &hash).await?.ok_or(PageError::BadInvite)?;
    let session = c.store.begin_session(&user, &c.origin(), c.session.as_ref(), c.settings.lifetimes).await?;
    Ok(come_in(c, &session))
}

pub(in crate::component) async fn sign_out(c: &Context<'_>) -> Result<Answer, PageError> {
    if let Some(token) = &c.session {
        c.store.end_session(token).await?;
    }
    let answer = done("/dashboard/sign-in", "signed-out");
    Ok(answer.with("set-cookie", Cookie::Session.unset(c.head.secure)))
}

/// The error of a new password, beside the field it is about.
pub(super) fn beside(error: BadPassword) -> (Field, Field) {
    let field = Field::wrong("", &error);
    match error {
        BadPassword::Unlike => (Field::default(), field),
        BadPassword::Length | BadPassword::Email => (field, Field::default()),
    }
}

async fn invite_form(
    c: &Context<'_>,
    token: &str,
    password: Field,
    again: Field,
) -> Result<Answer, PageError> {
    let secret = Token::parse(token).ok_or(PageError::BadInvite)?;
    let email = c.store.invited(&secret).await?.ok_or(PageError::BadInvite)?;
    // The page's head is that of somebody who is not signed in, whoever opens the link.
    let mut layout = c.layout("Welcome", Section::Outside);
    layout.person = None;
    c.page(&Invite { layout, email, token: token.to_owned(), password, again })
}

/// With a new session, and without the cookie of the forms before it.
fn come_in(c: &Context<'_>, token: &Token) -> Answer {
    Answer::redirect("/dashboard")
        .with("set-cookie", Cookie::Session.set(token, c.head.secure))
        .with("set-cookie", Cookie::Form.unset(c.head.secure))
}
