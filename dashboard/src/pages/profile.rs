//! The profile page: password and sessions of the user.

use askama::Template;

use super::Layout;
use crate::{clock::Timestamp, form::Field};

#[derive(Debug, Clone)]
pub(crate) struct Session {
    pub(crate) id: String,
    /// Whether the page is viewed in this session.
    pub(crate) is_current: bool,
    pub(crate) created: Timestamp,
    /// Time of the last use, to within a 60th of the idle timeout.
    pub(crate) last_seen: Timestamp,
    /// Network address at sign-in.
    pub(crate) address: String,
    pub(crate) user_agent: String,
}

impl Session {
    /// Browser and operating system, guessed from the `User-Agent` header.
    fn browser(&self) -> String {
        let first = |known: &[(&str, &'static str)]| {
            known.iter().find(|(part, _)| self.user_agent.contains(part)).map(|(_, name)| *name)
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
}

#[derive(Debug, Template)]
#[template(path = "profile.html")]
pub(crate) struct ProfilePage {
    pub(crate) layout: Layout,
    pub(crate) email: String,
    pub(crate) sessions: Vec<Session>,
    /// The current password: its error only.
    pub(crate) current: Field,
    /// The new password: its error only.
    pub(crate) password: Field,
    /// The repeated password: its error only.
    pub(crate) repeated: Field,
}
