//! `platen render`: renders one page to a file, with a farm in this process.
//!
//! Invariant: the options have the names of the API in kebab-case, with its bounds and defaults. A file is replaced when
//! the new one is complete; otherwise it stays as it was.

mod fields;
pub(super) mod files;
pub(super) mod folder;
mod refused;

use std::{
    collections::btree_map::Entry,
    io::{self, IsTerminal as _, Write as _},
    num::NonZeroUsize,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Error, Result, ensure};
use clap::Args;
use platen_farm::{Farm, Folder, Rendered};
use platen_program::startup;
use platen_shared::{
    endpoint::Endpoint,
    format::OutputFormat,
    id::AccountId,
    job::RenderJob,
    limits,
    page_report::PageReport,
    request::{FieldName, RenderRequest, SavedTemplate},
    template::Language,
};
use tokio_util::sync::CancellationToken;

use self::{
    fields::Fields,
    files::{Watch, write},
    folder::plain,
};
use super::{Failure, template};

/// Render one page to a file, without a server
///
/// The files of the folder of an HTML file are beside it, each when the page asks for it, but no hidden ones and none outside
/// of the folder: --assets DIR names another folder, inside of which the page keeps its place. A script of the page can read
/// them as well. A page gets files of up to 20 MiB, and 256 MB in all. What fails is a warning.
///
/// A URL that is not public is reached if --egress-allow names its host and --egress-ports its port.
///
/// Exits with 0 if the file was written, 1 if the browser cannot be started, the file cannot be written, or the page did what
/// --fail-on names, 2 if an argument, an option or the input is not valid, 3 if the page cannot be rendered, and 130 after
/// Ctrl-C.
#[derive(Debug, Args)]
pub(crate) struct RenderCommand {
    /// The page: an HTML file, an http or https URL, or - for HTML from standard input
    #[arg(value_name = "FILE|URL|-")]
    page: String,

    /// The file to write, or - for standard output. Its extension chooses the format
    #[arg(short, long, value_name = "FILE|-")]
    output: PathBuf,

    /// A JSON file with the render options of a template, which is filled with --variables or --data. Other options replace
    /// them
    #[arg(long, value_name = "FILE")]
    template_options: Option<PathBuf>,

    /// Render again whenever the page, a file of its folder or another file of the options changes, until Ctrl-C
    #[arg(long)]
    watch: bool,

    /// Print errors only
    #[arg(short, long)]
    quiet: bool,

    /// Print what the page did as well: its errors, failed requests, status, address and sheets
    #[arg(short, long, conflicts_with = "quiet")]
    verbose: bool,

    #[command(flatten)]
    fields: Fields,

    #[command(flatten)]
    farm: platen_farm::Config,
}

/// Exit statuses.
const FAILED: u8 = 1;
const NOT_RENDERED: u8 = 3;
const INTERRUPTED: u8 = 130;

impl RenderCommand {
    pub(crate) async fn run(mut self) -> Result<()> {
        self.check().map_err(Failure::invalid)?;
        let first = if self.watch { None } else { Some(self.input().map_err(Failure::invalid)?) };
        // One page needs one browser.
        self.farm.browsers = self.farm.browsers.or(Some(NonZeroUsize::MIN));
        let stop = startup::stop_signal()?;
        self.progress("starting Chromium");
        let Some(farm) = stop.run_until_cancelled(Farm::start(self.farm.clone())).await.transpose()? else {
            return self.interrupted();
        };
        let rendered = match first {
            Some((job, folder)) => stop.run_until_cancelled(self.render(&farm, job, folder)).await,
            None => Some(self.watch(&farm, &stop).await),
        };
        farm.shutdown().await;
        rendered.unwrap_or_else(|| self.interrupted())
    }

    fn interrupted(&self) -> Result<()> {
        if self.watch {
            Ok(())
        } else {
            Err(Failure { status: INTERRUPTED, error: Error::msg("interrupted") }.into())
        }
    }

    fn check(&self) -> Result<()> {
        if self.watch {
            ensure!(
                !self.is_url() && self.page != "-",
                "--watch needs a file as the page: standard input and URLs cannot be watched"
            );
            ensure!(self.output != Path::new("-"), "--watch needs a file as --output");
        }
        Ok(())
    }

    async fn render(&self, farm: &Farm, job: RenderJob, folder: Option<Folder>) -> Result<()> {
        self.progress(&format!("rendering {}", self.page));
        let (started, url) = (Instant::now(), refused::url_of(&job));
        let time_left = Duration::from_millis(limits::RENDER_TIMEOUT_MS);
        let rendered = match &folder {
            Some(folder) => farm.render_in_folder(job, folder, time_left).await,
            None => farm.render(&job, time_left).await,
        };
        let file = match rendered {
            Ok(file) => file,
            Err(refusal) => return Err(refused::failure(refusal, farm, url).await.into()),
        };
        let elapsed = started.elapsed().as_secs_f64();
        let open = if file.page.is_idle { "" } else { "; a request of the page was still open" };
        if self.verbose {
            report(&file);
        } else if !self.quiet {
            file.problems.iter().for_each(|text| print_line(&format!("warning: {}", plain(text))));
        }
        write(&self.output, &file.bytes)?;
        #[expect(clippy::cast_precision_loss, reason = "it is shown with one decimal place")]
        let kilobytes = file.bytes.len() as f64 / 1000.0;
        self.progress(&format!("wrote {}: {kilobytes:.1} KB in {elapsed:.2} s{open}", self.output.display()));
        Ok(())
    }

    /// Renders until the program is stopped. Errors are printed, because the next change may mend their cause.
    async fn watch(&self, farm: &Farm, stop: &CancellationToken) -> Result<()> {
        let mut changes = Watch::start(self.files(), self.watched_folder()?, &self.output)?;
        loop {
            let rendered = async {
                let (job, folder) = self.input()?;
                self.render(farm, job, folder).await
            };
            match stop.run_until_cancelled(rendered).await {
                None => return Ok(()),
                Some(Ok(())) => {}
                Some(Err(error)) => print_line(&format!("platen: {error:#}")),
            }
            if stop.run_until_cancelled(changes.next()).await.is_none() {
                return Ok(());
            }
        }
    }

    /// Progress is for a person who waits. With --watch it is the only sign that a file was written.
    fn progress(&self, text: &str) {
        if !self.quiet && (self.watch || io::stderr().is_terminal()) {
            print_line(text);
        }
    }

    fn is_url(&self) -> bool {
        let scheme = self.page.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
        matches!(scheme.as_deref(), Some("http" | "https"))
    }

    /// The files that the result depends on.
    fn files(&self) -> Vec<PathBuf> {
        let page = (!self.is_url() && self.page != "-").then(|| PathBuf::from(&self.page));
        page.into_iter().chain(self.template_options.clone()).chain(self.fields.files()).collect()
    }

    fn input(&self) -> Result<(RenderJob, Option<Folder>)> {
        let job = self.job()?;
        let folder = self.folder(&job)?;
        Ok((job, folder))
    }

    /// The job of a request with the same fields, which is checked by the same rules.
    fn job(&self) -> Result<RenderJob> {
        let mut body = self.fields.values()?;
        let options =
            self.template_options.as_deref().map(template::read_options).transpose()?.unwrap_or_default();
        let raw = |text: &str| serde_json::value::to_raw_value(text);
        if let Entry::Vacant(format) = body.entry(FieldName::Format.to_string()) {
            format.insert(raw(self.output_format(options.format())?.extension())?);
        }
        let account = AccountId::from_text("operator");
        let has = |field: FieldName| body.contains_key(field.as_str());
        let language = if has(FieldName::Data) { Language::Jinja } else { Language::Placeholders };
        if has(FieldName::Data) || has(FieldName::Variables) {
            ensure!(!self.is_url(), "--variables and --data fill an HTML file, and the page is a URL");
            body.insert(FieldName::TemplateId.to_string(), raw("file")?);
            let html = template::read(Path::new(&self.page))?;
            let request = RenderRequest::parse(Endpoint::Template, &serde_json::to_vec(&body)?)?;
            let template = SavedTemplate { html: &html, language, options: &options };
            return Ok(request.into_job(account, Some(template))?);
        }
        ensure!(self.template_options.is_none(), "--template-options needs --variables or --data");
        if self.is_url() {
            body.insert(FieldName::Url.to_string(), raw(&self.page)?);
        } else {
            body.insert(FieldName::Html.to_string(), raw(&template::read(Path::new(&self.page))?)?);
        }
        let request = RenderRequest::parse_of_operator(Endpoint::Render, &serde_json::to_vec(&body)?)?;
        Ok(request.into_job(account, None)?)
    }

    /// The format of the output's extension; that of the template, if there is no extension to see.
    fn output_format(&self, of_template: Option<OutputFormat>) -> Result<OutputFormat> {
        if self.output == Path::new("-") {
            return Ok(of_template.unwrap_or(OutputFormat::DEFAULT));
        }
        files::format(&self.output).with_context(|| {
            format!(
                "{} does not end in .png, .jpg, .webp or .pdf: name the format with --format",
                self.output.display()
            )
        })
    }
}

/// Prints what the page of a file did.
fn report(file: &Rendered) {
    let PageReport { status, errors, failed_requests, sheets, url, .. } = &file.page;
    let facts = [
        url.as_ref().map(|url| format!("page: {url}")),
        status.map(|status| format!("status: {status}")),
        sheets.map(|sheets| format!("sheets: {sheets}")),
        Some(format!("errors: {errors}")),
        Some(format!("failed requests: {failed_requests}")),
    ];
    let problems = file.problems.iter().map(|text| format!("  {}", plain(text)));
    facts.into_iter().flatten().chain(problems).for_each(|line| print_line(&line));
}

/// Unlike `eprintln!`, does not panic if standard error is closed.
fn print_line(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

#[cfg(test)]
mod tests;
