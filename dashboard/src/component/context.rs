//! Who asks, and what they may: the beginning of every request but those for files.

use platen_component::outside;
use platen_shared::token::Token;

use super::{answer::Answer, fault::Fault, settings::Settings, visit::Visit};
use crate::{
    cookies::Cookie,
    form::Form,
    guard, notice,
    pages::{Person, Section, Shell},
    store::{Store, Visitor, account::Account, entry::Origin, operator::Operator},
    throttle,
};

/// A request with its visitor.
pub(super) struct Context<'v> {
    pub(super) visit: &'v Visit,
    pub(super) store: Store,
    pub(super) settings: &'static Settings,
    pub(super) visitor: Option<Visitor>,
    /// The session's cookie, whether or not it is good.
    pub(super) session: Option<Token>,
    /// What forms are tied to: the session, or before that a cookie of its own.
    form: Token,
    form_is_new: bool,
}

impl<'v> Context<'v> {
    pub(super) async fn begin(visit: &'v Visit, now: i64) -> Result<Self, Fault> {
        if visit.is_odd {
            return Err(Fault::Method);
        }
        let settings = Settings::get().await?;
        let store = Store::open(now).await?;
        let session = Cookie::Session.read(&visit.cookies, visit.secure);
        let visitor = match &session {
            Some(token) => store.visitor(token, settings.lifetimes).await?,
            None => None,
        };
        let own = visitor.as_ref().and(session.clone());
        let kept = own.or_else(|| Cookie::Form.read(&visit.cookies, visit.secure));
        let form_is_new = kept.is_none();
        let form = kept.unwrap_or_else(|| Token::from_random(outside::random()));
        Ok(Self { visit, store, settings, visitor, session, form, form_is_new })
    }

    /// Whether a form was made for whoever sends it.
    pub(super) fn check_form(&self, form: &Form) -> Result<(), Fault> {
        if !self.form_is_new && guard::is_ours(&self.form, form.get(guard::FIELD)) {
            return Ok(());
        }
        Err(if self.form_is_new && self.session.is_none() { Fault::NoCookie } else { Fault::StaleForm })
    }

    /// Whoever is signed in.
    pub(super) fn visitor(&self) -> Result<&Visitor, Fault> {
        self.visitor.as_ref().ok_or(Fault::SignInFirst)
    }

    /// What the visitor's account owns.
    pub(super) fn account(&self) -> Result<Account<'_>, Fault> {
        self.store.account(self.visitor()?).ok_or(Fault::NoAccount)
    }

    /// What operators may do. For everybody else there is no such page.
    pub(super) fn operator(&self) -> Result<Operator<'_>, Fault> {
        self.store.operator(self.visitor()?).ok_or(Fault::NotFound)
    }

    /// Where the request comes from, for the list of sessions.
    pub(super) fn origin(&self) -> Origin {
        Origin { address: throttle::shown_address(&self.address()), agent: self.visit.agent.clone() }
    }

    /// The client's network address: as the proxy in front tells it, where the operator names the
    /// header (its last entry, which is the proxy's own), else as the platform does.
    pub(super) fn address(&self) -> String {
        let told = self.settings.client_address_header.as_deref().and_then(|name| self.visit.header(name));
        let told = told.and_then(|list| list.rsplit(',').next().map(|last| last.trim().to_owned()));
        told.or_else(|| self.visit.header("spin-client-addr")).unwrap_or_default()
    }

    /// What surrounds a page.
    pub(super) fn shell(&self, title: impl Into<String>, section: Section) -> Shell {
        let person = self.visitor.as_ref().map(|visitor| Person {
            email: visitor.email.clone(),
            account: visitor.account.as_ref().map(|account| account.name.clone()),
            account_disabled: visitor.account.as_ref().is_some_and(|account| account.disabled),
            operator: visitor.is_operator(),
        });
        Shell {
            title: title.into(),
            form_token: guard::form_token(&self.form),
            person,
            notice: self.visit.query.get("done").and_then(notice::text),
            section,
        }
    }

    /// A page; one with a form for somebody who is not signed in brings the cookie it is tied to.
    pub(super) fn page(&self, page: &impl askama::Template) -> Result<Answer, Fault> {
        let answer = Answer::page(page)?;
        Ok(if self.form_is_new {
            answer.with("set-cookie", Cookie::Form.set(&self.form, self.visit.secure))
        } else {
            answer
        })
    }
}

/// To a page, with the confirmation of what was done.
pub(super) fn done(path: &str, word: &'static str) -> Answer {
    Answer::redirect(&format!("{path}?done={word}"))
}
