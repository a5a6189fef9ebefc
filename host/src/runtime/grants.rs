//! What one component may use.

use std::collections::BTreeMap;

use secrecy::SecretString;

use crate::{db::Database, outbound::AllowedHosts};

pub(super) struct Grants {
    /// The component's id in the manifest.
    pub(super) id: String,
    pub(super) variables: BTreeMap<String, SecretString>,
    pub(super) allowed_hosts: AllowedHosts,
    pub(super) database: Option<Database>,
}
