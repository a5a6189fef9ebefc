//! The profile page: password and sessions of the user.

use askama::Template;
use platen_statements::{CurrentUser, sessions::Session};

use super::Layout;
use crate::form::Field;

/// Browser and operating system, guessed from the `User-Agent` header.
fn browser(user_agent: &str) -> String {
    let first = |known: &[(&str, &'static str)]| {
        known.iter().find(|(part, _)| user_agent.contains(part)).map(|(_, name)| *name)
    };
    let browser = first(&[
        ("Edg/", "Edge"),
        ("OPR/", "Opera"),
        ("Firefox/", "Firefox"),
        ("Chrome/", "Chrome"),
        ("Safari/", "Safari"),
        ("curl/", "curl"),
    ]);
    let system = first(&[
        ("Android", "Android"),
        ("iPhone", "iPhone"),
        ("iPad", "iPad"),
        ("Windows", "Windows"),
        ("Mac OS X", "macOS"),
        ("Linux", "Linux"),
    ]);
    match (browser, system) {
        (Some(browser), Some(system)) => format!("{browser} on {system}"),
        (Some(name), None) | (None, Some(name)) => name.to_owned(),
        (None, None) => "Unknown browser".to_owned(),
    }
}

#[derive(Debug, Template)]
#[template(path = "profile.html")]
pub(crate) struct ProfilePage {
    pub(crate) layout: Layout,
    pub(crate) user: CurrentUser,
    pub(crate) sessions: Vec<Session>,
    /// The current password: its error only.
    pub(crate) current: Field,
    /// The new password: its error only.
    pub(crate) password: Field,
    /// The repeated password: its error only.
    pub(crate) repeated: Field,
}
