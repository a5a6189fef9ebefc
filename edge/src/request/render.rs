//! The last steps of a request whose attempt was claimed: `forward → relay`.

use std::time::Instant;

use platen_shared::{
    file_name,
    job::RenderJob,
    request::{RenderRequest, SavedTemplate},
};
use platen_spin::{database::Database, platform};
use platen_statements::{
    attempts::{Claim, ClaimedTemplate},
    template_files,
};

use super::{
    attempt_end::{end_attempt, refund},
    claim::{no_answer, too_late},
    context::RequestContext,
    failure::Failure,
    farm::{self, FarmFile, Settings},
    reply::File,
};
use crate::api_error::ApiError;

/// Renders a request whose attempt was claimed.
pub(super) async fn render(
    settings: &Settings,
    request: RenderRequest,
    claim: &Claim,
    context: &mut RequestContext,
) -> Result<File, Failure> {
    // forward
    let file = match forward(settings, request, claim, context).await {
        Ok(file) => file,
        Err(failure) => {
            if failure.error.is_counted() {
                end_attempt(claim, context).await;
            } else {
                refund(claim, &failure, context).await;
            }
            return Err(failure);
        }
    };
    end_attempt(claim, context).await;

    // relay
    if let Some(attempt) = &mut context.attempt {
        attempt.bytes = file.body.length();
    }
    Ok(file)
}

async fn forward(
    settings: &Settings,
    request: RenderRequest,
    claim: &Claim,
    context: &mut RequestContext,
) -> Result<File, Failure> {
    // Decompressed after the claim, where a damaged template fails as an attempt that is refunded.
    let markup = claim.template.as_ref().map(ClaimedTemplate::html).transpose().map_err(Failure::internal)?;
    let template = claim.template.as_ref().zip(markup.as_deref());
    let (file_name, template_name) =
        (request.file_name.clone(), template.map(|(saved, _)| saved.name.as_str()));
    let template = template.map(|(saved, html)| SavedTemplate {
        html,
        language: saved.language,
        options: &saved.options,
    });
    let mut job = request.into_job(claim.account.clone(), template).map_err(ApiError::from)?;
    let format = job.options.output.format();
    if let Some(attempt) = &mut context.attempt {
        attempt.format = format.extension();
    }
    if let Some(template) = &claim.template {
        job.add_template_files(template.files.assets());
    }
    if context.deadline.is_too_close(Instant::now()) {
        return Err(too_late());
    }
    let mut file = farm::render(settings, &job, context.deadline.at(), context).await?;
    if file.is_none() {
        add_contents(&mut job, context).await?;
        file = farm::render(settings, &job, context.deadline.at(), context).await?;
    }
    let FarmFile { body, page, .. } = file.ok_or_else(|| Failure::internal(ContentsRefused))?;
    let disposition = file_name::content_disposition(&[file_name.as_deref(), template_name], format);
    if let Some(attempt) = &mut context.attempt {
        (attempt.page_errors, attempt.failed_requests) = (Some(page.errors), Some(page.failed_requests));
        attempt.page_host = page.host();
    }
    Ok(File { format, disposition, body, page })
}

/// The farm asked for contents that it was sent.
#[derive(Debug, thiserror::Error)]
#[error("the farm asked again for the files of the template")]
struct ContentsRefused;

/// Adds the contents of the files of the template. One that is gone or damaged is an internal error.
async fn add_contents(job: &mut RenderJob, context: &RequestContext) -> Result<(), Failure> {
    let hashes: Vec<_> = job.template_files().map(|(hash, _)| hash.clone()).collect();
    let contents = template_files::contents(&Database, &job.account, &hashes);
    let contents = platform::timeout(context.deadline.time_left(Instant::now()), contents).await;
    let contents = contents.ok_or_else(no_answer)?.map_err(|error| Failure::database(&error))?;
    job.set_contents(&contents).map_err(Failure::internal)
}
