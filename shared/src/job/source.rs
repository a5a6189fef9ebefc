//! The document to render.

use serde::{Deserialize, Serialize};
use url::Url;

use super::InvalidJob;
use crate::{
    limits,
    url_rule::{self, InvalidUrl},
};

/// Markup of 1 to [`limits::MAX_HTML_BYTES`] bytes of UTF-8.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Html(String);

impl Html {
    /// The markup as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Html {
    /// Shows the size only, because markup must not appear in logs.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Html({} bytes)", self.0.len())
    }
}

impl TryFrom<String> for Html {
    type Error = InvalidJob;

    fn try_from(html: String) -> Result<Self, InvalidJob> {
        match html.len() {
            0 => Err(InvalidJob::EmptyHtml),
            1..=limits::MAX_HTML_BYTES => Ok(Self(html)),
            _ => Err(InvalidJob::HtmlTooLarge),
        }
    }
}

impl From<Html> for String {
    fn from(html: Html) -> Self {
        html.0
    }
}

/// A URL that passes [`url_rule`]. Its host may still resolve to any address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PublicUrl(Url);

impl PublicUrl {
    /// The parsed URL, with its host in ASCII.
    #[must_use]
    pub fn as_url(&self) -> &Url {
        &self.0
    }
}

impl TryFrom<String> for PublicUrl {
    type Error = InvalidUrl;

    fn try_from(text: String) -> Result<Self, InvalidUrl> {
        url_rule::parse(&text).map(Self)
    }
}

impl From<PublicUrl> for String {
    fn from(url: PublicUrl) -> Self {
        url.0.into()
    }
}

/// The document to render.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// Markup of the caller, or a filled template.
    Html(Html),
    /// The URL of a page that the browser loads.
    Url(PublicUrl),
}
