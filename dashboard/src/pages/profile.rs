//! The profile page: password and sessions of the user.

use askama::Template;

use super::Layout;
use crate::{clock::Timestamp, form::Field};

/// A session in the list.
#[derive(Debug, Clone)]
pub struct Session {
    /// Id for addresses of forms.
    pub id: String,
    /// Whether the page is viewed in this session.
    pub is_current: bool,
    /// Time of the sign-in.
    pub created: Timestamp,
    /// Time of the last use, to within a 60th of the idle timeout.
    pub last_seen: Timestamp,
    /// Network address at sign-in.
    pub address: String,
    /// The `User-Agent` header at sign-in.
    pub user_agent: String,
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

/// The form that changes the password, and the sessions.
#[derive(Debug, Template)]
#[template(path = "profile.html")]
pub struct ProfilePage {
    /// Shared parts.
    pub layout: Layout,
    /// The address that the user signs in with.
    pub email: String,
    /// All sessions of the user, last used first.
    pub sessions: Vec<Session>,
    /// The current password: its error only.
    pub current: Field,
    /// The new password: its error only.
    pub password: Field,
    /// The repeated password: its error only.
    pub repeated: Field,
}
