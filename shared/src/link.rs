//! Links: signed addresses, each of one file of a template. Calling one needs no key; making one needs the secret of the link.
//!
//! `/v1/links/{linkId}/{signature}/{fileName}.{ext}?{name}={value}&…`. The signature is that of the text after the signature, with
//! the link's id before it.
//!
//! Invariant: one file has one address. [`LinkAddress::parse`] reads every spelling, and [`LinkFile`] writes one.

use std::{collections::BTreeMap, fmt::Write as _, str::FromStr};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit as _, Mac as _};
use percent_encoding::percent_decode_str;
use serde::{Serialize, Serializer};
use sha2::Sha256;
use unicode_normalization::UnicodeNormalization as _;

use crate::{
    format::OutputFormat,
    limits,
    token::{has_checksum, secret, with_checksum},
};

/// The beginning of the path of every address.
pub const PATH: &str = "/v1/links/";
/// Number of random bytes that a new id or secret is made from.
pub const RANDOM_BYTES: usize = 32;
/// Length of the HMAC in bytes.
const SIGNATURE_BYTES: usize = 32;
const ID_PREFIX: &str = "lnk_";
const SECRET_PREFIX: &str = "lks_";

/// The id of a link, which is public. Its length, alphabet and checksum are valid.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct LinkId(String);
text!(LinkId);

impl LinkId {
    /// Makes an id from the bytes of a random generator.
    #[must_use]
    pub fn from_random(random: [u8; RANDOM_BYTES]) -> Self {
        Self(with_checksum(ID_PREFIX, &random))
    }

    /// Reads an id; `None` if its length, prefix, alphabet or checksum is wrong.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        has_checksum(text, ID_PREFIX, RANDOM_BYTES).then(|| Self(text.to_owned()))
    }
}

secret!(
    /// The secret with which the addresses of a link are signed.
    LinkSecret
);

impl LinkSecret {
    /// Makes a secret from the bytes of a cryptographic random generator.
    #[must_use]
    pub fn from_random(random: [u8; RANDOM_BYTES]) -> Self {
        Self(with_checksum(SECRET_PREFIX, &random))
    }

    /// Reads a secret; `None` if its length, prefix, alphabet or checksum is wrong.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        has_checksum(text, SECRET_PREFIX, RANDOM_BYTES).then(|| Self(text.to_owned()))
    }

    fn mac(&self, file: &LinkFile) -> Hmac<Sha256> {
        let mac = Hmac::new_from_slice(self.0.as_bytes()).expect("HMAC takes a key of any length");
        mac.chain_update(format!("{}/{}", file.link, file.spelling()))
    }
}

/// The formats of a link: one or more, each once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkFormats(Vec<OutputFormat>);

/// A text that names no formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be one or more of png, jpg, webp and pdf, each once, with commas between them")]
pub struct InvalidFormats;

impl LinkFormats {
    /// Whether it has files in this format.
    #[must_use]
    pub fn contain(&self, format: OutputFormat) -> bool {
        self.0.contains(&format)
    }

    /// The extensions.
    pub fn extensions(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|format| format.extension())
    }
}

/// Names as in `format` of a request, with commas between them.
impl FromStr for LinkFormats {
    type Err = InvalidFormats;

    fn from_str(text: &str) -> Result<Self, InvalidFormats> {
        let mut formats = Vec::new();
        for name in text.split(',') {
            let format = name.trim().parse().map_err(|_| InvalidFormats)?;
            if formats.contains(&format) {
                return Err(InvalidFormats);
            }
            formats.push(format);
        }
        Ok(Self(formats))
    }
}

/// Extensions with commas between them.
impl std::fmt::Display for LinkFormats {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.extensions().collect::<Vec<_>>().join(","))
    }
}

impl Serialize for LinkFormats {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.extensions())
    }
}

/// A file of a link: what its address says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkFile {
    /// The link.
    pub link: LinkId,
    /// 1 to 80 of `a-z`, `0-9` and `-`.
    stem: String,
    /// The format, which its extension names.
    pub format: OutputFormat,
    /// Values by name, which is in NFC.
    pub values: BTreeMap<String, String>,
}

/// Why there is no such file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidFile {
    /// The name or its extension.
    #[error(
        "the name of the file must be 1 to {} of a-z, 0-9 and -, then .png, .jpg, .webp or .pdf",
        limits::MAX_FILE_STEM_CHARS
    )]
    Name,
    /// A name, in NFC, has two values.
    #[error("a name has two values")]
    Repeated,
    /// There are too many values.
    #[error("a link has at most {} values", limits::MAX_VARIABLES)]
    TooMany,
    /// The address is too long.
    #[error("the address must have at most {} bytes, without scheme and host", limits::MAX_LINK_BYTES)]
    TooLong,
}

impl LinkFile {
    /// The file with this name, with its extension, and these values by name.
    ///
    /// # Errors
    /// [`InvalidFile`]
    pub fn new(
        link: LinkId,
        name: &str,
        values: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, InvalidFile> {
        let (stem, format) = stem_and_format(name).ok_or(InvalidFile::Name)?;
        let file = Self { link, stem: stem.to_owned(), format, values: by_name(values)? };
        // With a signature of any value, because all have the same length.
        let address = LinkAddress { file, signature: [0; SIGNATURE_BYTES], is_spelled_so: true };
        if address.spelling().len() > limits::MAX_LINK_BYTES {
            return Err(InvalidFile::TooLong);
        }
        Ok(address.file)
    }

    /// The name with its extension.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}.{}", self.stem, self.format.extension())
    }

    /// The address, signed with a secret.
    #[must_use]
    pub fn signed(self, secret: &LinkSecret) -> LinkAddress {
        let signature = secret.mac(&self).finalize().into_bytes().into();
        LinkAddress { file: self, signature, is_spelled_so: true }
    }

    /// The name and the query, as they are signed.
    fn spelling(&self) -> String {
        let mut text = self.name();
        for (separator, (name, value)) in std::iter::once('?').chain(std::iter::repeat('&')).zip(&self.values)
        {
            text.push(separator);
            push_encoded(&mut text, name);
            text.push('=');
            push_encoded(&mut text, value);
        }
        text
    }
}

/// An address with a signature that has the right length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkAddress {
    /// What it is for.
    pub file: LinkFile,
    signature: [u8; SIGNATURE_BYTES],
    /// Whether it was read from its one spelling.
    pub is_spelled_so: bool,
}

/// Why a text is no address of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidAddress {
    /// Its path has another form, or the id a wrong checksum.
    #[error("there is no such path")]
    Path,
    /// No signature can have this form.
    #[error("the signature is wrong")]
    Signature,
    /// It is too long, or its query has a name twice, is not UTF-8, or has a `%` without two digits.
    #[error("the address is not valid")]
    Query,
}

impl LinkAddress {
    /// Reads a request target: a path with its query.
    ///
    /// # Errors
    /// [`InvalidAddress`]
    pub fn parse(target: &str) -> Result<Self, InvalidAddress> {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let parts = path.strip_prefix(PATH).ok_or(InvalidAddress::Path)?.split('/');
        let parts: Option<Vec<String>> = parts.map(decoded).collect();
        let Some([link, signature, name]) = parts.as_deref() else {
            return Err(InvalidAddress::Path);
        };
        let link = LinkId::parse(link).ok_or(InvalidAddress::Path)?;
        let (stem, format) = stem_and_format(name).ok_or(InvalidAddress::Path)?;
        if target.len() > limits::MAX_LINK_BYTES {
            return Err(InvalidAddress::Query);
        }
        // Each signature has one spelling: others have other bytes, or are refused.
        let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| InvalidAddress::Signature)?;
        let signature = signature.try_into().map_err(|_| InvalidAddress::Signature)?;
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        let pairs = pairs.map(read_pair).collect::<Option<Vec<_>>>().ok_or(InvalidAddress::Query)?;
        let values = by_name(pairs).map_err(|_| InvalidAddress::Query)?;
        let file = LinkFile { link, stem: stem.to_owned(), format, values };
        let mut address = Self { file, signature, is_spelled_so: true };
        let spelling = address.spelling();
        if spelling.len() > limits::MAX_LINK_BYTES {
            return Err(InvalidAddress::Query);
        }
        address.is_spelled_so = spelling == target;
        Ok(address)
    }

    /// Whether it was signed with this secret, in a time that does not depend on the signature.
    #[must_use]
    pub fn is_signed_with(&self, secret: &LinkSecret) -> bool {
        secret.mac(&self.file).verify_slice(&self.signature).is_ok()
    }

    /// The one spelling of the path with its query.
    #[must_use]
    pub fn spelling(&self) -> String {
        let signature = URL_SAFE_NO_PAD.encode(self.signature);
        format!("{PATH}{}/{signature}/{}", self.file.link, self.file.spelling())
    }
}

fn stem_and_format(name: &str) -> Option<(&str, OutputFormat)> {
    let (stem, extension) = name.rsplit_once('.')?;
    let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let format: OutputFormat = extension.parse().ok()?;
    let is_stem = (1..=limits::MAX_FILE_STEM_CHARS).contains(&stem.len()) && stem.bytes().all(is_allowed);
    (is_stem && format.extension() == extension).then_some((stem, format))
}

/// Placeholders are compared in NFC.
fn by_name(
    values: impl IntoIterator<Item = (String, String)>,
) -> Result<BTreeMap<String, String>, InvalidFile> {
    let mut by_name = BTreeMap::new();
    for (name, value) in values {
        if by_name.insert(name.nfc().collect(), value).is_some() {
            return Err(InvalidFile::Repeated);
        }
    }
    if by_name.len() > limits::MAX_VARIABLES { Err(InvalidFile::TooMany) } else { Ok(by_name) }
}

/// Reads a name and its value as forms encode them: `+` is a space.
fn read_pair(pair: &str) -> Option<(String, String)> {
    let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
    Some((decoded(name)?, decoded(value)?))
}

fn decoded(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    parts.next();
    let is_escape = |part: &str| part.bytes().take(2).filter(u8::is_ascii_hexdigit).count() == 2;
    if !parts.all(is_escape) {
        return None;
    }
    let text = text.replace('+', " ");
    percent_decode_str(&text).decode_utf8().ok().map(std::borrow::Cow::into_owned)
}

/// Appends a text in which everything but RFC 3986's unreserved characters is percent-encoded in upper case.
fn push_encoded(target: &mut String, text: &str) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            target.push(char::from(byte));
        } else {
            _ = write!(target, "%{byte:02X}");
        }
    }
}

#[cfg(test)]
mod tests;
