//! A folder of this machine, whose files are beside the markup of a job.
//!
//! Only a program that has the farm in its own process can name one: a job that is sent cannot.
//!
//! Invariant: no file outside of the folder and no hidden one is opened to be read, also if links or folders change while it is
//! resolved, and nothing but regular files is.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read as _},
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::fs::OpenOptionsExt as _,
    },
    path::{Path, PathBuf},
    sync::Arc,
};

use nix::{
    errno::Errno,
    fcntl::{OFlag, OpenHow, ResolveFlag, openat2},
};
use percent_encoding::percent_decode_str;
use platen_shared::limits;
use url::Url;

/// A folder whose files a page may read, each when it asks for it. Clones share it.
#[derive(Debug, Clone)]
pub struct Folder {
    root: Arc<OwnedFd>,
    /// Path of the page's address.
    page: String,
}

/// What the path of an address names.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// The bytes of a file.
    File(Vec<u8>),
    /// A folder, whose address ends in `/`.
    Folder,
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
    /// The page would get more bytes with this file than it may get from the folder.
    #[error("beyond the {} MB that a page gets from its folder", limits::MAX_FOLDER_BYTES / 1_000_000)]
    OverLimit = 503,
}

impl Missing {
    /// What a status says; `None` for one that no file has.
    #[must_use]
    pub fn of_status(status: u16) -> Option<Self> {
        let all = [Self::NotFound, Self::Forbidden, Self::TooLarge, Self::OverLimit];
        all.into_iter().find(|it| *it as u16 == status)
    }
}

impl Folder {
    /// The file that answers the address of its folder.
    pub(crate) const INDEX: &str = "index.html";

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
        Ok(Self { root: Arc::new(directory.into()), page })
    }

    pub(crate) fn page(&self) -> &str {
        &self.page
    }

    /// The bytes of the page's own file.
    ///
    /// # Errors
    /// [`Missing`], by the same rules as for the files beside it.
    pub fn read_page(&self) -> Result<Vec<u8>, Missing> {
        match self.read(&self.page)? {
            Found::File(bytes) => Ok(bytes),
            Found::Folder => Err(Missing::Forbidden),
        }
    }

    /// Reads what the path of an address names. A path that ends in `/` names the index of a folder.
    pub(crate) fn read(&self, path: &str) -> Result<Found, Missing> {
        let path = path.strip_prefix('/').unwrap_or(path);
        let index = if path.is_empty() || path.ends_with('/') { Self::INDEX } else { "" };
        let path = format!("{path}{index}");
        let names: Vec<Vec<u8>> = path.split('/').map(|name| percent_decode_str(name).collect()).collect();
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
        let found = openat2(&*self.root, path.as_slice(), how).map_err(|error| match error {
            Errno::ENOENT | Errno::ENOTDIR | Errno::ENAMETOOLONG => Missing::NotFound,
            _ => Missing::Forbidden,
        })?;
        let found = File::from(found);
        let forbidden = |_| Missing::Forbidden;
        let kind = found.metadata().map_err(forbidden)?.file_type();
        if self.is_hidden(&found) || !(kind.is_file() || kind.is_dir()) {
            return Err(Missing::Forbidden);
        }
        if kind.is_dir() {
            return Ok(Found::Folder);
        }
        let file = File::open(opened(&found)).map_err(forbidden)?;
        let length = file.metadata().map_err(forbidden)?.len();
        if length > limits::MAX_ASSET_BYTES as u64 {
            return Err(Missing::TooLarge);
        }
        let mut bytes = Vec::new();
        // Another program may be writing more.
        file.take(length).read_to_end(&mut bytes).map_err(forbidden)?;
        Ok(Found::File(bytes))
    }

    /// Whether what was found has a hidden name, which a link has another name for.
    fn is_hidden(&self, found: &File) -> bool {
        let paths =
            fs::read_link(opened(&*self.root)).and_then(|root| Ok((root, fs::read_link(opened(found))?)));
        let Ok((root, path)) = paths else { return true };
        path.strip_prefix(root)
            .map_or(true, |path| path.iter().any(|name| name.as_encoded_bytes().starts_with(b".")))
    }
}

/// The path that opens again what was opened, whose link has the path at which it is now.
fn opened(file: &impl AsRawFd) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
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
        io::Write as _,
        os::unix::{ffi::OsStrExt as _, fs::symlink},
        thread,
    };

    use nix::{sys::stat::Mode, unistd::mkfifo};

    use super::*;

    #[test]
    fn only_regular_files_below_a_folder_are_read() {
        let outside = tempfile::tempdir().unwrap();
        let root = outside.path().join("root");
        fs::create_dir_all(root.join("sub/.git")).unwrap();
        fs::create_dir(root.join("empty")).unwrap();
        for name in [
            "secret",
            "root/a.css",
            "root/.env",
            "root/index.html",
            "root/sub/index.html",
            "root/sub/é b",
            "root/sub/.git/x",
            "root/100%",
        ] {
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
        symlink(".env", root.join("shown")).unwrap();
        symlink("sub/.git", root.join("git")).unwrap();
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
            ("/", "root/index.html"),
            ("/sub/", "root/sub/index.html"),
        ] {
            assert_eq!(folder.read(path), Ok(Found::File(expected.as_bytes().to_vec())), "{path}");
        }
        assert_eq!(folder.read("/sub"), Ok(Found::Folder));
        let Ok(Found::File(largest)) = folder.read("/largest") else { panic!("no file") };
        assert_eq!(largest.len(), limits::MAX_ASSET_BYTES);
        let long = format!("/{}", "x".repeat(5000));
        for (path, expected) in [
            ("/empty/", Missing::NotFound),
            ("/a.css/", Missing::NotFound),
            ("//a.css", Missing::NotFound),
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
            ("/shown", Missing::Forbidden),
            ("/git", Missing::Forbidden),
            ("/git/x", Missing::Forbidden),
            ("/large", Missing::TooLarge),
        ] {
            let read = folder.read(path).map(|found| matches!(found, Found::File(_)));
            assert_eq!(read, Err(expected), "{path}");
        }
    }

    #[test]
    fn a_file_that_changes_is_read_to_the_length_that_it_had() {
        const LENGTHS: [usize; 3] = [3_000_000, 100, 1_000_000];
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        fs::write(&file, "x").unwrap();
        let folder = Folder::open(directory.path(), None).unwrap();
        thread::scope(|scope| {
            let appending = scope.spawn(|| {
                // Longer and shorter, in place and as another file.
                for turn in 0..60 {
                    let length = LENGTHS[turn % LENGTHS.len()];
                    fs::write(&file, vec![b'y'; length]).unwrap();
                    fs::write(directory.path().join("new"), vec![b'z'; length]).unwrap();
                    fs::rename(directory.path().join("new"), &file).unwrap();
                }
                let mut file = OpenOptions::new().append(true).open(&file).unwrap();
                (0..2_000).for_each(|_| file.write_all(&[b'x'; 1_000]).unwrap());
            });
            let mut reads = 0;
            while !appending.is_finished() || reads == 0 {
                let Ok(Found::File(bytes)) = folder.read("/file") else { panic!("no file") };
                assert!(bytes.len() <= 3_000_000, "{} bytes", bytes.len());
                reads += 1;
            }
        });
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
