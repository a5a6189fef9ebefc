//! Paths of the dashboard, as it reads them itself and as the server does before it.

/// The segments of a path that are not empty.
#[must_use]
pub fn segments(path: &str) -> Vec<&str> {
    path.split('/').filter(|segment| !segment.is_empty()).collect()
}

/// Whether the form that is sent to this path has a password. Its hash takes a core for about a tenth of a second, and 19 MiB,
/// so the server lets only some of these forms at once through.
#[must_use]
pub fn takes_password(path: &str) -> bool {
    matches!(
        segments(path)[..],
        ["dashboard", "sign-in"] | ["dashboard", "invite", _] | ["dashboard", "you", "password"]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_with_passwords_are_known_however_their_path_is_written() {
        for path in
            ["/dashboard/sign-in", "/dashboard//sign-in/", "//dashboard/invite/x", "/dashboard/you/password"]
        {
            assert!(takes_password(path), "{path}");
        }
        for path in ["/dashboard", "/dashboard/sign-out", "/dashboard/you", "/sign-in", "/dashboard/invite"] {
            assert!(!takes_password(path), "{path}");
        }
    }
}
