//! Identifiers of stored records: a prefix that names the kind, then 20 base62 characters.
//!
//! Reading an id accepts any text, because an id that does not exist is answered like an id of another
//! account.

use serde::{Deserialize, Serialize};

use crate::token::base62;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Makes a new id of 20 base62 characters (about 119 bits) from 20 random bytes.
            #[must_use]
            pub fn from_random(random: [u8; 20]) -> Self {
                Self(format!(concat!($prefix, "_{}"), base62(&random)))
            }

            /// Takes any text as an id, without a check.
            #[must_use]
            pub fn from_text(text: impl Into<String>) -> Self {
                Self(text.into())
            }
        }

        text!($name);
    };
}

id!(
    /// An account: it owns keys, templates and a quota.
    AccountId,
    "acc"
);
id!(
    /// The record of an API key; not the secret.
    KeyId,
    "key"
);
id!(
    /// A saved template.
    TemplateId,
    "tpl"
);
id!(
    /// A user, who can sign in to the dashboard.
    UserId,
    "usr"
);
id!(
    /// An invite; not the secret in its link.
    InviteId,
    "inv"
);
id!(
    /// A session of a user; not the secret in the cookie.
    SessionId,
    "ses"
);
