//! The settings of the operator, read from Spin variables once per instance.
//!
//! Invariant: no type here implements `Debug` for the token. Errors name a variable, and a value only where it is an
//! address.

use std::{sync::OnceLock, time::Duration};

use platen_shared::{
    farm_address::{FarmAddress, InvalidFarmAddress},
    limits,
};
use platen_spin::settings::{self, Unreadable, variable};

pub(super) struct Settings {
    pub(super) farm: FarmAddress,
    pub(super) farm_token: String,
    pub(super) render_timeout: Duration,
}

/// An invalid setting.
#[derive(Debug, thiserror::Error)]
pub(super) enum SettingsError {
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    #[error("the Spin variable farm_url is invalid: {0}")]
    FarmUrl(#[from] InvalidFarmAddress),
    #[error("the Spin variable farm_token must not be empty")]
    FarmToken,
    #[error(
        "the Spin variable deadline_ms must be a whole number of milliseconds from 1 to {}",
        limits::RENDER_TIMEOUT_MS
    )]
    Deadline,
}

impl Settings {
    pub(super) async fn get() -> Result<&'static Self, SettingsError> {
        static SETTINGS: OnceLock<Settings> = OnceLock::new();
        settings::once(&SETTINGS, Self::read()).await
    }

    async fn read() -> Result<Self, SettingsError> {
        let farm = variable("farm_url").await?.parse()?;
        let farm_token = variable("farm_token").await?;
        if farm_token.is_empty() {
            return Err(SettingsError::FarmToken);
        }
        let milliseconds = variable("deadline_ms").await?.parse().ok();
        let milliseconds = milliseconds
            .filter(|ms| (1..=limits::RENDER_TIMEOUT_MS).contains(ms))
            .ok_or(SettingsError::Deadline)?;
        Ok(Self { farm, farm_token, render_timeout: Duration::from_millis(milliseconds) })
    }
}
