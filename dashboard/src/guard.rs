//! Whether a post comes from one of our own pages.
//!
//! Invariant: it must carry the token that only a page made for this very cookie holds, and where
//! the browser tells where it comes from, that must be here. Pages send no referrer, for which
//! browsers give `null` as the origin of their forms; that alone says nothing.

use platen_shared::token::Token;
use subtle::ConstantTimeEq as _;

/// The name of the form field.
pub const FIELD: &str = "form_token";

/// The token of the forms made for the holder of this cookie.
#[must_use]
pub fn form_token(cookie: &Token) -> String {
    cookie.derived("form")
}

/// Whether a form carries the right token.
#[must_use]
pub fn is_ours(cookie: &Token, given: Option<&str>) -> bool {
    given.is_some_and(|given| bool::from(form_token(cookie).as_bytes().ct_eq(given.as_bytes())))
}

/// Whether the browser says that the request comes from another place.
#[must_use]
pub fn is_foreign(origin: Option<&str>, fetch_site: Option<&str>, host: &str) -> bool {
    let foreign_origin = match origin {
        None | Some("null") => false,
        Some(origin) => !origin.split_once("://").is_some_and(|(scheme, authority)| {
            (scheme == "https" || scheme == "http") && authority.eq_ignore_ascii_case(host)
        }),
    };
    let foreign_site = fetch_site.is_some_and(|site| !matches!(site, "same-origin" | "none"));
    foreign_origin || foreign_site
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_origins_and_sites_are_foreign() {
        let host = "p.example:3000";
        for (origin, site, foreign) in [
            (None, None, false),
            (Some("https://p.example:3000"), Some("same-origin"), false),
            (Some("http://P.example:3000"), None, false),
            (Some("null"), Some("same-origin"), false),
            (Some("null"), Some("cross-site"), true),
            (Some("https://evil.example"), None, true),
            (Some("https://p.example"), None, true),
            (Some("https://p.example:3000.evil.example"), None, true),
            (Some("file://p.example:3000"), None, true),
            (None, Some("same-site"), true),
        ] {
            assert_eq!(is_foreign(origin, site, host), foreign, "{origin:?} {site:?}");
        }
    }

    #[test]
    fn a_form_token_is_good_for_its_cookie_alone() {
        let (one, other) = (Token::from_random([1; 40]), Token::from_random([2; 40]));
        assert!(is_ours(&one, Some(&form_token(&one))));
        assert!(!is_ours(&one, Some(&form_token(&other))));
        assert!(!is_ours(&one, Some("")));
        assert!(!is_ours(&one, None));
    }
}
