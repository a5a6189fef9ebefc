//! Protection against cross-site request forgery.
//!
//! Invariant: a form carries a token derived from the cookie of its page, and the `Origin` and
//! `Sec-Fetch-Site` headers, if present, name this site. Pages are sent with the referrer policy `same-origin`, with which browsers
//! send their origin with forms; `null` is that of a sandboxed frame, or of a form of another site.

use platen_shared::token::Token;
use subtle::ConstantTimeEq as _;

pub(crate) const FIELD: &str = "form_token";

/// The form token for the pages of this cookie's browser.
pub(crate) fn form_token(cookie: &Token) -> String {
    cookie.derived("form")
}

/// Whether the token of a form belongs to this cookie.
pub(crate) fn is_valid(cookie: &Token, given: Option<&str>) -> bool {
    given.is_some_and(|given| bool::from(form_token(cookie).as_bytes().ct_eq(given.as_bytes())))
}

/// Whether the browser states that the request comes from another site.
pub(crate) fn is_cross_site(origin: Option<&str>, fetch_site: Option<&str>, host: &str) -> bool {
    let other_origin = match origin {
        None => false,
        Some(origin) => !origin.split_once("://").is_some_and(|(scheme, authority)| {
            (scheme == "https" || scheme == "http") && authority.eq_ignore_ascii_case(host)
        }),
    };
    let other_site = fetch_site.is_some_and(|site| !matches!(site, "same-origin" | "none"));
    other_origin || other_site
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_origins_and_sites_are_cross_site() {
        let host = "p.example:3000";
        for (origin, site, cross_site) in [
            (None, None, false),
            (Some("https://p.example:3000"), Some("same-origin"), false),
            (Some("http://P.example:3000"), None, false),
            (Some("null"), None, true),
            (Some("null"), Some("same-origin"), true),
            (Some("null"), Some("cross-site"), true),
            (Some("https://evil.example"), None, true),
            (Some("https://p.example"), None, true),
            (Some("https://p.example:3000.evil.example"), None, true),
            (Some("file://p.example:3000"), None, true),
            (None, Some("same-site"), true),
        ] {
            assert_eq!(is_cross_site(origin, site, host), cross_site, "{origin:?} {site:?}");
        }
    }

    #[test]
    fn a_form_token_is_valid_for_its_cookie_only() {
        let (one, other) = (Token::from_random([1; 40]), Token::from_random([2; 40]));
        assert!(is_valid(&one, Some(&form_token(&one))));
        assert!(!is_valid(&one, Some(&form_token(&other))));
        assert!(!is_valid(&one, Some("")));
        assert!(!is_valid(&one, None));
    }
}
