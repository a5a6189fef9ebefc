//! The colours of a page.

use chromiumoxide_cdp::cdp::browser_protocol::emulation::MediaFeature;

/// The colours that the user's system asks for, by media features.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Theme {
    /// `prefers-color-scheme: light`.
    Light,
    /// `prefers-color-scheme: dark`.
    Dark,
    /// `forced-colors: active`, with dark system colours.
    Forced,
}

impl Theme {
    /// A word for names of files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Light => "light",
            Self::Dark => "dark",
            Self::Forced => "forced",
        }
    }

    pub(super) fn media_features(self) -> Vec<MediaFeature> {
        let (scheme, forced) = match self {
            Self::Light => ("light", "none"),
            Self::Dark => ("dark", "none"),
            Self::Forced => ("dark", "active"),
        };
        vec![MediaFeature::new("prefers-color-scheme", scheme), MediaFeature::new("forced-colors", forced)]
    }
}
