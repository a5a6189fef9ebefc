//! The colours that a user has chosen, which a cookie keeps in the browser.

use crate::cookies;

/// The colours of pages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Theme {
    /// Those of the browser.
    #[default]
    System,
    Light,
    Dark,
}

impl Theme {
    pub(crate) const ALL: [Self; 3] = [Self::System, Self::Light, Self::Dark];

    /// The value of the field, of the cookie, and of `data-theme` in a page.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }

    pub(crate) fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|theme| theme.name() == name)
    }

    /// Reads it from the `cookie` headers.
    pub(crate) fn read(headers: &[Vec<u8>], secure: bool) -> Self {
        cookies::value(headers, &cookie_name(secure)).and_then(Self::find).unwrap_or_default()
    }

    /// The `set-cookie` value that keeps it for a year.
    pub(crate) fn set(self, secure: bool) -> String {
        cookies::set(&cookie_name(secure), self.name(), "; Max-Age=31536000", secure)
    }
}

fn cookie_name(secure: bool) -> String {
    format!("{}platen-theme", cookies::prefix(secure))
}
