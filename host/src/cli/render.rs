//! `platen render`: renders one page to a file, with a farm in this process.
//!
//! Invariant: the options have the names of the API in kebab-case, with its bounds and defaults.

use std::{
    fs, io,
    io::Write as _,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use clap::{Args, builder::PossibleValuesParser};
use platen_farm::Farm;
use platen_shared::{
    format::{OutputFormat, PaperSize, WaitUntil},
    id::AccountId,
    job::{DeviceScaleFactor, Html, Output, PdfScale, PublicUrl, RenderJob, Side, Source, Viewport, WaitMs},
    limits,
};

use super::template;

#[derive(Debug, Args)]
pub(crate) struct RenderCommand {
    /// The page: an HTML file, an http or https URL, or - for HTML from standard input
    #[arg(value_name = "FILE|URL|-")]
    page: String,

    /// The file to write, or - for standard output
    #[arg(short, long, value_name = "FILE|-")]
    output: PathBuf,

    /// png, jpeg, webp or pdf [default: from the extension of the output, png for standard output]
    #[arg(long, value_parser = PossibleValuesParser::new(OutputFormat::NAMES))]
    format: Option<String>,

    /// Width of the viewport in CSS pixels
    #[arg(long, value_parser = number::<Side>, value_name = "PIXELS")]
    width: Option<Side>,

    /// Height of the viewport in CSS pixels
    #[arg(long, value_parser = number::<Side>, value_name = "PIXELS")]
    height: Option<Side>,

    /// Device pixels per CSS pixel
    #[arg(long, value_parser = number::<DeviceScaleFactor>, value_name = "FACTOR")]
    device_scale_factor: Option<DeviceScaleFactor>,

    /// Capture the whole page instead of the viewport
    #[arg(long)]
    full_page: bool,

    /// The event after which the page is captured
    #[arg(long, default_value = "load", value_parser = PossibleValuesParser::new(WaitUntil::NAMES))]
    wait_until: String,

    /// Wait this long after that event
    #[arg(long, value_parser = number::<WaitMs>, value_name = "MS")]
    wait_for_timeout: Option<WaitMs>,

    /// Paper size of a PDF
    #[arg(long, value_parser = paper, value_name = "SIZE", default_value = "A4")]
    pdf_format: PaperSize,

    /// Print backgrounds in a PDF
    #[arg(long)]
    print_background: bool,

    /// Scale of a PDF's content
    #[arg(long, value_parser = number::<PdfScale>)]
    scale: Option<PdfScale>,

    #[command(flatten)]
    farm: platen_farm::Config,
}

impl RenderCommand {
    pub(crate) async fn run(self) -> Result<()> {
        let job = self.job()?;
        // One page needs one browser.
        let mut config = self.farm;
        config.browsers = config.browsers.or(Some(std::num::NonZeroUsize::MIN));
        let farm = Farm::start(config).await?;
        let rendered = farm.render(&job, Duration::from_millis(limits::RENDER_TIMEOUT_MS)).await;
        farm.shutdown().await;
        let file = rendered?.bytes;
        if self.output == Path::new("-") {
            io::stdout().write_all(&file).context("standard output cannot be written")
        } else {
            fs::write(&self.output, &file)
                .with_context(|| format!("{} cannot be written", self.output.display()))
        }
    }

    fn job(&self) -> Result<RenderJob> {
        let defaults = Viewport::default();
        let viewport = Viewport {
            width: self.width.unwrap_or(defaults.width),
            height: self.height.unwrap_or(defaults.height),
            device_scale_factor: self.device_scale_factor.unwrap_or_default(),
        };
        let output = match self.output_format()? {
            OutputFormat::Image(format) => Output::Image { format, full_page: self.full_page },
            OutputFormat::Pdf => Output::Pdf {
                paper: self.pdf_format,
                print_background: self.print_background,
                scale: self.scale.unwrap_or_default(),
            },
        };
        let job = RenderJob {
            account: AccountId::from_text("operator"),
            source: self.source()?,
            viewport,
            wait_until: WaitUntil::parse(&self.wait_until).unwrap_or_default(),
            wait_for_timeout: self.wait_for_timeout.unwrap_or_default(),
            output,
        };
        Ok(job.check()?)
    }

    fn source(&self) -> Result<Source> {
        let scheme = self.page.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
        Ok(match scheme.as_deref() {
            Some("http" | "https") => {
                Source::Url(PublicUrl::try_from(self.page.clone()).context("invalid url")?)
            }
            _ => Source::Html(Html::try_from(template::read(Path::new(&self.page))?)?),
        })
    }

    fn output_format(&self) -> Result<OutputFormat> {
        if let Some(name) = &self.format {
            return OutputFormat::parse(name).context("the format was validated by the parser");
        }
        if self.output == Path::new("-") {
            return Ok(OutputFormat::DEFAULT);
        }
        let extension =
            self.output.extension().map(|extension| extension.to_string_lossy().to_ascii_lowercase());
        match extension.as_deref().and_then(OutputFormat::parse) {
            Some(format) => Ok(format),
            None => bail!(
                "{} does not end in .png, .jpg, .webp or .pdf: name the format with --format",
                self.output.display()
            ),
        }
    }
}

fn number<T: TryFrom<f64, Error: std::fmt::Display>>(text: &str) -> Result<T, String> {
    let number: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    T::try_from(number).map_err(|error| error.to_string())
}

fn paper(text: &str) -> Result<PaperSize, String> {
    PaperSize::parse(text).ok_or_else(|| format!("one of {}", PaperSize::NAMES.join(", ")))
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, FromArgMatches as _};

    use super::*;

    fn job(arguments: &[&str]) -> Result<RenderJob> {
        let command = RenderCommand::augment_args(clap::Command::new("render")).no_binary_name(true);
        RenderCommand::from_arg_matches(&command.try_get_matches_from(arguments)?)?.job()
    }

    #[test]
    fn the_options_follow_the_api() {
        let url = "https://example.com/";
        let job_of = |arguments: &[&str]| job(&[&[url, "-o"], arguments].concat()).unwrap();
        assert_eq!(job_of(&["a.PDF"]).output.format(), OutputFormat::Pdf);
        assert_eq!(job_of(&["-"]).output.format().extension(), "png");
        assert_eq!(job_of(&["-", "--format", "jpg"]).output.format().extension(), "jpg");
        let wide = job_of(&["a.webp", "--width", "7680", "--device-scale-factor", "0.5", "--full-page"]);
        assert_eq!(wide.viewport.width.get(), 7680);
        assert!(matches!(wide.output, Output::Image { full_page: true, .. }));
        let paper = job_of(&["a.pdf", "--pdf-format", "letter", "--scale", "2", "--print-background"]);
        assert!(matches!(paper.output, Output::Pdf { paper: PaperSize::Letter, print_background: true, .. }));
        for bad in [
            &["a.gif"][..],
            &["a.png", "--width", "0"],
            &["a.png", "--width", "NaN"],
            &["a.pdf", "--scale", "2.1"],
            &["a.png", "--wait-for-timeout", "10001"],
            &["a.png", "--wait-until", "idle"],
            &["a.png", "--width", "7680", "--height", "7680", "--device-scale-factor", "4"],
        ] {
            job(&[&[url, "-o"], bad].concat()).unwrap_err();
        }
        job(&["http://127.0.0.1/", "-o", "a.png"]).unwrap_err();
        job(&["/no/such/file.html", "-o", "a.png"]).unwrap_err();
    }
}
