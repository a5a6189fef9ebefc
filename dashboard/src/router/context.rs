//! What handlers get: the request, the signed-in user and the database.

use platen_shared::token::Token;
use platen_spin::{
    database::{Database, DatabaseError},
    platform,
};
use platen_statements::{CurrentUser, sessions::Origin};

use super::{
    page_error::{PageError, PageResult},
    request_head::RequestHead,
    response::PageResponse,
    settings::Settings,
};
use crate::{
    cookies::{Cookie, ONCE_FIELD, Once, Theme},
    csrf,
    form::Form,
    next,
    pages::{Layout, Section, notice, usage::MonthlyUsage},
    throttle::{self, Subject, WINDOW_SECONDS},
};

/// The store of one request.
pub(super) type Store = platen_statements::Store<Database>;
/// What the account of the current user owns.
pub(super) type Account<'s> = platen_statements::AccountScope<'s, Database>;
/// What owners of the account of the current user may do.
pub(super) type Owner<'s> = platen_statements::OwnerScope<'s, Database>;
/// The current user as an operator.
pub(super) type Operator<'s> = platen_statements::Operator<'s, Database>;

/// A request with what its handler needs.
pub(super) struct Context<'r> {
    pub(super) head: &'r RequestHead,
    pub(super) store: Store,
    pub(super) settings: &'static Settings,
    pub(super) current_user: Option<CurrentUser>,
    /// The token of the session cookie, whether or not its session exists.
    pub(super) session_token: Option<Token>,
    /// Form tokens are derived from it: the session's token, or before sign-in the one of the form cookie.
    form_cookie: Token,
    form_cookie_is_new: bool,
    /// Why the page shows what is not saved.
    pub(super) warning: Option<&'static str>,
    /// What this page shows once.
    pub(super) once: Option<Once>,
}

impl<'r> Context<'r> {
    /// A request whose user is not known yet. As long as the session is not looked up, its cookie counts as
    /// valid for form tokens.
    pub(super) async fn begin(head: &'r RequestHead, now: i64) -> Result<Self, PageError> {
        let settings = Settings::get().await?;
        let cookies = head.headers.get("cookie");
        let session_token = Cookie::Session.read(&cookies, head.secure);
        let once = head.query.get(ONCE_FIELD).and_then(|label| Once::read(&cookies, label, head.secure));
        let mut context = Self {
            head,
            store: Store::new(Database, now),
            settings,
            current_user: None,
            form_cookie: Token::from_random(platform::random()),
            form_cookie_is_new: true,
            session_token: None,
            warning: None,
            once,
        };
        context.use_form_cookie(session_token.clone().or_else(|| Cookie::Form.read(&cookies, head.secure)));
        context.session_token = session_token;
        Ok(context)
    }

    /// Looks up the user of the session.
    pub(super) async fn find_user(&mut self) -> Result<(), PageError> {
        if let Some(token) = &self.session_token {
            self.current_user = self.store.current_user(token, self.settings.lifetimes).await?;
            if self.current_user.is_none() {
                let cookies = self.head.headers.get("cookie");
                self.use_form_cookie(Cookie::Form.read(&cookies, self.head.secure));
            }
        }
        Ok(())
    }

    /// The store, for work that continues after the response.
    pub(super) fn store_again(&self) -> Store {
        Store::new(Database, self.store.now())
    }

    /// This request with a session that it has begun.
    pub(super) async fn with_session(&self, token: Token) -> Result<Self, PageError> {
        let mut context = Self::begin(self.head, self.store.now()).await?;
        context.use_form_cookie(Some(token.clone()));
        context.session_token = Some(token);
        context.find_user().await?;
        Ok(context)
    }

    fn use_form_cookie(&mut self, cookie: Option<Token>) {
        self.form_cookie_is_new = cookie.is_none();
        self.form_cookie = cookie.unwrap_or_else(|| Token::from_random(platform::random()));
    }

    /// Refuses a form that was not made for this browser.
    pub(super) fn check_form(&self, form: &Form) -> Result<(), PageError> {
        if self.accepts(form) {
            return Ok(());
        }
        Err(if self.form_cookie_is_new && self.session_token.is_none() {
            PageError::NoCookie
        } else {
            PageError::StaleForm
        })
    }

    /// Whether [`Self::check_form`] accepts the form.
    pub(super) fn accepts(&self, form: &Form) -> bool {
        !self.form_cookie_is_new && csrf::is_valid(&self.form_cookie, form.get(csrf::FIELD))
    }

    pub(super) fn current_user(&self) -> Result<&CurrentUser, PageError> {
        self.current_user.as_ref().ok_or(PageError::SignInFirst)
    }

    /// The current account of the user.
    pub(super) fn account(&self) -> Result<Account<'_>, PageError> {
        self.store.account(self.current_user()?).ok_or(PageError::NoAccount)
    }

    /// What owners of the current account may do.
    pub(super) fn owner(&self) -> Result<Owner<'_>, PageError> {
        self.account()?;
        self.store.owner(self.current_user()?).ok_or(PageError::NotOwner)
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
            notice: self.head.query.get("done").and_then(notice),
            warning: self.warning,
            month: self.month(),
            section,
            theme: Theme::read(&self.head.headers.get("cookie"), self.head.secure),
            address: self.address_of_page(),
            docs_url: &self.settings.docs_url,
        }
    }

    /// The use of the quota of the current account.
    pub(super) fn month(&self) -> Option<MonthlyUsage> {
        let account = self.current_user.as_ref()?.account.as_ref()?;
        Some(MonthlyUsage::of(account, self.store.now()))
    }

    /// Path and query of the page that the response shows.
    fn address_of_page(&self) -> String {
        let segments = self.head.segments();
        if self.head.is_post {
            next::page_of(segments.get(1..).unwrap_or_default())
        } else {
            self.head.target.clone()
        }
    }

    /// A page. Sets the form cookie if the browser has none yet, and removes what the page shows once.
    pub(super) fn page(&self, page: &impl askama::Template) -> PageResult {
        let mut response = PageResponse::page(page)?;
        if self.form_cookie_is_new {
            response =
                response.with_header("set-cookie", Cookie::Form.set(&self.form_cookie, self.head.secure));
        }
        if let Some(once) = &self.once {
            response = response.with_header("set-cookie", once.unset(self.head.secure));
        }
        Ok(response)
    }

    /// Whether a page shows its preview.
    pub(super) fn has_preview(&self) -> bool {
        self.head.query.get("preview") != Some("off")
    }

    /// A page with code editors. `page` gets the nonce of their styles.
    pub(super) fn page_with_editor<T: askama::Template>(&self, page: impl FnOnce(String) -> T) -> PageResult {
        let nonce = hex::encode(platform::random::<16>());
        Ok(self.page(&page(nonce.clone()))?.with_style_nonce(&nonce))
    }

    /// Redirects to a page that shows a secret once, so that reloading it does not repeat the request.
    pub(super) fn redirect_once(&self, path: &str, secret: String) -> PageResponse {
        let once = Once::new(platform::random(), secret);
        PageResponse::redirect(&format!("{path}?{}={}", ONCE_FIELD, once.label()))
            .with_header("set-cookie", once.set(self.head.secure))
    }
}

/// Counts a sign-in attempt; returns the seconds to wait if there were too many.
pub(super) async fn count_try(store: &Store, subject: &Subject) -> Result<Option<u64>, DatabaseError> {
    store.count_sign_in(&subject.hash, subject.allowed, WINDOW_SECONDS).await
}

/// Follows a successful sign-in: deletes the count of the first subject, and takes this attempt back for the others.
pub(super) async fn forget_tries(store: &Store, subjects: &[Subject]) -> Result<(), DatabaseError> {
    let Some((first, others)) = subjects.split_first() else { return Ok(()) };
    store.delete_sign_ins(&first.hash, WINDOW_SECONDS).await?;
    for subject in others {
        store.take_sign_in_back(&subject.hash).await?;
    }
    Ok(())
}

/// Redirects to a page that shows the notice of this code.
pub(super) fn redirect_with_notice(path: &str, code: &'static str) -> PageResponse {
    PageResponse::redirect(&format!("{path}?done={code}"))
}

/// Redirects as [`redirect_with_notice`] if the action has found its row; otherwise the page does not exist.
pub(super) fn redirect_if_found(found: bool, path: &str, code: &'static str) -> PageResult {
    if found { Ok(redirect_with_notice(path, code)) } else { Err(PageError::NotFound) }
}

/// Shortens a list to the rows of one page; returns the last of them if the list had more.
pub(super) fn last_of_full_page<T>(rows: &mut Vec<T>, page_rows: u32) -> Option<&T> {
    let has_more = rows.len() > page_rows as usize;
    rows.truncate(page_rows as usize);
    rows.last().filter(|_| has_more)
}
