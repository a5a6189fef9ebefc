//! Identifiers of stored things: a prefix that says what it is, then 20 base62 characters.
//!
//! Invariant: an id made by [`AccountId::from_random`] and its siblings is unguessable when its
//! random bytes are; reading one accepts any text, because an id that does not exist is answered
//! like one that belongs to somebody else.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::key::base62;

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

            /// Takes an id as somebody wrote it.
            #[must_use]
            pub fn from_text(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            /// The id as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

id!(
    /// One customer: owns keys, templates and a quota.
    AccountId,
    "acc"
);
id!(
    /// One API key's record; not the secret.
    KeyId,
    "key"
);
id!(
    /// One saved template.
    TemplateId,
    "tpl"
);
id!(
    /// One person who may sign in.
    UserId,
    "usr"
);
id!(
    /// One sign-in of a person; not the cookie.
    SessionId,
    "ses"
);
