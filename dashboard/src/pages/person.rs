//! The person's own page: password and sessions.

use askama::Template;

use super::Layout;
use crate::{clock::Timestamp, form::Field};

/// A session.
#[derive(Debug, Clone)]
pub struct Session {
    /// Its id.
    pub id: String,
    /// The one this page is shown in.
    pub is_this: bool,
    /// When it began.
    pub began: Timestamp,
    /// When it was last used, about.
    pub seen: Timestamp,
    /// The network address it began from.
    pub address: String,
    /// The browser, as it names itself.
    pub agent: String,
}

impl Session {
    /// The browser and the system in two words, guessed.
    fn browser(&self) -> String {
        let first = |known: &[(&str, &'static str)]| {
            known.iter().find(|(part, _)| self.agent.contains(part)).map(|(_, name)| *name)
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

/// The page.
#[derive(Debug, Template)]
#[template(path = "you.html")]
pub struct You {
    /// What surrounds it.
    pub layout: Layout,
    /// The e-mail address.
    pub email: String,
    /// The sessions.
    pub sessions: Vec<Session>,
    /// The password as it is.
    pub current: Field,
    /// The new password.
    pub password: Field,
    /// Its repetition.
    pub again: Field,
}
