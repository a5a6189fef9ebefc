//! Who asks, and what they may: the beginning of every request but those for files.

use platen_component::platform;
use platen_shared::token::Token;

use super::{answer::Answer, page_error::PageError, request_head::RequestHead, settings::Settings};
use crate::{
    cookies::Cookie,
    form::Form,
    guard, notice,
    pages::{Layout, Person, Section},
    store::{CurrentUser, Store, account::Account, entry::Origin, operator::Operator},
    throttle,
};

/// A request with its current_user.
pub(super) struct Context<'v> {
    pub(super) head: &'v RequestHead,
    pub(super) store: Store,
    pub(super) settings: &'static Settings,
    pub(super) current_user: Option<CurrentUser>,
    /// The session's cookie, whether or not it is good.
    pub(super) session: Option<Token>,
    /// What forms are tied to: the session, or before that a cookie of its own.
    form: Token,
    form_is_new: bool,
}

impl<'v> Context<'v> {
    pub(super) async fn begin(head: &'v RequestHead, now: i64) -> Result<Self, PageError> {
        if head.is_odd {
            return Err(PageError::Method);
        }
        let settings = Settings::get().await?;
        let store = Store::open(now).await?;
        let session = Cookie::Session.read(&head.cookies, head.secure);
        let current_user = match &session {
            Some(token) => store.current_user(token, settings.lifetimes).await?,
            None => None,
        };
        let own = current_user.as_ref().and(session.clone());
        let kept = own.or_else(|| Cookie::Form.read(&head.cookies, head.secure));
        let form_is_new = kept.is_none();
        let form = kept.unwrap_or_else(|| Token::from_random(platform::random()));
        Ok(Self { head, store, settings, current_user, session, form, form_is_new })
    }

    /// Whether a form was made for whoever sends it.
    pub(super) fn check_form(&self, form: &Form) -> Result<(), PageError> {
        if !self.form_is_new && guard::is_ours(&self.form, form.get(guard::FIELD)) {
            return Ok(());
        }
        Err(if self.form_is_new && self.session.is_none() {
            PageError::NoCookie
        } else {
            PageError::StaleForm
        })
    }

    /// Whoever is signed in.
    pub(super) fn current_user(&self) -> Result<&CurrentUser, PageError> {
        self.current_user.as_ref().ok_or(PageError::SignInFirst)
    }

    /// What the current_user's account owns.
    pub(super) fn account(&self) -> Result<Account<'_>, PageError> {
        self.store.account(self.current_user()?).ok_or(PageError::NoAccount)
    }

    /// What operators may do. For everybody else there is no such page.
    pub(super) fn operator(&self) -> Result<Operator<'_>, PageError> {
        self.store.operator(self.current_user()?).ok_or(PageError::NotFound)
    }

    /// Where the request comes from, for the list of sessions.
    pub(super) fn origin(&self) -> Origin {
        Origin { address: throttle::shown_address(&self.address()), agent: self.head.agent.clone() }
    }

    /// The client's network address: as the proxy in front tells it, where the operator names the
    /// header (its last entry, which is the proxy's own), else as the platform does.
    pub(super) fn address(&self) -> String {
        let told = self.settings.client_address_header.as_deref().and_then(|name| self.head.header(name));
        let told = told.and_then(|list| list.rsplit(',').next().map(|last| last.trim().to_owned()));
        told.or_else(|| self.head.header("spin-client-addr")).unwrap_or_default()
    }

    /// What surrounds a page.
    pub(super) fn layout(&self, title: impl Into<String>, section: Section) -> Layout {
        let person = self.current_user.as_ref().map(|current_user| Person {
            email: current_user.email.clone(),
            account: current_user.account.as_ref().map(|account| account.name.clone()),
            account_disabled: current_user.account.as_ref().is_some_and(|account| account.disabled),
            operator: current_user.is_operator(),
        });
        Layout {
            title: title.into(),
            form_token: guard::form_token(&self.form),
            person,
            notice: self.head.query.get("done").and_then(notice::text),
            section,
        }
    }

    /// A page; one with a form for somebody who is not signed in brings the cookie it is tied to.
    pub(super) fn page(&self, page: &impl askama::Template) -> Result<Answer, PageError> {
        let answer = Answer::page(page)?;
        Ok(if self.form_is_new {
            answer.with("set-cookie", Cookie::Form.set(&self.form, self.head.secure))
        } else {
            answer
        })
    }
}

/// To a page, with the confirmation of what was done.
pub(super) fn done(path: &str, word: &'static str) -> Answer {
    Answer::redirect(&format!("{path}?done={word}"))
}
