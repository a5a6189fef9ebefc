//! What handlers get: the request, the signed-in user and the database.

use std::time::Duration;

use platen_component::{database::Database, platform};
use platen_shared::token::Token;
use platen_statements::{CurrentUser, sessions::Origin};

use super::{
    page_error::{PageError, PageResult},
    request_head::RequestHead,
    response::PageResponse,
    settings::Settings,
};
use crate::{
    cookies::Cookie,
    csrf,
    form::Form,
    notice,
    pages::{Layout, Section},
    store::{Account, Operator, Store},
    throttle,
};

/// How long a statement is repeated while the database is busy or absent.
const RETRY_TIMEOUT: Duration = Duration::from_secs(10);

/// A request with what its handler needs.
pub(super) struct Context<'r> {
    pub(super) head: &'r RequestHead,
    pub(super) store: Store,
    pub(super) settings: &'static Settings,
    pub(super) current_user: Option<CurrentUser>,
    /// The token of the session cookie, whether or not its session exists.
    pub(super) session_token: Option<Token>,
    /// The token that form tokens are derived from: that of the session, or before sign-in that of the form
    /// cookie.
    form_cookie: Token,
    form_cookie_is_new: bool,
}

impl<'r> Context<'r> {
    pub(super) async fn begin(head: &'r RequestHead, now: i64) -> Result<Self, PageError> {
        if head.is_unsupported {
            return Err(PageError::Method);
        }
        let settings = Settings::get().await?;
        let store = Store::new(Database::new(RETRY_TIMEOUT), now);
        let cookies = head.headers.get("cookie");
        let session_token = Cookie::Session.read(&cookies, head.secure);
        let current_user = match &session_token {
            Some(token) => store.current_user(token, settings.lifetimes).await?,
            None => None,
        };
        let form_cookie = current_user.as_ref().and(session_token.clone());
        let form_cookie = form_cookie.or_else(|| Cookie::Form.read(&cookies, head.secure));
        let form_cookie_is_new = form_cookie.is_none();
        let form_cookie = form_cookie.unwrap_or_else(|| Token::from_random(platform::random()));
        Ok(Self { head, store, settings, current_user, session_token, form_cookie, form_cookie_is_new })
    }

    /// Refuses a form that was not made for this browser.
    pub(super) fn check_form(&self, form: &Form) -> Result<(), PageError> {
        if !self.form_cookie_is_new && csrf::is_valid(&self.form_cookie, form.get(csrf::FIELD)) {
            return Ok(());
        }
        Err(if self.form_cookie_is_new && self.session_token.is_none() {
            PageError::NoCookie
        } else {
            PageError::StaleForm
        })
    }

    pub(super) fn current_user(&self) -> Result<&CurrentUser, PageError> {
        self.current_user.as_ref().ok_or(PageError::SignInFirst)
    }

    /// The current account of the user.
    pub(super) fn account(&self) -> Result<Account<'_>, PageError> {
        self.store.account(self.current_user()?).ok_or(PageError::NoAccount)
    }

    /// The operator's actions. For other users the page does not exist.
    pub(super) fn operator(&self) -> Result<Operator<'_>, PageError> {
        self.store.operator(self.current_user()?).ok_or(PageError::NotFound)
    }

    /// Address and browser, for the list of sessions.
    pub(super) fn origin(&self) -> Origin {
        Origin { address: throttle::display_address(&self.address()), agent: self.head.user_agent.clone() }
    }

    /// The client's network address: the last entry of the header that the operator has named, or else of the
    /// platform's. Proxies and Spin append theirs to what the client has sent.
    pub(super) fn address(&self) -> String {
        let header = self.settings.client_address_header.as_deref();
        let address = header.and_then(|name| self.head.last(name));
        address.or_else(|| self.head.last("spin-client-addr")).unwrap_or_default()
    }

    /// The shared parts of a page.
    pub(super) fn layout(&self, title: impl Into<String>, section: Section) -> Layout {
        Layout {
            title: title.into(),
            form_token: csrf::form_token(&self.form_cookie),
            user: self.current_user.clone(),
            notice: self.head.query.get("done").and_then(notice::text),
            section,
        }
    }

    /// A page. Sets the form cookie if the browser has none yet.
    pub(super) fn page(&self, page: &impl askama::Template) -> PageResult {
        let response = PageResponse::page(page)?;
        Ok(if self.form_cookie_is_new {
            response.with_header("set-cookie", Cookie::Form.set(&self.form_cookie, self.head.secure))
        } else {
            response
        })
    }
}

/// Redirects to a page that shows the notice of this code.
pub(super) fn redirect_with_notice(path: &str, code: &'static str) -> PageResponse {
    PageResponse::redirect(&format!("{path}?done={code}"))
}

/// The same if the action has found its row, and otherwise `404`.
pub(super) fn redirect_if_found(found: bool, path: &str, code: &'static str) -> PageResult {
    if found { Ok(redirect_with_notice(path, code)) } else { Err(PageError::NotFound) }
}

/// Shortens a list to the rows of one page; returns the last of them if the list had more.
pub(super) fn last_of_full_page<T>(rows: &mut Vec<T>, page_rows: u32) -> Option<&T> {
    let has_more = rows.len() > page_rows as usize;
    rows.truncate(page_rows as usize);
    rows.last().filter(|_| has_more)
}
