//! The files of a template as a form has them: a JSON object by path. A stored content is named by its `hash`, a new one is in
//! `content` (base64) or `text`, as in `assets` of a request. `mimeType` may be left out.
//!
//! Invariant: what a form says of sizes, and of contents of other accounts, is not believed.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use platen_shared::{
    job::{AssetPath, AssetType, ContentHash},
    template_files::{TemplateFile, TemplateFiles},
};
use platen_statements::{AccountScope, Backend};
use serde_json::{Map, Value};

use crate::format;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FormFiles(Map<String, Value>);

/// Where the bytes of a file are.
enum Content {
    Stored(ContentHash),
    New(Vec<u8>),
}

impl FormFiles {
    /// The files of a JSON text; `None` if it is not an object of objects.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let files: Map<String, Value> = serde_json::from_str(text).ok()?;
        files.values().all(Value::is_object).then_some(Self(files))
    }

    /// The files of a saved template.
    pub(crate) fn of(files: &TemplateFiles) -> Self {
        Self::parse(&files.as_json()).unwrap_or_default()
    }

    /// The JSON text.
    pub(crate) fn json(&self) -> String {
        Value::Object(self.0.clone()).to_string()
    }

    /// The path of each file, and its size and media type as far as they are known.
    pub(crate) fn rows(&self) -> Vec<(&str, String)> {
        let facts = |file: &Value| {
            let size = file["size"].as_u64().map(format::size);
            size.into_iter()
                .chain(file["mimeType"].as_str().map(str::to_owned))
                .collect::<Vec<_>>()
                .join(", ")
        };
        self.0.iter().map(|(path, file)| (path.as_str(), facts(file))).collect()
    }

    /// Stores the new contents, and gives the files with which a template is saved; or an error for the user, which names the
    /// file, and nothing is stored.
    pub(crate) async fn store<B: Backend>(
        &self,
        account: &AccountScope<'_, B>,
    ) -> Result<Result<TemplateFiles, String>, B::Error> {
        let parsed: Result<Vec<_>, _> = self.0.iter().map(|(path, file)| parsed(path, file)).collect();
        let parsed = match parsed {
            Ok(parsed) => parsed,
            Err(error) => return Ok(Err(error)),
        };
        let hashes: Vec<ContentHash> = parsed
            .iter()
            .filter_map(|(.., content)| match content {
                Content::Stored(hash) => Some(hash.clone()),
                Content::New(_) => None,
            })
            .collect();
        let sizes = account.template_file_sizes(&hashes).await?;
        let (mut files, mut contents) = (Vec::new(), Vec::new());
        for (path, mime_type, content) in parsed {
            let (hash, size) = match content {
                Content::Stored(hash) => {
                    let Some(size) = sizes.get(&hash) else {
                        let error =
                            "its content is not stored, or not any more. Remove the file, or add it again.";
                        return Ok(Err(format!("“{}”: {error}", path.as_str())));
                    };
                    (hash, *size)
                }
                Content::New(content) => {
                    let found = (ContentHash::of(&content), content.len() as u64);
                    contents.push(content);
                    found
                }
            };
            files.push((path, TemplateFile { hash, size, mime_type }));
        }
        let largest = files.iter().max_by_key(|(_, file)| file.size);
        let largest = largest.map(|(path, file)| {
            format!(" The largest is “{}” with {} bytes.", path.as_str(), format::number(&file.size))
        });
        let files = match TemplateFiles::new(files) {
            Ok(files) => files,
            Err(error) => {
                return Ok(Err(format!("The files are not saved: {error}.{}", largest.unwrap_or_default())));
            }
        };
        for content in contents {
            account.put_template_file(content).await?;
        }
        Ok(Ok(files))
    }
}

/// A file of a form, or why it is not valid.
fn parsed(path: &str, file: &Value) -> Result<(AssetPath, Option<AssetType>, Content), String> {
    let shown = || path.chars().take(100).collect::<String>();
    let text = |name: &str| file[name].as_str();
    let path =
        AssetPath::try_from(path.to_owned()).map_err(|error| format!("The path “{}” {error}.", shown()))?;
    let mime_type =
        text("mimeType").filter(|text| !text.is_empty()).map(|text| AssetType::try_from(text.to_owned()));
    let mime_type =
        mime_type.transpose().map_err(|error| format!("The media type of “{}” {error}.", shown()))?;
    let content = if let Some(content) = text("content") {
        let content = BASE64_STANDARD.decode(content);
        Content::New(content.map_err(|_| format!("The content of “{}” is not valid base64.", shown()))?)
    } else if let Some(text) = text("text") {
        Content::New(text.as_bytes().to_vec())
    } else {
        let hash = ContentHash::try_from(text("hash").unwrap_or_default().to_owned());
        Content::Stored(hash.map_err(|_| format!("“{}” has no content.", shown()))?)
    };
    Ok((path, mime_type, content))
}

/// A line for each file, for comparisons.
pub(crate) fn lines(files: &TemplateFiles) -> String {
    let line = |(path, file): (&AssetPath, &TemplateFile)| {
        let mime_type = file.mime_type.as_ref().map_or("", AssetType::as_str);
        let hash = &file.hash.as_str()[..12];
        format!("{}  {} bytes  {mime_type}  {hash}\n", path.as_str(), format::number(&file.size))
    };
    files.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_file() {
        let hash = "a".repeat(64);
        for (path, file, error) in [
            ("../x", r#"{"content":""}"#, "The path “../x” must be"),
            ("a", r#"{"content":"*"}"#, "The content of “a” is not valid base64."),
            ("a", r#"{"content":"","mimeType":"x"}"#, "The media type of “a” must be"),
            ("a", r#"{"size":1}"#, "“a” has no content."),
            ("a", r#"{"hash":"../x"}"#, "“a” has no content."),
        ] {
            let found = parsed(path, &serde_json::from_str(file).unwrap()).err().unwrap();
            assert!(found.starts_with(error), "{found}");
        }
        for (file, is_new) in [
            (format!(r#"{{"hash":"{hash}","size":1}}"#), false),
            (format!(r#"{{"hash":"{hash}","content":"YQ=="}}"#), true),
            (r#"{"text":"a","mimeType":""}"#.to_owned(), true),
        ] {
            let (_, mime_type, content) = parsed("a", &serde_json::from_str(&file).unwrap()).ok().unwrap();
            assert_eq!(mime_type, None);
            assert_eq!(matches!(content, Content::New(bytes) if bytes == b"a"), is_new);
        }
        assert_eq!(FormFiles::parse("[]"), None);
        assert_eq!(FormFiles::parse(r#"{"a":1}"#), None);
        assert_eq!(FormFiles::parse(r#"{"a":{"size":2000,"mimeType":"a/b"}}"#).unwrap().rows()[0].0, "a");
    }
}
