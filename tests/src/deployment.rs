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
    /// Every deployment. Those of one platform are neighbours.
    pub const ALL: &'static [Self] = &[
        Self { platform: Platform::PlatenUp, database: DatabaseKind::File },
        Self { platform: Platform::PlatenUp, database: DatabaseKind::Sqld },
        Self { platform: Platform::PlatenUp, database: DatabaseKind::SqldJwt },
        Self { platform: Platform::Spin, database: DatabaseKind::File },
        Self { platform: Platform::Spin, database: DatabaseKind::Sqld },
        Self { platform: Platform::Spin, database: DatabaseKind::SqldJwt },
    ];

    /// Its name in the report and in `PLATEN_TEST_DATABASES`.
    pub fn name(self) -> &'static str {
        match (self.platform, self.database) {
            (Platform::PlatenUp, DatabaseKind::File) => "file",
            (Platform::PlatenUp, DatabaseKind::Sqld) => "sqld",
            (Platform::PlatenUp, DatabaseKind::SqldJwt) => "sqld-jwt",
            (Platform::Spin, DatabaseKind::File) => "spin-file",
            (Platform::Spin, DatabaseKind::Sqld) => "spin-sqld",
            (Platform::Spin, DatabaseKind::SqldJwt) => "spin-sqld-jwt",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|deployment| deployment.name() == name)
    }
}

/// `platen up` with this database.
impl From<DatabaseKind> for Deployment {
    fn from(database: DatabaseKind) -> Self {
        Self { platform: Platform::PlatenUp, database }
    }
}
