//! What Chromium keeps for the next documents of a page.

use chromiumoxide_cdp::cdp::browser_protocol::page::ScriptIdentifier;
use platen_shared::{
    job::{ColorScheme, Environment, MediaType, Output, StyleText},
    locale::Locale,
    time_zone::TimeZone,
};

/// The overrides of a page.
#[derive(Debug, Default)]
pub(crate) struct Overrides {
    pub(crate) media: EmulatedMedia,
    pub(crate) language: Language,
    pub(crate) has_scripts_disabled: bool,
    pub(crate) is_transparent: bool,
    pub(crate) style: Option<(StyleText, ScriptIdentifier)>,
}

/// The emulated media type, if it differs from that of the format, and media features.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct EmulatedMedia {
    pub(crate) media_type: Option<MediaType>,
    pub(crate) color_scheme: ColorScheme,
    pub(crate) reduced_motion: bool,
}

/// The time zone and the language. A page is not used with two of them: Chromium keeps some formats and fonts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Language {
    pub(crate) time_zone: Option<TimeZone>,
    pub(crate) locale: Option<Locale>,
}

impl Language {
    pub(crate) fn of(environment: &Environment) -> Self {
        Self { time_zone: environment.time_zone.clone(), locale: environment.locale.clone() }
    }
}

impl EmulatedMedia {
    pub(crate) fn of(environment: &Environment, output: &Output) -> Self {
        let usual = match output {
            Output::Image(_) => MediaType::Screen,
            Output::Pdf(_) => MediaType::Print,
        };
        Self {
            media_type: environment.media.filter(|media| *media != usual),
            color_scheme: environment.color_scheme,
            reduced_motion: environment.reduced_motion,
        }
    }
}
