//! Encryption of a PDF with passwords: AES-256, revision 6 of the standard security handler (ISO 32000-2).

use std::{collections::BTreeMap, sync::Arc};

use lopdf::{
    Document, EncryptionState, EncryptionVersion, Object, Permissions,
    encryption::crypt_filters::{Aes256CryptFilter, CryptFilter},
};
use platen_shared::{
    job::{Permission, Protection},
    limits,
    refusal::Refusal,
};

use crate::error::JobError;

/// The name of the crypt filter.
const FILTER: &[u8] = b"StdCF";

/// Encrypts a document that is complete, and not encrypted.
///
/// # Errors
/// [`Refusal::InvalidPassword`] if a reader could not take a password.
pub(super) fn protect(document: &mut Document, protection: &Protection) -> Result<(), JobError> {
    let user_password = prepared(protection.user_password.as_str())?;
    let owner_password = match protection.owner_password.as_str() {
        // A random one that is not kept: an empty one would open the file with all rights.
        "" => format!("{:032x}", rand::random::<u128>()),
        password => prepared(password)?,
    };
    let filter: Arc<dyn CryptFilter> = Arc::new(Aes256CryptFilter);
    let encryption = EncryptionState::try_from(EncryptionVersion::V5 {
        encrypt_metadata: true,
        crypt_filters: BTreeMap::from([(FILTER.to_vec(), filter)]),
        file_encryption_key: &rand::random::<[u8; 32]>(),
        stream_filter: FILTER.to_vec(),
        string_filter: FILTER.to_vec(),
        owner_password: &owner_password,
        user_password: &user_password,
        permissions: permissions(&protection.allow),
    })?;
    // An encrypted file must have an id, and this encryption is part of PDF 2.0.
    let id = Object::string_literal(rand::random::<[u8; 16]>());
    document.trailer.set("ID", vec![id.clone(), id]);
    "2.0".clone_into(&mut document.version);
    document.encrypt(&encryption)?;
    Ok(())
}

/// A password in the form of which readers make the key (`SASLprep`).
fn prepared(password: &str) -> Result<String, JobError> {
    let prepared = stringprep::saslprep(password).ok();
    let prepared = prepared.filter(|it| it.len() <= limits::MAX_PDF_PASSWORD_BYTES);
    Ok(prepared.ok_or(JobError::Refused(Refusal::InvalidPassword))?.into_owned())
}

fn permissions(allow: &[Permission]) -> Permissions {
    let bits = |permission: &Permission| match permission {
        Permission::Print => Permissions::PRINTABLE | Permissions::PRINTABLE_IN_HIGH_QUALITY,
        Permission::Copy => Permissions::COPYABLE,
        Permission::Modify => Permissions::MODIFIABLE,
        Permission::Annotate => Permissions::ANNOTABLE,
        Permission::Fill => Permissions::FILLABLE,
        Permission::Assemble => Permissions::ASSEMBLABLE,
    };
    // Programs for people who cannot see may always read the text.
    allow.iter().map(bits).fold(Permissions::COPYABLE_FOR_ACCESSIBILITY, |all, these| all | these)
}
