//! Fills the template of a job, before anything of the renderer sees the job.
//!
//! Invariant: a template is filled in a process of its own, which has limits and no data but those of the job. Whatever it does, the
//! farm goes on, and the job has an answer.

mod process;

use std::{
    io,
    num::NonZero,
    os::unix::process::ExitStatusExt as _,
    process::{ExitStatus, Stdio},
    thread,
    time::Duration,
};

use nix::sys::signal::Signal;
use platen_program::FairLimit;
use platen_shared::{
    id::AccountId,
    job::{HeaderHtml, Html, JinjaTemplate, Output, RenderJob, Source},
    refusal::{Refusal, TemplateLimit},
    request::OPTIONS_WITH_PLACEHOLDERS,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    process::Command,
};

pub use self::process::fill_template_if_asked;
use crate::{cgroup, config::Config};

/// The program of this process, also after its file was replaced.
const OWN_PROGRAM: &str = "/proc/self/exe";

/// Limits the templates that are filled at once, to one for each core, and to two at least. Accounts take turns, and none has
/// all of them: a template of another account does not wait for one that is filled for as long as it may be.
#[derive(Debug)]
pub(crate) struct Filling {
    limit: FairLimit<AccountId>,
    wait: Duration,
}

impl Filling {
    pub(crate) fn new(config: &Config) -> Self {
        let places = thread::available_parallelism().map_or(1, NonZero::get).max(2);
        Self {
            limit: FairLimit::new(places, places - 1, config.queue),
            wait: Duration::from_secs(config.queue_timeout.get().into()),
        }
    }

    /// The job with its template and the templates of its headers and footers filled. Dropping the future ends the process.
    pub(crate) async fn fill(&self, job: &RenderJob, template: &JinjaTemplate) -> Result<RenderJob, Refusal> {
        let _permit = self.limit.acquire(&job.account, self.wait).await.ok_or(Refusal::NoSlotInTime)?;
        let mut options = job.options.clone();
        let mut headers = match &mut options.output {
            Output::Pdf(pdf) => {
                let texts = [&mut pdf.header, &mut pdf.footer, &mut pdf.first_header, &mut pdf.first_footer];
                OPTIONS_WITH_PLACEHOLDERS
                    .into_iter()
                    .zip(texts)
                    .filter_map(|(field, html)| Some((field, html.as_mut()?)))
                    .collect()
            }
            Output::Image(_) => Vec::new(),
        };
        let fields: Vec<_> = headers.iter().map(|(field, html)| (field.as_str(), html.as_str())).collect();
        let request = process::request(template, &fields, job.options.environment.time_zone.as_ref());
        let filled = match async { filled(&request?).await }.await {
            Ok(filled) => filled?,
            Err(error) => {
                tracing::error!(%error, "a template was not filled");
                return Err(Refusal::NoBrowser);
            }
        };
        let mut filled = filled.into_iter();
        let markup = filled.next().unwrap_or_default();
        for ((_, html), filled) in headers.iter_mut().zip(filled) {
            **html = HeaderHtml::try_from(filled).map_err(|_| Refusal::InvalidJob)?;
        }
        let source = Source::Html(Html::try_from(markup).map_err(|_| Refusal::EmptyTemplate)?);
        Ok(RenderJob { account: job.account.clone(), source, options })
    }
}

/// The texts of a request, filled by a process.
async fn filled(request: &[u8]) -> io::Result<Result<Vec<String>, Refusal>> {
    let mut child = Command::new(OWN_PROGRAM)
        .arg(process::ARGUMENT)
        .env_clear()
        // An interrupt from the terminal is for the farm, whose jobs finish.
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    child.id().into_iter().for_each(cgroup::add_filling);
    let (Some(mut stdin), Some(mut stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(io::ErrorKind::BrokenPipe.into());
    };
    let write = async move {
        // Fails if the process has ended, of which its status tells the reason.
        let _ = stdin.write_all(request).await;
    };
    let mut answer = Vec::new();
    let ((), read) = tokio::join!(write, stdout.read_to_end(&mut answer));
    read?;
    let status = child.wait().await?;
    if status.success() {
        return process::answer(&answer);
    }
    if is_of_template(status) {
        tracing::info!(%status, "a template was beyond its limits");
        return Ok(Err(Refusal::TemplateLimitExceeded { limit: TemplateLimit::Work }));
    }
    Err(io::Error::other(format!("the process that fills it ended: {status}")))
}

/// Whether the process has ended because of the template: by the signal of a limit, or by a panic.
fn is_of_template(status: ExitStatus) -> bool {
    match status.signal() {
        Some(signal) => {
            [Signal::SIGXCPU, Signal::SIGSEGV, Signal::SIGABRT].iter().any(|limit| *limit as i32 == signal)
        }
        None => status.code() != Some(process::FAILED),
    }
}
