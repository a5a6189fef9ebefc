//! `platen migrate`, and `platen backup`: a copy of the database file, while servers use it.
//!
//! Invariant: a copy is one state of the database, checked before it gets its name; a file that exists is not replaced.

use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use clap::Args;
use platen_program::without_name;
use serde::Serialize;

use super::CommonArgs;
use crate::{
    db::{Database, Location, Purpose, Value},
    migrate,
};

#[derive(Debug, Args)]
pub(crate) struct Migrate {
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Serialize)]
struct Applied {
    /// Versions of the schema.
    applied: Vec<i64>,
}

impl Migrate {
    /// Creates the tables if there are none.
    pub(crate) async fn run(self) -> Result<()> {
        let location = self.common.database.location();
        if self.common.database.db.is_none() {
            super::up::make_private(&self.common.database.data)?;
        }
        let database = self.common.database.open(Purpose::Migrate).await?;
        let is_applied = migrate::migrate(&database)
            .await
            .with_context(|| format!("the database {location} was not brought up to date"))?;
        let applied = if is_applied { vec![migrate::VERSION] } else { Vec::new() };
        self.common.output.print(&Applied { applied }, |_| {
            let what = match &location {
                Location::File(_) => "file",
                Location::Server(_) => "server",
            };
            format!("the database {what} {location} is up to date")
        })
    }
}

/// Copy the database file while the server runs
///
/// The copy is compact and complete: accounts, keys, templates with their versions, users, counts and the audit log. To
/// restore it, stop the server and put it in the place of the database; remove the files ending in -wal and -shm there.
#[derive(Debug, Args)]
pub(crate) struct Backup {
    /// The file to write, which must not exist
    file: PathBuf,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Serialize)]
struct Copied {
    file: PathBuf,
    bytes: u64,
}

impl Backup {
    pub(crate) async fn run(self) -> Result<()> {
        let Location::File(source) = self.common.database.location() else {
            bail!(
                "only a database file can be copied by this command; a libSQL server has its own backups, \
                 see docs/runbooks.md"
            );
        };
        ensure!(fs::symlink_metadata(&self.file).is_err(), "{} exists: name a new file", self.file.display());
        // A directory, because SQLite writes other files beside the copy. Only this user may enter it.
        let directory = self.file.parent().filter(|parent| !parent.as_os_str().is_empty());
        let directory = tempfile::Builder::new()
            .permissions(fs::Permissions::from_mode(0o700))
            .tempdir_in(directory.unwrap_or(".".as_ref()))
            .map_err(|error| without_name(&error))
            .with_context(|| format!("{} cannot be created", self.file.display()))?;
        let part = tempfile::NamedTempFile::new_in(&directory).map_err(|error| without_name(&error))?;
        let database = self.common.database.open(Purpose::Operate).await?;
        let path = part.path().to_str().context("the name of the file is not UTF-8 text")?;
        database
            .run_script(&format!("VACUUM INTO '{}'", path.replace('\'', "''")))
            .await
            .with_context(|| format!("{} cannot be copied", source.display()))?;
        let copy = Database::open(&Location::File(part.path().into()), None, Purpose::Operate).await?;
        let checked = copy.query("SELECT integrity_check FROM pragma_integrity_check", Vec::new()).await?;
        ensure!(
            checked == [[Value::Text("ok".to_owned())]],
            "the copy of {} is damaged: check the file and its disk",
            source.display()
        );
        drop(copy);
        let written = part.as_file().sync_all().and_then(|()| Ok(part.persist_noclobber(&self.file)?));
        let file = written.with_context(|| format!("{} cannot be written", self.file.display()))?;
        let bytes = file.metadata()?.len();
        self.common.output.print(&Copied { file: self.file, bytes }, |copied| {
            format!("copied {} to {}: {} bytes", source.display(), copied.file.display(), copied.bytes)
        })
    }
}
