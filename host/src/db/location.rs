//! Where a database is, and what it is opened for.
//!
//! Invariant: a [`Location`] is a file's path or an `http`/`https` URL without user, query or fragment, so
//! it holds no secret.

use std::{
    fmt,
    path::{Path, PathBuf},
    str::FromStr,
};

use anyhow::{Error, Result, anyhow, bail, ensure};
use url::Url;

/// A SQLite file or a libSQL server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Location {
    File(PathBuf),
    /// The HTTP address of a libSQL server.
    Server(Url),
}

/// What a database is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The server: a missing file is created.
    // WAL with synchronous=NORMAL: a commit does not wait for the disk. After a power failure the file is
    // consistent and may lack the attempts of the last moments, which is to the customer's advantage;
    // waiting for the disk would cost every request milliseconds.
    Serve,
    /// An operator's command on an existing database. A key that was printed must not be lost in a power
    /// failure, so each commit waits for the disk.
    Operate,
    /// `platen migrate`: as `Operate`, and a missing file is created.
    Migrate,
}

impl Location {
    /// The database file of a data directory.
    pub(crate) fn in_data(directory: &Path) -> Self {
        Self::File(directory.join("platen.db"))
    }
}

impl FromStr for Location {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let file = |path: &str| {
            ensure!(!path.is_empty(), "a database is a file's path or a URL, and this is empty");
            Ok(Self::File(path.into()))
        };
        if let Some(path) = text.strip_prefix("file:") {
            return file(path.strip_prefix("//").unwrap_or(path));
        }
        let Some((scheme, rest)) = text.split_once("://") else { return file(text) };
        // libSQL's scheme and the WebSocket schemes name servers that have the HTTP interface as well.
        let http = match scheme {
            "http" | "ws" => "http",
            "https" | "wss" | "libsql" => "https",
            other => bail!("a database URL starts with http://, https:// or libsql://, not {other}://"),
        };
        let url = Url::parse(&format!("{http}://{rest}")).map_err(|_| anyhow!("{text:?} is not a URL"))?;
        let extra = !url.username().is_empty()
            || url.password().is_some()
            || url.query().is_some()
            || url.fragment().is_some();
        ensure!(!extra, "a database URL has no user, query or fragment; the token goes into PLATEN_DB_TOKEN");
        Ok(Self::Server(url))
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Server(url) => url.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_servers() {
        for (text, expected) in [
            ("platen.db", "platen.db"),
            ("/var/lib/p.db", "/var/lib/p.db"),
            ("file:a/b.db", "a/b.db"),
            ("file:///srv/p.db", "/srv/p.db"),
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080/"),
            ("https://db.example/ns", "https://db.example/ns"),
            ("libsql://db.example", "https://db.example/"),
            ("wss://db.example", "https://db.example/"),
        ] {
            assert_eq!(text.parse::<Location>().unwrap().to_string(), expected, "{text}");
        }
        for text in
            ["", "file:", "postgres://x", "http://", "http://u:p@x", "https://x?authToken=1", "https://x#f"]
        {
            text.parse::<Location>().unwrap_err();
        }
    }
}
