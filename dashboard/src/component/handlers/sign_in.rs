//! Sign-in, invites and sign-out.
//!
//! Invariant: the responses to a wrong password, an unknown e-mail address and a disabled user are equal in
//! text and, as long as the stored hash has the current parameters, in time.

use platen_component::platform;
use platen_shared::{email::Email, id::UserId, token::Token};

use crate::{
    component::{
        answer::Answer,
        context::{Context, redirect_with_notice},
        page_error::PageError,
    },
    cookies::Cookie,
    form::{Field, Form},
    pages::{
        Section,
        sign_in::{InvitePage, SignInPage},
    },
    password::{self, InvalidPassword, Password},
    throttle::{self, Subject},
};

const WRONG_CREDENTIALS: &str = "Incorrect e-mail address or password.";
/// Characters of an entered e-mail address that are shown again.
const MAX_EMAIL_CHARS: usize = 300;

pub(in crate::component) fn home(c: &Context<'_>) -> Result<Answer, PageError> {
    let page = if c.current_user()?.account.is_some() { "keys" } else { "operator" };
    Ok(Answer::redirect(&format!("/dashboard/{page}")))
}

pub(in crate::component) fn sign_in_page(c: &Context<'_>) -> Result<Answer, PageError> {
    if c.current_user.is_some() {
        return home(c);
    }
    show_sign_in(c, Field::default())
}

pub(in crate::component) async fn sign_in(c: &Context<'_>, form: &Form) -> Result<Answer, PageError> {
    let entered = form.text("email");
    let show_error = |error: String| {
        show_sign_in(c, Field { value: entered.chars().take(MAX_EMAIL_CHARS).collect(), error })
    };
    let wrong_credentials = || Ok(show_error(WRONG_CREDENTIALS.to_owned())?.status(422));
    let Ok(email) = Email::parse(&entered) else { return wrong_credentials() };
    let subjects = [Subject::email(email.as_str()), Subject::address(&c.address())];
    for subject in &subjects {
        if let Some(seconds) = c.store.count_try(subject).await? {
            return Ok(show_error(throttle::wait_message(seconds))?
                .status(429)
                .with("retry-after", seconds.to_string()));
        }
    }
    let password = Password::entered(form.get("password").unwrap_or_default());
    let stored = c.store.credentials(email.as_str()).await?;
    let matches = password.matches(stored.as_ref().map(|(_, hash)| hash.as_str()));
    let Some((user, hash)) = stored.filter(|_| matches) else { return wrong_credentials() };
    if password::is_outdated(&hash) {
        c.store.replace_password_hash(&user, &hash, &password.hash(platform::random())).await?;
    }
    let [email, address] = &subjects;
    c.store.forget_tries(email, address).await?;
    start_session(c, &user).await
}

pub(in crate::component) async fn invite_page(c: &Context<'_>, token: &str) -> Result<Answer, PageError> {
    show_invite(c, token, Field::default(), Field::default()).await
}

pub(in crate::component) async fn accept_invite(
    c: &Context<'_>,
    token: &str,
    form: &Form,
) -> Result<Answer, PageError> {
    let secret = Token::parse(token).ok_or(PageError::InvalidInvite)?;
    let email = c.store.invited(&secret).await?.ok_or(PageError::InvalidInvite)?;
    let field = |name| form.get(name).unwrap_or_default();
    let password = match Password::new(field("password"), field("again"), &email) {
        Ok(password) => password,
        Err(error) => {
            let (password, repeated) = password_fields(error);
            return Ok(show_invite(c, token, password, repeated).await?.status(422));
        }
    };
    let hash = password.hash(platform::random());
    let user = c.store.accept_invite(&secret, &hash).await?.ok_or(PageError::InvalidInvite)?;
    start_session(c, &user).await
}

pub(in crate::component) async fn sign_out(c: &Context<'_>) -> Result<Answer, PageError> {
    if let Some(token) = &c.session_token {
        c.store.end_session(token).await?;
    }
    let answer = redirect_with_notice("/dashboard/sign-in", "signed-out");
    Ok(answer.with("set-cookie", Cookie::Session.unset(c.head.secure)))
}

/// The fields of a new password and its repetition, with the error at the field that it belongs to.
pub(super) fn password_fields(error: InvalidPassword) -> (Field, Field) {
    let field = Field::invalid("", &error);
    match error {
        InvalidPassword::Mismatch => (Field::default(), field),
        InvalidPassword::Length | InvalidPassword::Email => (field, Field::default()),
    }
}

fn show_sign_in(c: &Context<'_>, email: Field) -> Result<Answer, PageError> {
    c.page(&SignInPage { layout: c.layout("Sign in", Section::None), email })
}

async fn show_invite(
    c: &Context<'_>,
    token: &str,
    password: Field,
    repeated: Field,
) -> Result<Answer, PageError> {
    let secret = Token::parse(token).ok_or(PageError::InvalidInvite)?;
    let email = c.store.invited(&secret).await?.ok_or(PageError::InvalidInvite)?;
    // The invited user is not signed in, even if the browser has the session of another user.
    let mut layout = c.layout("Welcome", Section::None);
    layout.user = None;
    c.page(&InvitePage { layout, email, token: token.to_owned(), password, repeated })
}

/// Signs a user in: replaces the session of the browser and removes its form cookie.
async fn start_session(c: &Context<'_>, user: &UserId) -> Result<Answer, PageError> {
    let previous = c.session_token.as_ref();
    let token = c.store.begin_session(user, &c.origin(), previous, c.settings.lifetimes).await?;
    Ok(Answer::redirect("/dashboard")
        .with("set-cookie", Cookie::Session.set(&token, c.head.secure))
        .with("set-cookie", Cookie::Form.unset(c.head.secure)))
}
