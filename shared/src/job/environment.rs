//! What a page can read about its reader: media, preferences, time zone and language.

use serde::{Deserialize, Serialize};
use strum::{EnumString, VariantNames};

use super::UserAgent;
use crate::locale::{Locale, TimeZone};

/// What a page can read about its reader.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Environment {
    /// The media type; without it, that of the file's format.
    pub media: Option<MediaType>,
    /// `prefers-color-scheme`.
    pub color_scheme: ColorScheme,
    /// `prefers-reduced-motion`.
    pub reduced_motion: bool,
    /// The time zone; without it UTC.
    pub time_zone: Option<TimeZone>,
    /// The language; without it `en-US`.
    pub locale: Option<Locale>,
    /// Whether scripts of the page run.
    pub java_script: bool,
    /// The user agent; without it that of Chrome of the browser's version.
    pub user_agent: Option<UserAgent>,
}

/// Something that a page may do, and for which its job fails on request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, EnumString, VariantNames)]
#[serde(rename_all = "camelCase")]
#[strum(serialize_all = "camelCase")]
pub enum PageProblem {
    /// An exception or a rejected promise that nothing handles.
    PageErrors,
    /// A request without a response, or with a status of 400 or more.
    FailedRequests,
}

impl Default for Environment {
    fn default() -> Self {
        Self {
            media: None,
            color_scheme: ColorScheme::default(),
            reduced_motion: false,
            time_zone: None,
            locale: None,
            java_script: true,
            user_agent: None,
        }
    }
}

/// What happens to the page's animations and transitions before the capture.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, EnumString, VariantNames)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Animations {
    /// Those that run by time and end are at their end.
    #[default]
    Finish,
    /// All are as they are.
    Allow,
}

/// A CSS media type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, EnumString, VariantNames)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum MediaType {
    /// The default of images.
    Screen,
    /// The default of PDFs.
    Print,
}

/// A preferred colour scheme.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, EnumString, VariantNames)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
#[expect(missing_docs, reason = "the names describe the variants")]
pub enum ColorScheme {
    #[default]
    Light,
    Dark,
}
