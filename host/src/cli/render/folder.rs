//! The folder whose files are beside the markup, and what is said about those that the page does not get.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use platen_farm::{Folder, Missing};
use platen_shared::job::RenderJob;

use super::RenderCommand;

impl RenderCommand {
    /// The folder whose files are beside the markup.
    pub(super) fn folder(&self, job: &RenderJob) -> Result<Option<Folder>> {
        let page = self.file();
        if let Some(folder) = self.fields.folder() {
            ensure!(!self.is_url(), "--assets is for HTML, and the page is a URL");
            ensure!(job.options.base_url.is_none(), "--assets DIR and --base-url exclude each other");
            let opened = Folder::open(folder, page).with_context(|| {
                format!("--assets must be JSON, @FILE or a folder: {} cannot be opened", folder.display())
            })?;
            return Ok(Some(opened));
        }
        let Some(page) = page.filter(|_| !job.has_address()) else { return Ok(None) };
        let Some(folder) = folder_of(page)? else { return Ok(None) };
        let opened = Folder::open(&folder, Some(page));
        Ok(Some(opened.with_context(|| format!("the folder {} cannot be opened", folder.display()))?))
    }

    /// The folder to watch: the page may have its files.
    pub(super) fn watched_folder(&self) -> Result<Option<PathBuf>> {
        match self.fields.folder() {
            Some(folder) => Ok(Some(folder.canonicalize().with_context(|| folder.display().to_string())?)),
            None => self.file().map_or(Ok(None), folder_of),
        }
    }

    /// The page, if it is a file.
    fn file(&self) -> Option<&Path> {
        Some(Path::new(&self.page)).filter(|page| !self.is_url() && *page != Path::new("-"))
    }
}

/// The folder of a page's file, without links; `None` for /dev/stdin and pipes of a shell, which are the page alone.
fn folder_of(page: &Path) -> Result<Option<PathBuf>> {
    let parent = page.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = parent.canonicalize();
    let folder = folder.with_context(|| format!("the folder {} cannot be opened", parent.display()))?;
    Ok(Some(folder).filter(|folder| !["/dev", "/proc"].iter().any(|of_system| folder.starts_with(of_system))))
}

/// A text of a page's problem. A file beside the markup has a path and a reason instead of a method and a status.
pub(in crate::cli) fn plain(text: &str) -> String {
    let file = text.strip_prefix("GET /").and_then(|request| request.rsplit_once(' '));
    match file.and_then(|(path, status)| Some((path, Missing::of_status(status.parse().ok()?)?))) {
        Some((path, reason)) => format!("{path}: {reason}"),
        None => text.to_owned(),
    }
}
