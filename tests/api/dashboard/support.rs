//! What the cases share: users in a browser or over HTTP, and rows of requests.

use std::collections::BTreeMap;

use http::{HeaderMap, header};

use crate::prelude::*;

/// A valid password.
pub(super) const PASSWORD: &str = "a sentence with spaces";

/// A new e-mail address.
pub(super) fn new_email(name: &str) -> String {
    format!("{name}-{:016x}@example.com", rand::random::<u64>())
}

/// Accepts an invite in a browser.
pub(super) async fn accept_invite(page: &Page, app: &Service, email: &str, target: &[&str]) -> Result<()> {
    let link = app.operator.invite(email, target).await?;
    page.go(&format!("{}{link}", app.base_url)).await?.shows(email).await?;
    set_password(page).await
}

/// Submits the form of an invite.
pub(super) async fn set_password(page: &Page) -> Result<()> {
    page.submit(&[("#password", PASSWORD), ("#again", PASSWORD)], "Set password and sign in").await?;
    Ok(())
}

/// Enters the value of an option of a request, as the playground shows it.
pub(super) async fn choose(page: &Page, option: &str, value: &str) -> Result<()> {
    page.choose(&format!("[name=\"{option}\"]"), value).await
}

/// Presses “Render” when the last render has ended.
pub(super) async fn render(page: &Page) -> Result<()> {
    page.wait("document.querySelector('#render')?.textContent === 'Render' && !document.querySelector('#render').disabled").await?;
    page.click("#render").await
}

/// Submits the sign-in form of a browser.
pub(super) async fn sign_in_again(page: &Page, email: &str, password: &str) -> Result<()> {
    page.submit(&[("#email", email), ("#password", password)], "Sign in").await?;
    Ok(())
}

pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: String,
}

impl Reply {
    /// The target of a redirect.
    pub(super) fn location(&self) -> &str {
        self.headers.get(header::LOCATION).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// Checks the status.
    pub(super) fn is(self, status: u16) -> Result<Self> {
        ensure!(
            self.status == status,
            "{} instead of {status}: {:?} {}",
            self.status,
            self.headers,
            self.body
        );
        Ok(self)
    }
}

/// A user over HTTP: cookies, and the form token of the last page.
#[derive(Debug, Clone)]
pub(super) struct Person {
    http: reqwest::Client,
    base: String,
    pub(super) cookies: BTreeMap<String, String>,
    pub(super) form_token: String,
    pub(super) headers: HeaderMap,
}

/// A service, a new account, and a browser page in which an owner of it has signed in.
pub(super) async fn owner_page(stage: &Stage, quota: Quota) -> Result<(Arc<Service>, Account, Page)> {
    let (app, account) = stage.account(quota).await?;
    let page = Browser::start().await?.page().await?;
    accept_invite(&page, &app, &new_email("ann"), &["--account", &account.id]).await?;
    Ok((app, account, page))
}

/// A service, a new account, and an owner of it who has signed in.
pub(super) async fn person(stage: &Stage, quota: Quota) -> Result<(Arc<Service>, Account, Person)> {
    let (app, account) = stage.account(quota).await?;
    let person = Person::of(&app, &account).await?;
    Ok((app, account, person))
}

impl Person {
    /// A user who is not signed in.
    pub(super) fn signed_out(app: &Service) -> Result<Self> {
        let http =
            reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build()?;
        Ok(Self {
            http,
            base: app.base_url.clone(),
            cookies: BTreeMap::new(),
            form_token: String::new(),
            headers: HeaderMap::new(),
        })
    }

    /// The name of the session cookie, which depends on whether the host is this machine.
    pub(super) fn session_cookie(&self) -> String {
        let is_local =
            self.base.starts_with("http://127.0.0.1:") || self.base.starts_with("http://localhost:");
        if is_local { "platen" } else { "__Host-platen" }.to_owned()
    }

    /// A user who has accepted an invite.
    pub(super) async fn invited(app: &Service, email: &str, target: &[&str]) -> Result<Self> {
        let mut person = Self::signed_out(app)?;
        let link = app.operator.invite(email, target).await?;
        person.get(&link).await?.is(200)?;
        person.post(&link, &[("password", PASSWORD), ("again", PASSWORD)]).await?.is(303)?;
        person.get("/dashboard/you").await?.is(200)?;
        Ok(person)
    }

    /// A new user of this account.
    pub(super) async fn of(app: &Service, account: &Account) -> Result<Self> {
        Self::invited(app, &new_email("person"), &["--account", &account.id]).await
    }

    pub(super) async fn get(&mut self, path: &str) -> Result<Reply> {
        self.send(self.http.get(format!("{}{path}", self.base))).await
    }

    /// A response whose body is not read yet.
    pub(super) async fn begin(&self, path: &str) -> Result<reqwest::Response> {
        let request =
            self.http.get(format!("{}{path}", self.base)).header(header::COOKIE, self.cookie_header());
        Ok(request.send().await?.error_for_status()?)
    }

    fn cookie_header(&self) -> String {
        let cookies: Vec<String> =
            self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        cookies.join("; ")
    }

    /// Sends a form with the token of the last page.
    pub(super) async fn post(&mut self, path: &str, fields: &[(&str, &str)]) -> Result<Reply> {
        let token = self.form_token.clone();
        self.post_bare(path, &[&[("form_token", token.as_str())], fields].concat()).await
    }

    /// Sends a form as it is.
    pub(super) async fn post_bare(&mut self, path: &str, fields: &[(&str, &str)]) -> Result<Reply> {
        let body = url_encoded(fields);
        let request = self.http.post(format!("{}{path}", self.base)).body(body);
        self.send(request.header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")).await
    }

    async fn send(&mut self, request: reqwest::RequestBuilder) -> Result<Reply> {
        let mut request = request.headers(self.headers.clone());
        if !self.cookies.is_empty() {
            request = request.header(header::COOKIE, self.cookie_header());
        }
        let response = request.send().await?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let body = response.text().await?;
        for cookie in headers.get_all(header::SET_COOKIE) {
            let pair = cookie.to_str()?.split(';').next().unwrap_or_default();
            let (name, value) = pair.split_once('=').context("a cookie is a pair")?;
            if value.is_empty() {
                self.cookies.remove(name);
            } else {
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
        }
        if let Some((_, rest)) = body.split_once("name=\"form_token\" value=\"") {
            rest.split('"').next().unwrap_or_default().clone_into(&mut self.form_token);
        }
        Ok(Reply { status, headers, body })
    }

    /// Creates a key and gives its id and the key itself.
    pub(super) async fn new_key(&mut self, name: &str) -> Result<(String, String)> {
        let created = self.post("/dashboard/keys", &[("name", name)]).await?.is(303)?;
        let page = self.get(created.location()).await?.is(200)?;
        let key = between(&page.body, "aria-label=\"The new key\">", "<")?;
        let id = between(&page.body, "href=\"/dashboard/keys/", "\"")?;
        Ok((id, key))
    }

    /// Creates a template and gives its id.
    pub(super) async fn new_template(&mut self, name: &str, html: &str) -> Result<String> {
        let page = self.post("/dashboard/templates/new", &[("name", name), ("html", html)]).await?.is(303)?;
        between(page.location(), "/dashboard/templates/", "?")
    }
}

/// The text between two texts.
pub(super) fn between(text: &str, before: &str, after: &str) -> Result<String> {
    let rest = text.split_once(before).with_context(|| format!("no {before} in {text}"))?.1;
    Ok(rest.split(after).next().unwrap_or_default().to_owned())
}

fn url_encoded(fields: &[(&str, &str)]) -> String {
    let pairs: Vec<String> =
        fields.iter().map(|(name, value)| format!("{}={}", percent(name), percent(value))).collect();
    pairs.join("&")
}

/// Percent-encodes every byte that is not a letter or a digit.
pub(super) fn percent(text: &str) -> String {
    use std::fmt::Write as _;
    text.bytes().fold(String::with_capacity(text.len()), |mut encoded, byte| {
        if byte.is_ascii_alphanumeric() {
            encoded.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
        encoded
    })
}

/// Inserts `count` rows of requests of an account; the columns are expressions of `i`, from 1.
pub(super) async fn insert(
    app: &Service,
    account: &Account,
    count: u32,
    columns: &[(&str, &str)],
) -> Result<()> {
    let mut all = vec![
        ("attempt_id", "random()".to_owned()),
        ("account_id", format!("'{}'", account.id)),
        ("key_id", format!("'{}'", account.key_id)),
        ("key_name", "'k'".to_owned()),
        ("endpoint", "'render'".to_owned()),
        ("format", "'png'".to_owned()),
        ("status", "200".to_owned()),
        ("counted", "0".to_owned()),
        ("ms", "1".to_owned()),
        ("at", format!("{} - i", now()?)),
        ("request_id", "'row-' || i".to_owned()),
    ];
    for (name, value) in columns {
        all.retain(|(known, _)| known != name);
        all.push((name, (*value).to_owned()));
    }
    let (names, values): (Vec<_>, Vec<_>) = all.into_iter().unzip();
    let (names, values) = (names.join(", "), values.join(", "));
    let sql = format!(
        "INSERT INTO attempts ({names}) WITH RECURSIVE n(i) AS \
         (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count}) SELECT {values} FROM n"
    );
    app.execute(&sql).await?;
    Ok(())
}

pub(super) fn now() -> Result<u64> {
    Ok(std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_secs())
}
