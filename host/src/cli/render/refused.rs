//! Why a page is not rendered, and which options are missing to reach it.

use anyhow::Error;
use platen_farm::Farm;
use platen_shared::{
    job::{RenderJob, Source},
    refusal::Refusal,
};
use url::Url;

use super::{FAILED, NOT_RENDERED};
use crate::cli::Failure;

/// The URL that a job loads.
pub(super) fn url_of(job: &RenderJob) -> Option<Url> {
    match &job.source {
        Source::Url(url) => Some(url.as_url().clone()),
        Source::Html(_) | Source::Jinja(_) => None,
    }
}

/// The failure of a page that the farm has refused. Unlike the caller of the API, who runs this command can allow addresses.
pub(super) async fn failure(refusal: Refusal, farm: &Farm, url: Option<Url>) -> Failure {
    let status = if matches!(refusal, Refusal::FailOn { .. }) { FAILED } else { NOT_RENDERED };
    let missing = match (&refusal, url) {
        (Refusal::AddressNotPublic { .. } | Refusal::PortNotAllowed { .. }, Some(url)) => {
            farm.missing_options(&url).await
        }
        _ => None,
    };
    let error = match missing {
        Some(options) => Error::msg(format!("{refusal}; it is allowed with {options}")),
        None => refusal.into(),
    };
    Failure { status, error }
}
