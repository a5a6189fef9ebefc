//! What the suite runs on: the platforms that host the components, and the databases.

/// A host of the components.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Platform {
    /// `platen up`, with its farm in the same process.
    PlatenUp,
    /// `spin up`, with a `platen-farm` process.
    Spin,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DatabaseKind {
    /// A SQLite-format file that the server opens itself.
    File,
    /// `sqld` without authentication.
    Sqld,
    /// `sqld` that requires a signed token.
    SqldJwt,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Deployment {
    pub platform: Platform,
    pub database: DatabaseKind,
}

impl Deployment {
    /// Every deployment, with its name in the report and in `PLATEN_TEST_DATABASES`. Those of one platform are neighbours.
    const NAMES: [(&'static str, Platform, DatabaseKind); 6] = [
        ("file", Platform::PlatenUp, DatabaseKind::File),
        ("sqld", Platform::PlatenUp, DatabaseKind::Sqld),
        ("sqld-jwt", Platform::PlatenUp, DatabaseKind::SqldJwt),
        ("spin-file", Platform::Spin, DatabaseKind::File),
        ("spin-sqld", Platform::Spin, DatabaseKind::Sqld),
        ("spin-sqld-jwt", Platform::Spin, DatabaseKind::SqldJwt),
    ];

    pub fn all() -> impl Iterator<Item = Self> {
        Self::NAMES.into_iter().map(|(_, platform, database)| Self { platform, database })
    }

    pub fn name(self) -> &'static str {
        let is_this = |it: &&(_, Platform, DatabaseKind)| (it.1, it.2) == (self.platform, self.database);
        Self::NAMES.iter().find(is_this).map_or("", |it| it.0)
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::all().find(|deployment| deployment.name() == name)
    }
}

/// `platen up` with this database.
impl From<DatabaseKind> for Deployment {
    fn from(database: DatabaseKind) -> Self {
        Self { platform: Platform::PlatenUp, database }
    }
}
