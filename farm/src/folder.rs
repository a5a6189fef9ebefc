//! A folder of this machine, whose files are beside the markup of a job.
//!
//! Only a program that has the farm in its own process can name one: a job that is sent cannot.
//!
//! Invariant: no file outside of the folder is opened, also if links or folders change while it is resolved, and nothing but
//! regular files is opened to be read.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read as _},
    os::{
        fd::{AsRawFd as _, OwnedFd},
        unix::fs::OpenOptionsExt as _,
    },
    path::{Path, PathBuf},
};

use nix::{
    errno::Errno,
    fcntl::{OFlag, OpenHow, ResolveFlag, openat2},
};
use percent_encoding::percent_decode_str;
use platen_shared::limits;
use url::Url;

/// A folder whose files a page may read, each when it asks for it.
#[derive(Debug)]
pub struct Folder {
    root: OwnedFd,
    /// Path of the page's address.
    page: String,
}

/// Why a page does not get a file. The value is the HTTP status that it gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Missing {
    /// There is no such file.
    #[error("not found")]
    NotFound = 404,
    /// A hidden file, a link out of the folder, no regular file, or one without permission.
    #[error("a hidden file, a link out of the folder, or no file that can be read")]
    Forbidden = 403,
    /// More bytes than a page gets of one file.
    #[error("larger than {} MiB", limits::MAX_ASSET_BYTES >> 20)]
    TooLarge = 413,
}

impl Missing {
    /// What a status says; `None` for one that no file has.
    #[must_use]
    pub fn of_status(status: u16) -> Option<Self> {
        let all = [Self::NotFound, Self::Forbidden, Self::TooLarge];
        all.into_iter().find(|it| *it as u16 == status)
    }
}

impl Folder {
    /// Opens the folder `path`. `page` is the file of the markup: if it is below the folder, its place there is the markup's
    /// address; else the address is that of the folder.
    ///
    /// # Errors
    /// If the folder, or the folder of `page`, is none or cannot be opened.
    pub fn open(path: &Path, page: Option<&Path>) -> io::Result<Self> {
        let directory = OpenOptions::new()
            .read(true)
            .custom_flags((OFlag::O_DIRECTORY | OFlag::O_PATH).bits())
            .open(path)?;
        let place = page.map(|page| place_below(path, page)).transpose()?.flatten();
        let address = place.and_then(|place| Url::from_file_path(Path::new("/").join(place)).ok());
        let page = address.map_or_else(|| "/".to_owned(), |address| address.path().to_owned());
        Ok(Self { root: directory.into(), page })
    }

    pub(crate) fn page(&self) -> &str {
        &self.page
    }

    /// The bytes of the page's own file.
    ///
    /// # Errors
    /// [`Missing`], by the same rules as for the files beside it.
    pub fn read_page(&self) -> Result<Vec<u8>, Missing> {
        self.read(&self.page)
    }

    /// The bytes of the file that the path of an address names.
    pub(crate) fn read(&self, path: &str) -> Result<Vec<u8>, Missing> {
        let names = path.trim_start_matches('/').split('/').map(|name| percent_decode_str(name).collect());
        let names: Vec<Vec<u8>> = names.collect();
        if names.iter().any(|name| name.is_empty() || name.contains(&b'/') || name.contains(&0)) {
            return Err(Missing::NotFound);
        }
        if names.iter().any(|name| name.starts_with(b".")) {
            return Err(Missing::Forbidden);
        }
        let path = names.join(&b'/');
        // To open a device or a pipe to read it can have effects, or wait.
        let how = OpenHow::new()
            .flags(OFlag::O_PATH | OFlag::O_CLOEXEC)
            .resolve(ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_MAGICLINKS);
        let found = openat2(&self.root, path.as_slice(), how).map_err(|error| match error {
            Errno::ENOENT | Errno::ENOTDIR | Errno::ENAMETOOLONG => Missing::NotFound,
            _ => Missing::Forbidden,
        })?;
        let found = File::from(found);
        if !found.metadata().is_ok_and(|metadata| metadata.is_file()) {
            return Err(Missing::Forbidden);
        }
        let file = File::open(format!("/proc/self/fd/{}", found.as_raw_fd()));
        let mut bytes = Vec::new();
        let max = limits::MAX_ASSET_BYTES;
        let read = file
            .and_then(|file| file.take(u64::try_from(max).unwrap_or(u64::MAX) + 1).read_to_end(&mut bytes));
        match read {
            Err(_) => Err(Missing::Forbidden),
            Ok(_) if bytes.len() > max => Err(Missing::TooLarge),
            Ok(_) => Ok(bytes),
        }
    }
}

/// The path of a file in a folder; `None` if it is not below it. The file may be a link, whose own place counts.
fn place_below(folder: &Path, file: &Path) -> io::Result<Option<PathBuf>> {
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let file = parent.canonicalize()?.join(file.file_name().unwrap_or_default());
    Ok(file.strip_prefix(folder.canonicalize()?).ok().map(Path::to_owned))
}

#[cfg(test)]
mod tests {
    use std::{
        ffi::OsStr,
        fs,
        os::unix::{ffi::OsStrExt as _, fs::symlink},
    };

    use nix::{sys::stat::Mode, unistd::mkfifo};

    use super::*;

    #[test]
    fn only_regular_files_below_a_folder_are_read() {
        let outside = tempfile::tempdir().unwrap();
        let root = outside.path().join("root");
        fs::create_dir_all(root.join("sub/.git")).unwrap();
        for name in ["secret", "root/a.css", "root/.env", "root/sub/é b", "root/sub/.git/x", "root/100%"] {
            fs::write(outside.path().join(name), name).unwrap();
        }
        fs::write(root.join(OsStr::from_bytes(b"\xff")), "latin").unwrap();
        mkfifo(&root.join("pipe"), Mode::S_IRWXU).unwrap();
        let large = File::create(root.join("large")).unwrap();
        large.set_len(limits::MAX_ASSET_BYTES as u64 + 1).unwrap();
        let largest = File::create(root.join("largest")).unwrap();
        largest.set_len(limits::MAX_ASSET_BYTES as u64).unwrap();
        symlink("../secret", root.join("out")).unwrap();
        symlink(outside.path().join("secret"), root.join("absolute")).unwrap();
        symlink("..", root.join("up")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        symlink("/dev/zero", root.join("device")).unwrap();
        symlink("/proc/self/root", root.join("magic")).unwrap();
        symlink("../a.css", root.join("sub/in")).unwrap();
        let link = outside.path().join("link");
        symlink(&root, &link).unwrap();
        let folder = Folder::open(&link, None).unwrap();
        for (path, expected) in [
            ("/a.css", "root/a.css"),
            ("/%61.css", "root/a.css"),
            ("/sub/in", "root/a.css"),
            ("/sub/%C3%A9%20b", "root/sub/é b"),
            ("/100%", "root/100%"),
            ("/%FF", "latin"),
        ] {
            assert_eq!(folder.read(path), Ok(expected.as_bytes().to_vec()), "{path}");
        }
        assert_eq!(folder.read("/largest").map(|bytes| bytes.len()), Ok(limits::MAX_ASSET_BYTES));
        let long = format!("/{}", "x".repeat(5000));
        for (path, expected) in [
            ("/", Missing::NotFound),
            ("/none", Missing::NotFound),
            ("/a.css/b", Missing::NotFound),
            ("/sub//in", Missing::NotFound),
            ("/..%2Fsecret", Missing::NotFound),
            ("/a.css%00", Missing::NotFound),
            (&long, Missing::NotFound),
            ("/../secret", Missing::Forbidden),
            ("/%2e%2e/secret", Missing::Forbidden),
            ("/sub/.%2e/a.css", Missing::Forbidden),
            ("/.env", Missing::Forbidden),
            ("/%2Eenv", Missing::Forbidden),
            ("/sub/.git/x", Missing::Forbidden),
            ("/out", Missing::Forbidden),
            ("/absolute", Missing::Forbidden),
            ("/up/secret", Missing::Forbidden),
            ("/up/root/a.css", Missing::Forbidden),
            ("/loop", Missing::Forbidden),
            ("/device", Missing::Forbidden),
            ("/magic/etc/passwd", Missing::Forbidden),
            ("/pipe", Missing::Forbidden),
            ("/sub", Missing::Forbidden),
            ("/large", Missing::TooLarge),
        ] {
            assert_eq!(folder.read(path).map(|bytes| bytes.len()), Err(expected), "{path}");
        }
    }

    #[test]
    fn a_page_is_at_its_place_in_the_folder() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        fs::create_dir(root.join("sub")).unwrap();
        let place =
            |folder: &str, page: &str| Folder::open(&root.join(folder), Some(&root.join(page))).unwrap().page;
        assert_eq!(place("", "a.html"), "/a.html");
        assert_eq!(place("", "sub/a #1.html"), "/sub/a%20%231.html");
        assert_eq!(place("sub/..", "sub/../a.html"), "/a.html");
        assert_eq!(place("sub", "a.html"), "/");
        Folder::open(&root.join("none"), None).unwrap_err();
    }
}
