//! `platen migrate`, and `platen backup`: a copy of the database file, while servers use it.
//!
//! Invariant: a copy is one state of the database, checked before it gets its name; a file that exists is not replaced.

use std::{
    fs::{self, OpenOptions},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail, ensure};
use clap::Args;
use serde::Serialize;

use super::CommonArgs;
use crate::{
    db::{Database, Location, Purpose, Value},
    migrate::{self, Step},
};

#[derive(Debug, Args)]
pub(crate) struct Migrate {
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Serialize)]
struct Applied {
    applied: Vec<Step>,
}

impl Migrate {
    /// Applies the missing steps and prints them.
    pub(crate) async fn run(self) -> Result<()> {
        let location = self.common.database.location();
        if self.common.database.db.is_none() {
            super::up::make_private(&self.common.database.data)?;
        }
        let database = self.common.database.open(Purpose::Migrate).await?;
        let applied = migrate::migrate(&database)
            .await
            .with_context(|| format!("the database {location} was not brought up to date"))?;
        self.common.output.print(&Applied { applied }, |Applied { applied }| {
            let what = match &location {
                Location::File(_) => "file",
                Location::Server(_) => "server",
            };
            let mut lines: Vec<String> =
                applied.iter().map(|step| format!("applied {}: {}", step.number, step.name)).collect();
            lines.push(format!("the database {what} {location} is up to date"));
            lines.join("\n")
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
    /// The last step of its schema.
    schema_step: usize,
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
        let part = Part::create(&self.file)?;
        let database = self.common.database.open(Purpose::Operate).await?;
        let into = Value::Text(part.path()?.to_owned());
        database
            .connect()
            .query("VACUUM INTO ?1", vec![into])
            .await
            .with_context(|| format!("{} cannot be copied", source.display()))?;
        let copy = Database::open(&Location::File(part.0.clone()), None, Purpose::Operate).await?;
        let checked = copy.connect().query("PRAGMA integrity_check", Vec::new()).await?;
        let is_whole =
            matches!(checked.first().and_then(|row| row.first()), Some(Value::Text(text)) if text == "ok");
        ensure!(is_whole, "the copy of {} is damaged: check the file and its disk", source.display());
        let schema_step = migrate::newest_step(&copy).await?;
        drop(copy);
        let bytes = part.finish(&self.file)?;
        self.common.output.print(&Copied { file: self.file, bytes, schema_step }, |copied| {
            format!("copied {} to {}: {} bytes", source.display(), copied.file.display(), copied.bytes)
        })
    }
}

/// The file while it is incomplete, removed unless it is finished.
struct Part(PathBuf);

impl Part {
    fn create(file: &Path) -> Result<Self> {
        let mut name = file.as_os_str().to_owned();
        name.push(".part");
        let path = PathBuf::from(name);
        // It has hashes of keys and passwords.
        let created = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        created.with_context(|| format!("{} cannot be created", path.display()))?;
        Ok(Self(path))
    }

    fn path(&self) -> Result<&str> {
        self.0.to_str().context("the name of the file is not UTF-8 text")
    }

    fn finish(&self, file: &Path) -> Result<u64> {
        let written = || {
            let part = fs::File::open(&self.0)?;
            part.sync_all()?;
            // Fails if the file exists by now.
            fs::hard_link(&self.0, file)?;
            Ok::<_, std::io::Error>(part.metadata()?.len())
        };
        written().with_context(|| format!("{} cannot be written", file.display()))
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        for suffix in ["", "-wal", "-shm", "-journal"] {
            let mut name = self.0.as_os_str().to_owned();
            name.push(suffix);
            let _ = fs::remove_file(name);
        }
    }
}
