//! Where a user goes on after sign-in.
//!
//! Invariant: the target of a redirect is a page of the dashboard, whatever the parameter holds.

/// The parameter and the form field that hold the address.
pub(crate) const FIELD: &str = "next";
/// Longer addresses are not kept.
const MAX_BYTES: usize = 2_000;

/// The address if it is that of a page of the dashboard: path and query, percent-encoded.
pub(crate) fn checked(target: &str) -> Option<&str> {
    let rest = target.strip_prefix("/dashboard")?;
    let path = rest.split('?').next().unwrap_or_default();
    let is_page = rest.is_empty() || rest.starts_with(['/', '?']);
    let is_plain = target.len() <= MAX_BYTES
        && target.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'\\' | b'#'))
        && !path.contains("//")
        && !path.split('/').any(|segment| matches!(segment, "." | "..") || segment.contains("%2"));
    (is_page && is_plain).then_some(target)
}

/// The sign-in page, from which the user goes on to this address.
pub(crate) fn sign_in_address(target: &str) -> String {
    match checked(target) {
        Some(target) if target != "/dashboard" => {
            let query =
                url::form_urlencoded::Serializer::new(String::new()).append_pair(FIELD, target).finish();
            format!("/dashboard/sign-in?{query}")
        }
        _ => "/dashboard/sign-in".to_owned(),
    }
}

/// The page that a form is on, from the segments of the form's address.
pub(crate) fn page_of(segments: &[&str]) -> String {
    match segments {
        ["templates", id, "links", ..] => format!("/dashboard/templates/{id}/links"),
        ["templates", id, ..] => format!("/dashboard/templates/{id}"),
        ["operator", "accounts", id, ..] => format!("/dashboard/operator/accounts/{id}"),
        [section @ ("keys" | "links"), id, ..] => format!("/dashboard/{section}/{id}"),
        ["operator", page @ ("invites" | "retention"), ..] => format!("/dashboard/operator/{page}"),
        [section @ ("you" | "keys" | "people" | "operator"), ..] => format!("/dashboard/{section}"),
        _ => "/dashboard".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_of_the_dashboard_are_targets() {
        for good in ["/dashboard", "/dashboard/keys", "/dashboard/templates?q=a%20b&c=//d", "/dashboard?x"] {
            assert_eq!(checked(good), Some(good));
        }
        for bad in [
            "",
            "/",
            "//evil.example",
            "/dashboards",
            "/dashboard//evil",
            "/dashboard/../v1",
            "/dashboard/%2e%2e/v1",
            "/dashboard\\evil",
            "/dashboard/a b",
            "/dashboard/\r\nset-cookie: a=b",
            "/dashboard/\u{e9}",
            "https://evil.example/dashboard",
            "/dashboard/#x",
        ] {
            assert_eq!(checked(bad), None, "{bad}");
            assert_eq!(sign_in_address(bad), "/dashboard/sign-in");
        }
        assert_eq!(checked(&format!("/dashboard/{}", "x".repeat(2_000))), None);
        assert_eq!(
            sign_in_address("/dashboard/usage?failures=1"),
            "/dashboard/sign-in?next=%2Fdashboard%2Fusage%3Ffailures%3D1"
        );
    }

    #[test]
    fn a_form_belongs_to_a_page() {
        for (segments, page) in [
            (vec!["templates", "tpl_a", "delete"], "/dashboard/templates/tpl_a"),
            (vec!["operator", "accounts", "acc_a", "disable"], "/dashboard/operator/accounts/acc_a"),
            (vec!["operator", "people", "usr_a", "remove"], "/dashboard/operator"),
            (vec!["operator", "invites", "inv_a", "revoke"], "/dashboard/operator/invites"),
            (vec!["people", "usr_a", "role"], "/dashboard/people"),
            (vec!["keys", "key_a", "delete"], "/dashboard/keys/key_a"),
            (vec!["links", "lnk_a", "roll"], "/dashboard/links/lnk_a"),
            (vec!["templates", "tpl_a", "links"], "/dashboard/templates/tpl_a/links"),
            (vec!["sign-out"], "/dashboard"),
        ] {
            assert_eq!(page_of(&segments), page);
        }
    }
}
