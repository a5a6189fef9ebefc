//! Sign-in, invites and sign-out.
//!
//! Invariant: the responses to a wrong password, an unknown e-mail address and a disabled user are equal in
//! text and, as long as the stored hash has the current parameters, in time.

use platen_shared::{email::Email, id::UserId, token::Token};
use platen_spin::platform;
use platen_statements::invites::InviteState;

use crate::{
    cookies::Cookie,
    csrf,
    form::{Field, Form},
    known_browser, next,
    pages::{
        Section,
        users::{InvitePage, SignInPage},
    },
    password::{InvalidPassword, Password},
    router::{
        context::{Context, count_try, forget_tries, redirect_with_notice},
        page_error::{PageError, PageResult},
        response::PageResponse,
    },
    throttle::{self, Subject, WINDOW_SECONDS},
};

const WRONG_CREDENTIALS: &str = "Incorrect e-mail address or password.";
/// The prefix of the fields that the sign-in form keeps for another form.
const KEPT: &str = "kept.";
/// Characters of an entered e-mail address that are shown again.
const MAX_EMAIL_CHARS: usize = 300;

pub(crate) fn sign_in_page(context: &Context<'_>) -> PageResult {
    let next = context.head.query.get(next::FIELD).and_then(next::checked).unwrap_or_default();
    if context.current_user.is_some() {
        return Ok(PageResponse::redirect(if next.is_empty() { "/dashboard" } else { next }));
    }
    show_sign_in(context, Field::default(), next, &Form::default())
}

/// The sign-in page for a form that was submitted without a session. It keeps the form if it has text.
pub(crate) fn ask(context: &mut Context<'_>, segments: &[&str], form: &Form) -> PageResult {
    let is_resumable = super::is_resumable(segments);
    let next = if is_resumable { context.head.path.clone() } else { next::page_of(segments) };
    let nothing = Form::default();
    context.warning = Some(if is_resumable {
        "Your session has ended. Sign in to go on: what you entered is kept."
    } else {
        "Your session has ended. Sign in to go on."
    });
    show_sign_in(context, Field::default(), &next, if is_resumable { form } else { &nothing })
}

/// The sign-in page with an error, and with what it kept.
pub(crate) fn ask_again(context: &Context<'_>, form: &Form, error: String) -> PageResult {
    let email = form.text("email").chars().take(MAX_EMAIL_CHARS).collect();
    let next = form.get(next::FIELD).and_then(next::checked).unwrap_or_default();
    show_sign_in(context, Field { value: email, error }, next, &form.without_prefix(KEPT))
}

pub(crate) async fn sign_in(context: &Context<'_>, form: &Form) -> PageResult {
    let show_error = |error: String| ask_again(context, form, error);
    let wrong_credentials = || Ok(show_error(WRONG_CREDENTIALS.to_owned())?.with_status(422));
    let Ok(email) = Email::parse(&form.text("email")) else { return wrong_credentials() };
    let stored = context.store.credentials(email.as_str()).await?;
    let cookies = context.head.headers.get("cookie");
    let browser = stored
        .as_ref()
        .and_then(|(_, hash)| known_browser::read(&cookies, context.head.secure, email.as_str(), hash));
    let subjects = match &browser {
        Some(browser) => vec![Subject::browser(email.as_str(), browser)],
        None => subjects(email.as_str(), context).into(),
    };
    for subject in &subjects {
        if let Some(seconds) = count_try(&context.store, subject).await? {
            return Ok(show_error(throttle::wait_message(seconds))?
                .with_status(429)
                .with_header("retry-after", seconds.to_string()));
        }
    }
    let password = Password::entered(form.get("password").unwrap_or_default());
    let matches = password.matches(stored.as_ref().map(|(_, hash)| hash.as_str()));
    let Some((user, hash)) = stored.filter(|_| matches) else { return wrong_credentials() };
    forget_tries(&context.store, &subjects).await?;
    let token = begin_session(context, &user).await?;
    let mut signed_in = context.with_session(token.clone()).await?;
    let page = go_on(&mut signed_in, form).await?;
    Ok(with_cookies(page, context, &token, (email.as_str(), &hash), browser))
}

/// What the attempts of a browser that is not known are counted by.
fn subjects(email: &str, context: &Context<'_>) -> [Subject; 3] {
    let address = context.address();
    [Subject::email_from(email, &address), Subject::address(&address), Subject::email(email)]
}

/// Where the user goes on after sign-in: at the page that asked for it, with what was entered there.
pub(crate) async fn go_on(context: &mut Context<'_>, form: &Form) -> PageResult {
    let next = form.get(next::FIELD).and_then(next::checked).unwrap_or("/dashboard");
    let kept = form.without_prefix(KEPT);
    let segments: Vec<&str> = next.split('/').skip(2).collect();
    if kept.fields().next().is_none() || !super::is_resumable(&segments) {
        return Ok(PageResponse::redirect(next));
    }
    context.warning =
        Some("You are signed in again. Nothing was saved yet: check what you entered and submit it again.");
    super::resume(context, &segments, &kept).await
}

pub(crate) async fn invite_page(context: &Context<'_>, token: &str) -> PageResult {
    let (_, email) = invited(context, token).await?;
    show_invite(context, token, email, Default::default())
}

pub(crate) async fn accept_invite(context: &Context<'_>, token: &str, form: &Form) -> PageResult {
    let (secret, email) = invited(context, token).await?;
    let field = |name| form.get(name).unwrap_or_default();
    let password = match Password::new(field("password"), field("again"), &email, None) {
        Ok(password) => password,
        Err(error) => {
            return Ok(show_invite(context, token, email, password_fields(error))?.with_status(422));
        }
    };
    let hash = password.hash(platform::random());
    let accepted = context.store.accept_invite(&secret, &hash).await?;
    let (user, email) = accepted.ok_or(PageError::InvalidInvite)?;
    // Where this fails, the counts end with their window.
    let [of_address, _, of_email] = subjects(&email, context);
    for subject in [of_address, of_email] {
        context.store.delete_sign_ins(&subject.hash, WINDOW_SECONDS).await?;
    }
    let token = begin_session(context, &user).await?;
    Ok(with_cookies(PageResponse::redirect("/dashboard"), context, &token, (&email, &hash), None))
}

pub(crate) async fn sign_out(context: &Context<'_>) -> PageResult {
    if let Some(token) = &context.session_token {
        context.store.end_session(token).await?;
    }
    let response = redirect_with_notice("/dashboard/sign-in", "signed-out");
    Ok(response.with_header("set-cookie", Cookie::Session.unset(context.head.secure)))
}

/// The fields of a new password and its repetition, with the error at the field that it belongs to.
pub(super) fn password_fields(error: InvalidPassword) -> (Field, Field) {
    let field = Field::invalid("", &error);
    match error {
        InvalidPassword::Mismatch => (Field::default(), field),
        _ => (field, Field::default()),
    }
}

fn show_sign_in(context: &Context<'_>, email: Field, next: &str, kept: &Form) -> PageResult {
    let kept = kept.fields().filter(|(name, _)| *name != csrf::FIELD);
    let kept = kept.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let layout = context.layout("Sign in", Section::None);
    context.page(&SignInPage { layout, email, next: next.to_owned(), kept })
}

/// The secret of a valid invite and its address.
async fn invited(context: &Context<'_>, token: &str) -> Result<(Token, String), PageError> {
    let secret = Token::parse(token).ok_or(PageError::InvalidInvite)?;
    match context.store.invited(&secret).await? {
        InviteState::Open(email) => Ok((secret, email)),
        InviteState::Revoked => Err(PageError::RevokedInvite),
        InviteState::Invalid => Err(PageError::InvalidInvite),
    }
}

fn show_invite(
    context: &Context<'_>,
    token: &str,
    email: String,
    (password, repeated): (Field, Field),
) -> PageResult {
    // The invited user is not signed in, even if the browser has the session of another user.
    let mut layout = context.layout("Welcome", Section::None);
    layout.user = None;
    context.page(&InvitePage { layout, email, token: token.to_owned(), password, repeated })
}

/// Signs a user in: replaces the session of the browser.
async fn begin_session(context: &Context<'_>, user: &UserId) -> Result<Token, PageError> {
    let previous = context.session_token.as_ref();
    Ok(context.store.begin_session(user, &context.origin(), previous, context.settings.lifetimes).await?)
}

/// The response with the cookies of a new session, and of a browser that is known to the user with this e-mail address and
/// password hash from now on.
fn with_cookies(
    response: PageResponse,
    context: &Context<'_>,
    token: &Token,
    (email, password_hash): (&str, &str),
    browser: Option<String>,
) -> PageResponse {
    let secure = context.head.secure;
    let browser = browser.unwrap_or_else(|| hex::encode(platform::random::<{ known_browser::ID_BYTES }>()));
    response
        .with_header("set-cookie", Cookie::Session.set(token, secure))
        .with_header("set-cookie", Cookie::Form.unset(secure))
        .with_header("set-cookie", known_browser::set(&browser, secure, email, password_hash))
}
