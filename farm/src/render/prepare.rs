//! Preparing a page for a job: the properties of its reader, its viewport, the style sheet of the job, and an empty
//! document.
//!
//! Invariant: Chromium keeps these settings for the next documents of a page, so every job sets those that differ from the
//! job before it. The viewport is set before the page is loaded, so its first script reads the right size.

use chromiumoxide_cdp::cdp::browser_protocol::{
    dom::Rgba,
    emulation::{
        MediaFeature, ScreenOrientation, ScreenOrientationType, SetDefaultBackgroundColorOverrideParams,
        SetDeviceMetricsOverrideParams, SetEmulatedMediaParams, SetLocaleOverrideParams,
        SetScriptExecutionDisabledParams, SetTimezoneOverrideParams, SetTouchEmulationEnabledParams,
    },
    page::RemoveScriptToEvaluateOnNewDocumentParams,
};
use platen_shared::job::{ColorScheme, MediaType, Output, RenderJob, RenderOptions, StyleText, Viewport};
use serde_json::Value;
use tokio::time::timeout;

use super::{
    elements,
    header_templates::{self, HeaderTemplates},
    main_thread, page_lease,
    rendering::Rendering,
    script,
};
use crate::{
    browser::HANG_TIMEOUT,
    error::JobError,
    page::{Page, Reader},
};

/// Sets the viewport and, for markup without an address, navigates to a new empty document; an address has its own document. Returns the CPU time of
/// the page's scripts before the job, in seconds, and the job's header and footer. An empty page answers immediately unless its
/// browser hangs.
pub(super) async fn prepare(
    page: &mut Page,
    job: &RenderJob,
    browser_version: &str,
) -> Result<(f64, Option<HeaderTemplates>), JobError> {
    let prepared = async {
        set_overrides(page, &job.options, browser_version).await?;
        let set = page.session.start(&device_metrics(&job.options.viewport))?;
        let has_assets = page.proxy.is_used();
        if has_assets || !job.has_address() {
            page_lease::navigate_to_empty(page).await?;
        }
        if has_assets {
            page_lease::forget_assets(&page.session).await?;
        }
        elements::check_selectors(page, &job.options).await?;
        let templates = header_templates::convert(&page.session, &job.options).await?;
        let before = main_thread::metrics(&page.session).await?.script;
        set.await?;
        Ok((before, templates))
    };
    timeout(HANG_TIMEOUT, prepared).await.map_err(|_| JobError::Unresponsive)?
}

/// The viewport, and a screen of the same size. Without a screen of its own, a page has that of the browser
/// process, which other pages can turn (`screen.orientation.lock`).
fn device_metrics(viewport: &Viewport) -> SetDeviceMetricsOverrideParams {
    let (width, height) = (i64::from(viewport.width.get()), i64::from(viewport.height.get()));
    let orientation = if width >= height {
        ScreenOrientationType::LandscapePrimary
    } else {
        ScreenOrientationType::PortraitPrimary
    };
    SetDeviceMetricsOverrideParams {
        screen_width: Some(width),
        screen_height: Some(height),
        screen_orientation: Some(ScreenOrientation::new(orientation, 0)),
        ..SetDeviceMetricsOverrideParams::new(
            width,
            height,
            viewport.device_scale_factor.get(),
            viewport.mobile,
        )
    }
}

/// Points at which a mobile device can be touched at once.
const TOUCH_POINTS: i64 = 5;

/// Sets the overrides of a job. The document of the job must be loaded afterwards.
async fn set_overrides(
    page: &mut Page,
    options: &RenderOptions,
    browser_version: &str,
) -> Result<(), JobError> {
    let Page { session, overrides, .. } = page;
    let environment = &options.environment;
    let media = media_command(options);
    if overrides.media != media {
        session.call(&media).await?;
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
            let added = session.call(&script::of_next_documents(&adopt_style(css))).await?;
            overrides.style = Some((css.clone(), added.identifier));
        }
    }
    Ok(())
}

/// The media type, if it differs from that of the format, and the media features.
pub(super) fn media_command(options: &RenderOptions) -> SetEmulatedMediaParams {
    let environment = &options.environment;
    let media_type = match (environment.media, &options.output) {
        (Some(MediaType::Screen), Output::Pdf(_)) => "screen",
        (Some(MediaType::Print), Output::Image(_)) => "print",
        _ => "",
    };
    let dark = MediaFeature::new("prefers-color-scheme", "dark");
    let reduced = MediaFeature::new("prefers-reduced-motion", "reduce");
    let mut features = Vec::new();
    features.extend((environment.color_scheme == ColorScheme::Dark).then_some(dark));
    features.extend(environment.reduced_motion.then_some(reduced));
    SetEmulatedMediaParams { media: Some(media_type.to_owned()), features: Some(features) }
}

const ADOPT_STYLE: &str = concat!("(", include_str!("adopt_style.js"), ")");

/// Puts the style sheet of a job after those that scripts of the page have adopted; `true` if that has changed the page.
pub(super) async fn put_style_last(rendering: &mut Rendering<'_>, css: &StyleText) -> Result<bool, JobError> {
    Ok(rendering.evaluate_isolated(&adopt_style(css)).await? == Some(Value::Bool(true)))
}

fn adopt_style(css: &StyleText) -> String {
    format!("{ADOPT_STYLE}({})", Value::from(css.as_str()))
}
