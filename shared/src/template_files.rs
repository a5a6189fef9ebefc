//! The files of a template: for each path the hash of a content, which is stored once for an account.

use std::collections::{BTreeMap, HashSet};

use serde::{Deserialize, Serialize};

use crate::{
    job::{Asset, AssetContent, AssetPath, AssetType, ContentHash, path_names},
    limits,
    text::shortened,
};

/// A file of a template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TemplateFile {
    /// The hash of its content.
    pub hash: ContentHash,
    /// Bytes of its content.
    pub size: u64,
    /// Its media type; without it that of the extension of its path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<AssetType>,
}

/// The files of a template by path: at most [`limits::MAX_TEMPLATE_FILES`], with
/// [`limits::MAX_TEMPLATE_FILE_BYTES`] in all. Equal files have equal JSON.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TemplateFiles(BTreeMap<AssetPath, TemplateFile>);

/// Files that a template cannot have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidFiles {
    /// The number of files.
    #[error("a template has at most {} files", limits::MAX_TEMPLATE_FILES)]
    TooMany,
    /// The sum of their sizes.
    #[error("the files of a template have at most {} bytes in all", limits::MAX_TEMPLATE_FILE_BYTES)]
    TooLarge,
    /// A path, shortened, that is equal to another one.
    #[error("the path \"{0}\" is there twice")]
    Repeated(String),
}

impl TemplateFiles {
    /// The files with their paths.
    ///
    /// # Errors
    /// [`InvalidFiles`].
    pub fn new(files: Vec<(AssetPath, TemplateFile)>) -> Result<Self, InvalidFiles> {
        if files.len() > limits::MAX_TEMPLATE_FILES {
            return Err(InvalidFiles::TooMany);
        }
        let bytes = files.iter().fold(0, |sum: u64, (_, file)| sum.saturating_add(file.size));
        if bytes > limits::MAX_TEMPLATE_FILE_BYTES as u64 {
            return Err(InvalidFiles::TooLarge);
        }
        let mut paths = HashSet::new();
        match files.iter().find(|(path, _)| !paths.insert(path_names(path.as_str()))) {
            Some((path, _)) => Err(InvalidFiles::Repeated(shortened(path.as_str()))),
            None => Ok(Self(files.into_iter().collect())),
        }
    }

    /// The files in the order of their paths.
    #[must_use]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&AssetPath, &TemplateFile)> {
        self.0.iter()
    }

    /// The files as assets of a job, without their contents.
    pub fn assets(&self) -> impl Iterator<Item = Asset> {
        self.0.iter().map(|(path, file)| Asset {
            path: path.clone(),
            content: AssetContent::Stored { hash: file.hash.clone(), content: None },
            mime_type: file.mime_type.clone(),
        })
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A JSON object by path, as it is stored.
    #[must_use]
    pub fn as_json(&self) -> String {
        serde_json::json!(self).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(paths: &[&str], size: usize) -> Result<TemplateFiles, InvalidFiles> {
        let file = |path: &&str| {
            let file = TemplateFile { hash: ContentHash::of(b"a"), size: size as u64, mime_type: None };
            (AssetPath::try_from((*path).to_owned()).unwrap(), file)
        };
        TemplateFiles::new(paths.iter().map(file).collect())
    }

    #[test]
    fn files_keep_to_the_limits() {
        let paths: Vec<String> = (0..=limits::MAX_TEMPLATE_FILES).map(|number| format!("{number}")).collect();
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        assert_eq!(files(&paths[1..], 1).unwrap().iter().len(), limits::MAX_TEMPLATE_FILES);
        assert_eq!(files(&paths, 1), Err(InvalidFiles::TooMany));
        let half = limits::MAX_TEMPLATE_FILE_BYTES / 2;
        assert!(files(&["a", "b"], half).is_ok());
        assert_eq!(files(&["a", "b"], half + 1), Err(InvalidFiles::TooLarge));
        assert_eq!(files(&["\u{fc}.png", "%C3%BC.png"], 1), Err(InvalidFiles::Repeated("%C3%BC.png".into())));
    }

    #[test]
    fn equal_files_have_equal_json() {
        let json = files(&["b", "a"], 1).unwrap().as_json();
        assert_eq!(json, files(&["a", "b"], 1).unwrap().as_json());
        let hash = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb";
        assert_eq!(json, format!(r#"{{"a":{{"hash":"{hash}","size":1}},"b":{{"hash":"{hash}","size":1}}}}"#));
        assert_eq!(serde_json::from_str::<TemplateFiles>(&json).unwrap().as_json(), json);
        for hash in ["", &hash[1..], &hash.to_uppercase()] {
            assert!(ContentHash::try_from(hash.to_owned()).is_err());
        }
    }
}
