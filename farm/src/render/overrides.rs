//! What a page is told about its reader, and the style sheet of its job.
//!
//! Invariant: Chromium keeps these for the next documents of a page, so every job sets those that differ from the job
//! before it.

use chromiumoxide_cdp::cdp::browser_protocol::{
    dom::Rgba,
    emulation::{
        MediaFeature, SetDefaultBackgroundColorOverrideParams, SetEmulatedMediaParams,
        SetLocaleOverrideParams, SetScriptExecutionDisabledParams, SetTimezoneOverrideParams,
        SetTouchEmulationEnabledParams,
    },
    page::RemoveScriptToEvaluateOnNewDocumentParams,
};
use platen_shared::job::{ColorScheme, MediaType, Output, RenderOptions};

use super::{job_error::JobError, style};
use crate::page::{EmulatedMedia, Page, Reader};

/// Points at which a mobile device can be touched at once.
const TOUCH_POINTS: i64 = 5;

/// Sets the overrides of a job. The document of the job must be loaded afterwards.
pub(super) async fn set(
    page: &mut Page,
    options: &RenderOptions,
    browser_version: &str,
) -> Result<(), JobError> {
    let Page { session, overrides, .. } = page;
    let environment = &options.environment;
    let media = EmulatedMedia::of(options);
    if overrides.media != media {
        session.call(&media_command(&media)).await?;
        overrides.media = media;
    }
    let reader = Reader::of(options);
    if overrides.reader != reader {
        if let Some(zone) = &reader.time_zone {
            session.call(&SetTimezoneOverrideParams::new(zone.as_str())).await?;
        }
        if let Some(locale) = &reader.locale {
            session.call(&SetLocaleOverrideParams { locale: Some(locale.as_str().to_owned()) }).await?;
        }
        if reader.mobile {
            let max_touch_points = Some(TOUCH_POINTS);
            session.call(&SetTouchEmulationEnabledParams { enabled: true, max_touch_points }).await?;
        }
        overrides.user_agent = reader.user_agent_command(browser_version);
        session.call(&overrides.user_agent).await?;
        overrides.reader = reader;
    }
    if overrides.has_scripts_disabled == environment.java_script {
        session.call(&SetScriptExecutionDisabledParams::new(!environment.java_script)).await?;
        overrides.has_scripts_disabled = !environment.java_script;
    }
    let is_transparent = matches!(&options.output, Output::Image(image) if image.omit_background);
    if overrides.is_transparent != is_transparent {
        let color = is_transparent.then(|| Rgba { a: Some(0.0), ..Rgba::new(0, 0, 0) });
        session.call(&SetDefaultBackgroundColorOverrideParams { color }).await?;
        overrides.is_transparent = is_transparent;
    }
    if overrides.style.as_ref().map(|(css, _)| css) != options.css.as_ref() {
        if let Some((_, id)) = overrides.style.take() {
            session.call(&RemoveScriptToEvaluateOnNewDocumentParams::new(id)).await?;
        }
        if let Some(css) = &options.css {
            let added = session.call(&style::of_next_documents(css)).await?;
            overrides.style = Some((css.clone(), added.identifier));
        }
    }
    Ok(())
}

fn media_command(media: &EmulatedMedia) -> SetEmulatedMediaParams {
    let media_type = match media.media_type {
        None => "",
        Some(MediaType::Screen) => "screen",
        Some(MediaType::Print) => "print",
    };
    let dark = MediaFeature::new("prefers-color-scheme", "dark");
    let reduced = MediaFeature::new("prefers-reduced-motion", "reduce");
    let features = [(media.color_scheme == ColorScheme::Dark, dark), (media.reduced_motion, reduced)];
    SetEmulatedMediaParams {
        media: Some(media_type.to_owned()),
        features: Some(
            features.into_iter().filter_map(|(is_set, feature)| is_set.then_some(feature)).collect(),
        ),
    }
}
