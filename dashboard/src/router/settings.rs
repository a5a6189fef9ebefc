//! Settings from Spin variables, read once per instance.

use std::sync::OnceLock;

use platen_spin::{
    farm::{Farm, InvalidFarm},
    platform::{self, Unreadable, variable},
};
use platen_statements::sessions::Lifetimes;

pub(super) struct Settings {
    /// It fills templates for previews.
    pub(super) farm: Farm,
    pub(super) lifetimes: Lifetimes,
    /// The header in which a trusted reverse proxy passes the client's address.
    pub(super) client_address_header: Option<String>,
    /// The address of the documents; empty if the server has none.
    pub(super) docs_url: String,
}

/// Why a setting cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum SettingsError {
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    #[error(transparent)]
    Farm(#[from] InvalidFarm),
    #[error("the Spin variable {0} must be a whole number of seconds, 1 or more")]
    Seconds(&'static str),
}

impl Settings {
    pub(super) async fn get() -> Result<&'static Self, SettingsError> {
        static SETTINGS: OnceLock<Settings> = OnceLock::new();
        platform::once(&SETTINGS, Self::read()).await
    }

    async fn read() -> Result<Self, SettingsError> {
        let seconds = async |name| {
            let seconds = variable(name).await?.parse::<u32>().ok().filter(|seconds| *seconds > 0);
            seconds.map(i64::from).ok_or(SettingsError::Seconds(name))
        };
        let lifetimes = Lifetimes {
            idle: seconds("session_idle_seconds").await?,
            whole: seconds("session_seconds").await?,
        };
        let header = variable("client_address_header").await?;
        let docs_url = variable("docs_url").await?;
        let farm = Farm::read().await?;
        Ok(Self { farm, lifetimes, docs_url, client_address_header: (!header.is_empty()).then_some(header) })
    }
}
