//! The files of a template, from a folder.

use std::{fs, path::Path};

use anyhow::{Context as _, Result, bail, ensure};
use platen_shared::{
    job::{AssetPath, ContentHash},
    limits,
    template_files::{InvalidFiles, TemplateFile, TemplateFiles},
};

/// A file of a template with its content.
type Read = (AssetPath, Vec<u8>);

/// The files of a folder, with paths relative to it, and their contents. Hidden ones are left out.
///
/// # Errors
/// Names the file that a template cannot have: a link, one that is neither file nor folder, and the first one beyond the
/// limits.
pub(super) fn read(folder: &Path) -> Result<(TemplateFiles, Vec<Vec<u8>>)> {
    let mut found = Vec::new();
    walk(folder, "", &mut found)?;
    let file = |(path, content): &Read| {
        let file =
            TemplateFile { hash: ContentHash::of(content), size: content.len() as u64, mime_type: None };
        (path.clone(), file)
    };
    let files = TemplateFiles::new(found.iter().map(file).collect());
    let files = files.with_context(|| format!("--assets {} cannot be saved", folder.display()))?;
    Ok((files, found.into_iter().map(|(_, content)| content).collect()))
}

fn walk(folder: &Path, prefix: &str, found: &mut Vec<Read>) -> Result<()> {
    let cannot = || format!("{} cannot be read", folder.display());
    for entry in fs::read_dir(folder).with_context(cannot)? {
        let entry = entry.with_context(cannot)?;
        let path = entry.path();
        let name = entry.file_name();
        let name = name.to_str().with_context(|| format!("the name of {} is not UTF-8", path.display()))?;
        if name.starts_with('.') {
            continue;
        }
        let place = format!("{prefix}{}", encoded(name));
        let kind = entry.file_type().with_context(|| format!("{} cannot be read", path.display()))?;
        if kind.is_dir() {
            walk(&path, &format!("{place}/"), found)?;
        } else if kind.is_file() {
            ensure!(
                found.len() < limits::MAX_TEMPLATE_FILES,
                "{}: {}",
                path.display(),
                InvalidFiles::TooMany
            );
            let size: usize = found.iter().map(|(_, content)| content.len()).sum();
            let content = fs::read(&path).with_context(|| format!("{} cannot be read", path.display()))?;
            ensure!(
                size + content.len() <= limits::MAX_TEMPLATE_FILE_BYTES,
                "{}: {}",
                path.display(),
                InvalidFiles::TooLarge
            );
            let place = AssetPath::try_from(place)
                .with_context(|| format!("{} cannot be a file of a template", path.display()))?;
            found.push((place, content));
        } else {
            bail!("{} is a link or no regular file: remove it, or copy what it leads to", path.display());
        }
    }
    Ok(())
}

/// A name as in an address, in which these characters have another meaning.
fn encoded(name: &str) -> String {
    name.replace('%', "%25").replace('?', "%3F").replace('#', "%23")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_folder_is_read_with_its_folders() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("img")).unwrap();
        for name in ["style.css", "img/100%.png", "img/a#1?.png", ".hidden"] {
            fs::write(at(name), name).unwrap();
        }
        let (files, contents) = read(folder.path()).unwrap();
        let paths: Vec<&str> = files.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(paths, ["img/100%25.png", "img/a%231%3F.png", "style.css"]);
        assert_eq!(contents.len(), 3);
        symlink("style.css", at("link.css")).unwrap();
        let error = format!("{:#}", read(folder.path()).unwrap_err());
        assert!(error.contains("link.css is a link"), "{error}");
        fs::remove_file(at("link.css")).unwrap();
        fs::write(at("large"), vec![0; limits::MAX_TEMPLATE_FILE_BYTES]).unwrap();
        let error = format!("{:#}", read(folder.path()).unwrap_err());
        assert!(error.contains("have at most 4194304 bytes in all"), "{error}");
        fs::remove_file(at("large")).unwrap();
        for number in 0..=limits::MAX_TEMPLATE_FILES {
            fs::write(at(&number.to_string()), "").unwrap();
        }
        let error = format!("{:#}", read(folder.path()).unwrap_err());
        assert!(error.contains("has at most 50 files"), "{error}");
    }
}
