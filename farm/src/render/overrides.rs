//! What a page is told about its reader, and the style sheet of its job.
//!
//! Invariant: Chromium keeps these for the next documents of a page, so every job sets those that differ from the job
//! before it.

use chromiumoxide_cdp::cdp::browser_protocol::{
    dom::Rgba,
    emulation::{
        MediaFeature, SetDefaultBackgroundColorOverrideParams, SetEmulatedMediaParams,
        SetLocaleOverrideParams, SetScriptExecutionDisabledParams, SetTimezoneOverrideParams,
        SetUserAgentOverrideParams,
    },
    page::RemoveScriptToEvaluateOnNewDocumentParams,
};
use platen_shared::job::{ColorScheme, MediaType, Output, RenderOptions};

use super::{job_error::JobError, style};
use crate::page::{EmulatedMedia, Language, Page};

/// Sets the overrides of a job. The document of the job must be loaded afterwards.
pub(super) async fn set(page: &mut Page, options: &RenderOptions) -> Result<(), JobError> {
    let Page { session, overrides, .. } = page;
    let environment = &options.environment;
    let media = EmulatedMedia::of(environment, &options.output);
    if overrides.media != media {
        session.call(&media_command(&media)).await?;
        overrides.media = media;
    }
    let language = Language::of(environment);
    if overrides.language != language {
        if let Some(zone) = &language.time_zone {
            session.call(&SetTimezoneOverrideParams::new(zone.as_str())).await?;
        }
        if let Some(locale) = &language.locale {
            let tag = Some(locale.as_str().to_owned());
            session.call(&SetLocaleOverrideParams { locale: tag.clone() }).await?;
            // An empty name is not an override.
            let agent =
                SetUserAgentOverrideParams { accept_language: tag, ..SetUserAgentOverrideParams::new("") };
            session.call(&agent).await?;
        }
        overrides.language = language;
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
