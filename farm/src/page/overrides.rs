//! What Chromium keeps for the next documents of a page.

use chromiumoxide_cdp::cdp::browser_protocol::{
    emulation::SetUserAgentOverrideParams, page::ScriptIdentifier,
};
use platen_shared::{
    job::{ColorScheme, MediaType, Output, RenderOptions, StyleText, UserAgent},
    locale::{Locale, TimeZone},
};

use crate::browser::user_agent;

/// The overrides of a page.
#[derive(Debug)]
pub(crate) struct Overrides {
    pub(crate) media: EmulatedMedia,
    pub(crate) reader: Reader,
    /// The command that has set its user agent, for its workers.
    pub(crate) user_agent: SetUserAgentOverrideParams,
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

/// Who reads a page, and with what. A page is not used with two of them: Chromium keeps some formats, fonts and
/// properties of the screen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Reader {
    pub(crate) time_zone: Option<TimeZone>,
    pub(crate) locale: Option<Locale>,
    pub(crate) user_agent: Option<UserAgent>,
    pub(crate) mobile: bool,
}

impl Reader {
    pub(crate) fn of(options: &RenderOptions) -> Self {
        let environment = &options.environment;
        Self {
            time_zone: environment.time_zone.clone(),
            locale: environment.locale.clone(),
            user_agent: environment.user_agent.clone(),
            mobile: options.viewport.mobile,
        }
    }

    /// The command that sets the user agent and the language in a browser of this version.
    pub(crate) fn user_agent_command(&self, browser_version: &str) -> SetUserAgentOverrideParams {
        user_agent::command(self.user_agent.as_ref(), self.mobile, self.locale.as_ref(), browser_version)
    }
}

impl Overrides {
    /// Those of a new page.
    pub(super) fn new(browser_version: &str) -> Self {
        Self {
            media: EmulatedMedia::default(),
            reader: Reader::default(),
            user_agent: Reader::default().user_agent_command(browser_version),
            has_scripts_disabled: false,
            is_transparent: false,
            style: None,
        }
    }
}

impl EmulatedMedia {
    pub(crate) fn of(options: &RenderOptions) -> Self {
        let environment = &options.environment;
        let usual = match options.output {
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
