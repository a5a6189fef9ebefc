//! What the operator sets, read from Spin variables once an instance.
//!
//! Invariant: the token has no `Debug`; a setting that is wrong is named, its value is not shown.

use std::{sync::OnceLock, time::Duration};

use platen_component::settings::{self, Unreadable, variable};
use platen_shared::{limits, wire};

/// The edge's settings.
pub(super) struct Settings {
    pub(super) farm: FarmAddress,
    pub(super) farm_token: String,
    pub(super) deadline: Duration,
}

/// Where jobs are sent.
pub(super) struct FarmAddress {
    pub(super) https: bool,
    pub(super) authority: String,
    pub(super) path: String,
}

/// A setting that cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum SettingsError {
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    #[error("the Spin variable farm_url must be http://HOST[:PORT] or https://HOST[:PORT]")]
    FarmUrl,
    #[error("the Spin variable farm_token must not be empty")]
    FarmToken,
    #[error(
        "the Spin variable deadline_ms must be a whole number of milliseconds from 1 to {}",
        limits::RENDER_TIMEOUT_MS
    )]
    Deadline,
}

impl Settings {
    /// The settings of this instance.
    pub(super) async fn get() -> Result<&'static Self, SettingsError> {
        static SETTINGS: OnceLock<Settings> = OnceLock::new();
        settings::once(&SETTINGS, Self::read()).await
    }

    async fn read() -> Result<Self, SettingsError> {
        let farm = FarmAddress::parse(&variable("farm_url").await?).ok_or(SettingsError::FarmUrl)?;
        let farm_token = variable("farm_token").await?;
        if farm_token.is_empty() {
            return Err(SettingsError::FarmToken);
        }
        let deadline = variable("deadline_ms").await?.parse().ok();
        let deadline = deadline
            .filter(|ms| (1..=limits::RENDER_TIMEOUT_MS).contains(ms))
            .ok_or(SettingsError::Deadline)?;
        Ok(Self { farm, farm_token, deadline: Duration::from_millis(deadline) })
    }
}

impl FarmAddress {
    fn parse(url: &str) -> Option<Self> {
        let url: http::Uri = url.parse().ok()?;
        let https = match url.scheme_str()? {
            "http" => false,
            "https" => true,
            _ => return None,
        };
        let authority = url.authority()?.as_str();
        (!authority.contains('@')).then(|| Self {
            https,
            authority: authority.to_owned(),
            path: format!("{}{}", url.path().trim_end_matches('/'), wire::JOBS_PATH),
        })
    }
}
