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
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use platen_farm::Farm;
use platen_shared::{
    endpoint::Endpoint,
    format::OutputFormat,
    id::AccountId,
    job::RenderJob,
    limits,
    request::{FieldKind, FieldName, RenderRequest},
};
use serde_json::{Map, Number, Value};

use super::template;

#[derive(Debug, Args)]
pub(crate) struct RenderCommand {
    /// The page: an HTML file, an http or https URL, or - for HTML from standard input
    #[arg(value_name = "FILE|URL|-")]
    page: String,

    /// The file to write, or - for standard output. Its extension chooses the format
    #[arg(short, long, value_name = "FILE|-")]
    output: PathBuf,

    #[command(flatten)]
    fields: Fields,

    #[command(flatten)]
    farm: platen_farm::Config,
}

/// The fields of the request body that are options.
#[derive(Debug, Default)]
struct Fields(Map<String, Value>);

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

    /// The job of a request with the same fields, which is checked by the same rules.
    fn job(&self) -> Result<RenderJob> {
        let mut body = self.fields.0.clone();
        let scheme = self.page.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
        let (source, text) = match scheme.as_deref() {
            Some("http" | "https") => (FieldName::Url, self.page.clone()),
            _ => (FieldName::Html, template::read(Path::new(&self.page))?),
        };
        body.insert(source.to_string(), Value::String(text));
        let format = FieldName::Format.to_string();
        if !body.contains_key(&format) {
            body.insert(format, self.output_format()?.extension().into());
        }
        let body = serde_json::to_vec(&body)?;
        let request = RenderRequest::parse(Endpoint::Render, &body)?;
        Ok(request.into_job(AccountId::from_text("operator"), None)?)
    }

    fn output_format(&self) -> Result<OutputFormat> {
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

impl Fields {
    /// The fields that are options of the command line. The others are its arguments, or concern templates and downloads.
    fn names() -> impl Iterator<Item = FieldName> {
        use FieldName::{FileName, Html, TemplateId, Url, Variables};
        FieldName::all().filter(|name| !matches!(name, Html | Url | TemplateId | Variables | FileName))
    }

    fn argument(name: FieldName) -> Arg {
        let spec = name.spec();
        let help = spec.description.trim_end_matches('.').replace('`', "");
        let help = match spec.default {
            Some(default) if spec.kind != FieldKind::Boolean => {
                format!("{help} [default: {}]", default.trim_matches('"'))
            }
            _ => help,
        };
        let argument = Arg::new(name.as_str()).long(option(name)).help(help).allow_hyphen_values(true);
        match spec.kind {
            FieldKind::Boolean => argument
                .num_args(0..=1)
                .require_equals(true)
                .default_missing_value("true")
                .value_parser(["true", "false"])
                .hide_possible_values(true)
                .value_name("true|false"),
            FieldKind::Number { .. } => argument.value_name("NUMBER"),
            FieldKind::Choice(names) => argument.value_name(names.join("|")),
            FieldKind::Length | FieldKind::Margin => argument.value_name("LENGTH"),
            FieldKind::Clip => argument.value_name("X,Y,WIDTH,HEIGHT"),
            FieldKind::Text { .. } | FieldKind::Variables if is_content(name) => {
                argument.value_name("TEXT|@FILE")
            }
            FieldKind::Text { .. } | FieldKind::Variables => argument.value_name("TEXT"),
        }
    }

    fn value(name: FieldName, text: &str) -> Result<Value> {
        let number = |text: &str| serde_json::from_str::<Number>(text.trim()).ok().map(Value::Number);
        let or_text = |value: Option<Value>| value.unwrap_or_else(|| text.into());
        Ok(match name.spec().kind {
            FieldKind::Boolean => Value::Bool(text == "true"),
            FieldKind::Margin if text.starts_with('{') => or_text(serde_json::from_str(text).ok()),
            FieldKind::Number { .. } | FieldKind::Length | FieldKind::Margin => or_text(number(text)),
            FieldKind::Clip => {
                let numbers: Option<Vec<_>> = text.split(',').map(number).collect();
                let members = ["x", "y", "width", "height"].map(str::to_owned);
                let numbers = numbers.filter(|numbers| numbers.len() == members.len());
                or_text(numbers.map(|numbers| members.into_iter().zip(numbers).collect()))
            }
            FieldKind::Text { .. } if is_content(name) => match text.strip_prefix('@') {
                Some(path) => template::read(Path::new(path))?.into(),
                None => text.into(),
            },
            FieldKind::Text { .. } | FieldKind::Choice(_) | FieldKind::Variables => text.into(),
        })
    }
}

/// The name of a field in kebab-case.
fn option(name: FieldName) -> String {
    let mut option = String::new();
    for character in name.as_str().chars() {
        if character.is_ascii_uppercase() {
            option.push('-');
        }
        option.push(character.to_ascii_lowercase());
    }
    option
}

/// Whether the value is rather in a file than in an argument.
fn is_content(name: FieldName) -> bool {
    matches!(name, FieldName::HeaderHtml | FieldName::FooterHtml | FieldName::Css)
}

impl Args for Fields {
    fn augment_args(command: Command) -> Command {
        command.args(Self::names().map(Self::argument))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Fields {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut fields = Self::default();
        fields.update_from_arg_matches(matches)?;
        Ok(fields)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for name in Self::names() {
            if let Some(text) = matches.get_one::<String>(name.as_str()) {
                let value = Self::value(name, text)
                    .map_err(|error| clap::Error::raw(clap::error::ErrorKind::Io, format!("{error:#}\n")))?;
                self.0.insert(name.to_string(), value);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use platen_shared::{
        format::PaperSize,
        job::{Margins, Output, Region},
        length::Length,
    };

    use super::*;

    fn job(arguments: &[&str]) -> Result<RenderJob> {
        let command = RenderCommand::augment_args(clap::Command::new("render")).no_binary_name(true);
        RenderCommand::from_arg_matches(&command.try_get_matches_from(arguments)?)?.job()
    }

    #[test]
    fn the_options_follow_the_api() {
        let url = "https://example.com/";
        let job_of = |arguments: &[&str]| job(&[&[url, "-o"], arguments].concat()).unwrap();
        assert_eq!(job_of(&["a.PDF"]).options.output.format(), OutputFormat::Pdf);
        assert_eq!(job_of(&["-"]).options.output.format().extension(), "png");
        assert_eq!(job_of(&["-", "--format", "jpg"]).options.output.format().extension(), "jpg");
        let wide = job_of(&["a.webp", "--width", "7680", "--device-scale-factor", "0.5", "--full-page"]);
        assert_eq!(wide.options.viewport.width.get(), 7680);
        assert!(matches!(wide.options.output, Output::Image(image) if image.region == Region::FullPage));
        let clip = job_of(&["a.png", "--clip", "1,2,30,40", "--omit-background", "--java-script=false"]);
        assert!(!clip.options.environment.java_script);
        assert!(
            matches!(clip.options.output, Output::Image(image) if matches!(image.region, Region::Clip(_)))
        );
        let paper =
            job_of(&["a.pdf", "--pdf-format", "letter", "--scale", "2", "--margin", "12mm", "--tagged"]);
        let Output::Pdf(paper) = paper.options.output else { panic!("not a PDF") };
        assert_eq!(paper.sheet, PaperSize::Letter.into());
        assert!(paper.tagged && paper.margins == Length::parse("12mm").map(Margins::all));
        let margin = job_of(&["a.pdf", "--margin", r#"{"top":"1in"}"#, "--header-html", "<b>x</b>"]);
        let Output::Pdf(margin) = margin.options.output else { panic!("not a PDF") };
        assert_eq!(
            margin.margins,
            Some(Margins { top: Length::parse("1in").unwrap(), ..Margins::default() })
        );
        assert_eq!(margin.header.unwrap().as_str(), "<b>x</b>");
        for bad in [
            &["a.gif"][..],
            &["a.png", "--width", "0"],
            &["a.png", "--width", "NaN"],
            &["a.pdf", "--scale", "2.1"],
            &["a.png", "--wait-for-timeout", "10001"],
            &["a.png", "--wait-until", "idle"],
            &["a.png", "--clip", "1,2,3"],
            &["a.png", "--quality", "50"],
            &["a.pdf", "--margin", "-1"],
            &["a.pdf", "--css", "@/no/such/file.css"],
            &["a.png", "--width", "7680", "--height", "7680", "--device-scale-factor", "4"],
        ] {
            job(&[&[url, "-o"], bad].concat()).unwrap_err();
        }
        job(&["http://127.0.0.1/", "-o", "a.png"]).unwrap_err();
        job(&["/no/such/file.html", "-o", "a.png"]).unwrap_err();
    }
}
