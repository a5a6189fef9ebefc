//! Contents of the files of templates, kept by their hashes: a job that has the hashes only gets them from here.
//!
//! Invariant: a content is kept under its own hash. Which hashes a job has is decided by the edge, from its template, so no account
//! gets a content that it does not have.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use moka::{policy::EvictionPolicy, sync::Cache};
use platen_shared::job::{Base64, ContentHash, RenderJob};

/// Sum of the contents that are kept, in base64; those go first that were not used for the longest time.
const MAX_BYTES: u64 = 64 * 1024 * 1024;
/// What an entry takes beside its content.
const ENTRY_BYTES: usize = 512;

/// Why a job has not all of its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Incomplete {
    /// One that it does not bring is not kept.
    ContentsNeeded,
    /// It brings one that does not have its hash.
    WrongHash,
}

#[derive(Debug, Clone)]
pub(super) struct KeptFiles(Cache<ContentHash, Arc<Base64>>);

impl KeptFiles {
    pub(super) fn new() -> Self {
        let bytes =
            |_: &ContentHash, content: &Arc<Base64>| content.as_str().len().saturating_add(ENTRY_BYTES);
        let cache = Cache::builder().max_capacity(MAX_BYTES).eviction_policy(EvictionPolicy::lru());
        Self(cache.weigher(move |hash, content| bytes(hash, content).try_into().unwrap_or(u32::MAX)).build())
    }

    /// Adds the contents of the template's files to a job, and keeps those that it brings.
    pub(super) fn complete(&self, job: &mut RenderJob) -> Result<(), Incomplete> {
        for (hash, content) in job.template_files() {
            if let Some(brought) = content {
                let bytes = STANDARD.decode(brought.as_str()).map_err(|_| Incomplete::WrongHash)?;
                if ContentHash::of(&bytes) != *hash {
                    return Err(Incomplete::WrongHash);
                }
                self.0.insert(hash.clone(), Arc::clone(brought));
            } else {
                *content = Some(self.0.get(hash).ok_or(Incomplete::ContentsNeeded)?);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use platen_shared::{
        format::ImageFormat,
        id::AccountId,
        job::{Html, ImageOptions, Output, RenderOptions, Source},
        template_files::TemplateFiles,
    };
    use serde_json::json;

    use super::*;

    const LENGTH: usize = 3 * 1024 * 1024;

    /// A job with a file of [`LENGTH`] bytes, whose content it brings or not.
    fn job(byte: u8, brings: bool) -> RenderJob {
        let content = vec![byte; LENGTH];
        let hash = ContentHash::of(&content);
        let files = json!({ "a": { "hash": hash, "size": LENGTH } });
        let files: TemplateFiles = serde_json::from_value(files).unwrap();
        let source = Source::Html(Html::try_from("x".to_owned()).unwrap());
        let options = RenderOptions::new(Output::Image(ImageOptions::new(ImageFormat::Png)));
        let mut job = RenderJob { account: AccountId::from_text("acc_a"), source, options };
        job.add_template_files(files.assets());
        if brings {
            job.set_contents(&[(hash, content)].into()).unwrap();
        }
        job
    }

    #[test]
    fn contents_that_were_not_used_for_the_longest_time_go() {
        let kept = KeptFiles::new();
        let needs = |byte| kept.complete(&mut job(byte, false)) == Err(Incomplete::ContentsNeeded);
        let most = u8::try_from(MAX_BYTES / (LENGTH / 3 * 4 + ENTRY_BYTES) as u64).unwrap();
        for byte in 0..most {
            assert!(needs(byte));
            kept.complete(&mut job(byte, true)).unwrap();
            assert!(!needs(byte) && !needs(0), "{byte}");
        }
        kept.complete(&mut job(most, true)).unwrap();
        kept.0.run_pending_tasks();
        assert!(!needs(0) && needs(1) && !needs(2) && !needs(most));
    }

    #[test]
    fn a_job_gets_what_an_earlier_one_has_brought() {
        let kept = KeptFiles::new();
        kept.complete(&mut job(1, true)).unwrap();
        let mut later = job(1, false);
        kept.complete(&mut later).unwrap();
        assert_eq!(later, job(1, true));
    }
}
