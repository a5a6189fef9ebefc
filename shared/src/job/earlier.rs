//! The JSON of jobs that edges of version 0.1.0 send, so that farms can be updated before the edges.

use serde::Deserialize;

use super::{
    ImageOptions, InvalidOptions, Output, PdfOptions, PdfScale, Region, RenderJob, RenderOptions, Source,
    Viewport, WaitMs,
};
use crate::{
    format::{ImageFormat, PaperSize, WaitUntil},
    id::AccountId,
};

/// A job as it is sent now, or as it was sent earlier.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AnyRenderJob {
    account: AccountId,
    source: Source,
    options: Option<RenderOptions>,
    viewport: Option<Viewport>,
    wait_until: Option<WaitUntil>,
    wait_for_timeout: Option<WaitMs>,
    output: Option<EarlierOutput>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum EarlierOutput {
    Image { format: ImageFormat, full_page: bool },
    Pdf { paper: PaperSize, print_background: bool, scale: PdfScale },
}

#[derive(Debug, thiserror::Error)]
pub(super) enum InvalidForm {
    #[error(
        "either \"options\", or \"viewport\", \"wait_until\", \"wait_for_timeout\" and \"output\" are required"
    )]
    Fields,
    #[error(transparent)]
    Options(#[from] InvalidOptions),
}

impl TryFrom<AnyRenderJob> for RenderJob {
    type Error = InvalidForm;

    fn try_from(job: AnyRenderJob) -> Result<Self, InvalidForm> {
        let AnyRenderJob { account, source, .. } = job;
        let options = match (job.options, job.viewport, job.wait_until, job.wait_for_timeout, job.output) {
            (Some(options), None, None, None, None) => options,
            (None, Some(viewport), Some(wait_until), Some(wait_for_timeout), Some(output)) => {
                let output = output.into();
                RenderOptions { viewport, wait_until, wait_for_timeout, ..RenderOptions::new(output) }
            }
            _ => return Err(InvalidForm::Fields),
        };
        options.check()?;
        Ok(Self { account, source, options })
    }
}

impl From<EarlierOutput> for Output {
    fn from(output: EarlierOutput) -> Self {
        match output {
            EarlierOutput::Image { format, full_page } => {
                let region = if full_page { Region::FullPage } else { Region::Viewport };
                Self::Image(ImageOptions { region, ..ImageOptions::new(format) })
            }
            EarlierOutput::Pdf { paper, print_background, scale } => {
                Self::Pdf(Box::new(PdfOptions { print_background, scale, ..PdfOptions::new(paper.into()) }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn both_forms_are_read_but_no_mixture() {
        let earlier = json!({
            "account": "acc",
            "source": { "html": "x" },
            "viewport": { "width": 800.0, "height": 600.0, "device_scale_factor": 2.0 },
            "wait_until": "networkidle",
            "wait_for_timeout": 20.0,
            "output": { "image": { "format": "webp", "full_page": true } },
        });
        let job: RenderJob = serde_json::from_value(earlier.clone()).unwrap();
        let Output::Image(image) = &job.options.output else { panic!("{job:?}") };
        assert_eq!((image.format, &image.region), (ImageFormat::Webp, &Region::FullPage));
        assert_eq!(job.options.wait_until, WaitUntil::NetworkIdle);
        assert_eq!(job.options.viewport.width.get(), 800);
        let now = serde_json::to_value(&job).unwrap();
        assert_eq!(serde_json::from_value::<RenderJob>(now.clone()).unwrap(), job);
        let pdf = json!({ "pdf": { "paper": "A5", "print_background": true, "scale": 0.5 } });
        let mut other = earlier.clone();
        other["output"] = pdf;
        let Output::Pdf(pdf) = serde_json::from_value::<RenderJob>(other).unwrap().options.output else {
            panic!("no PDF")
        };
        let expected = PdfOptions {
            print_background: true,
            scale: PdfScale::try_from(0.5).unwrap(),
            ..PdfOptions::new(PaperSize::A5.into())
        };
        assert_eq!(*pdf, expected);

        let invalid = |mut job: Value, field: &str, value: Option<Value>| {
            let fields = job.as_object_mut().unwrap();
            match value {
                Some(value) => fields.insert(field.to_owned(), value),
                None => fields.remove(field),
            };
            serde_json::from_value::<RenderJob>(job).unwrap_err().to_string()
        };
        for field in ["viewport", "wait_until", "wait_for_timeout", "output"] {
            assert!(invalid(earlier.clone(), field, None).contains("are required"), "{field}");
            assert!(invalid(now.clone(), field, Some(earlier[field].clone())).contains("are required"));
        }
        assert!(invalid(now.clone(), "options", None).contains("are required"));
        assert!(invalid(now, "other", Some(json!(1))).contains("unknown field"));
        let large = json!({ "width": 7680.0, "height": 7680.0, "device_scale_factor": 2.0 });
        assert!(invalid(earlier, "viewport", Some(large)).contains("pixels"));
    }
}
