//! Secrets from the environment, directly or in a file.
//!
//! Invariant: a secret is never shown. White space around one is not part of it, because files end with a newline.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

use secrecy::SecretString;

/// Why a secret cannot be read. Does not show it.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe them")]
pub enum SecretError {
    #[error("{0} and {0}_FILE are both set: unset one of them")]
    Both(String),
    #[error("the file {1} of {0}_FILE cannot be read")]
    File(String, PathBuf, #[source] io::Error),
    #[error("the file {1} of {0}_FILE is empty")]
    Empty(String, PathBuf),
    #[error("{0} is not UTF-8 text")]
    NotText(String),
}

/// The secret in the variable `name`, or in `file`, which the variable `NAME_FILE` or a flag names. `None` if neither is
/// set, or the variable is empty.
///
/// # Errors
/// [`SecretError`], which names the variable.
pub fn secret(name: &str, file: Option<&Path>) -> Result<Option<SecretString>, SecretError> {
    let value = match env::var(name) {
        Ok(value) => value,
        Err(env::VarError::NotPresent) => String::new(),
        Err(env::VarError::NotUnicode(_)) => return Err(SecretError::NotText(name.to_owned())),
    };
    secret_from(name, &value, file)
}

/// The same as [`secret()`], with the `value` of the variable.
///
/// # Errors
/// [`SecretError`], which names the variable.
pub fn secret_from(
    name: &str,
    value: &str,
    file: Option<&Path>,
) -> Result<Option<SecretString>, SecretError> {
    let value = Some(value.trim()).filter(|value| !value.is_empty());
    let Some(path) = file else { return Ok(value.map(SecretString::from)) };
    if value.is_some() {
        return Err(SecretError::Both(name.to_owned()));
    }
    let text = fs::read_to_string(path)
        .map_err(|error| SecretError::File(name.to_owned(), path.to_owned(), error))?;
    match text.trim() {
        "" => Err(SecretError::Empty(name.to_owned(), path.to_owned())),
        text => Ok(Some(text.into())),
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;

    #[test]
    fn a_secret_is_a_value_or_a_file_and_never_shown() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        let text = |value: &str, file: Option<&Path>| {
            let secret = secret_from("NAME", value, file).map_err(|error| error.to_string())?;
            Ok::<_, String>(secret.map(|secret| secret.expose_secret().to_owned()))
        };
        assert_eq!(text("", None), Ok(None));
        assert_eq!(text(" a\n", None), Ok(Some("a".to_owned())));
        let missing = text("", Some(&path)).unwrap_err();
        assert!(missing.contains("NAME_FILE") && missing.contains("token"), "{missing}");
        fs::write(&path, "s3cret\n").unwrap();
        assert_eq!(text("", Some(&path)), Ok(Some("s3cret".to_owned())));
        let both = text("oth3r", Some(&path)).unwrap_err();
        assert!(both.contains("NAME and NAME_FILE") && !both.contains("oth3r") && !both.contains("s3cret"));
        fs::write(&path, " \n").unwrap();
        assert!(text("", Some(&path)).unwrap_err().contains("empty"));
    }
}
