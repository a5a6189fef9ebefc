//! The requests of the mixed load, each with its only right answer.
//!
//! Invariant: every page draws its number and has it in its title and text, so a file of another request is detected.

use std::fmt::Write as _;

use anyhow::{Context as _, Result, bail, ensure};
use platen_harness::{
    client::{Answer, RENDER, TEMPLATE},
    operator::Account,
    pdf_file::Pdf,
    site::Site,
};
use rand::{RngExt as _, rngs::StdRng};
use serde_json::{Value, json};

use crate::{
    client::{Request, unknown_key},
    number_marker,
};

const LARGE_BYTES: usize = 1_500_000;
/// The text of one of this many PDFs is read as well, which takes a process.
const TEXT_SHARE: u16 = 8;
/// The texts with which a request is refused that may be sent again.
const REFUSALS: [&str; 3] = [
    "The renderer is busy, try again shortly",
    "The renderer is not available",
    "The service is busy, try again shortly",
];

/// An account and its template.
#[derive(Debug, Clone)]
pub(super) struct Caller {
    pub(super) account: Account,
    pub(super) template: String,
}

/// A request of one account.
#[derive(Debug, Clone)]
pub(super) struct Planned {
    pub(super) kind: &'static str,
    pub(super) caller: usize,
    pub(super) request: Request,
    expected: Expected,
}

#[derive(Debug, Clone)]
enum Expected {
    /// A file with this number.
    File { content_type: &'static str, number: u16 },
    /// A refusal before anything is counted.
    Rejected { status: u16, message: &'static str },
    /// A page that cannot be rendered.
    PageFails { message: String },
}

/// What an answer means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The file, or the failure of a page that cannot be rendered.
    Right(u16),
    /// The refusal of a bad request.
    Rejected,
    /// A refusal that counts nothing.
    Refused(u16),
    /// A failure after the page began to run.
    Failed(u16),
    /// The client has disconnected.
    HungUp,
    Wrong(String),
}

/// Makes requests.
#[derive(Debug)]
pub(super) struct Planner {
    pub(super) callers: Vec<Caller>,
    /// `http://site.test:PORT`.
    pub(super) site: String,
    number: u16,
}

impl Planner {
    pub(super) fn new(callers: Vec<Caller>, site: &Site) -> Self {
        Self { callers, site: site.url(""), number: 0 }
    }

    /// The next request: one of ten is bad if `with_bad`.
    pub(super) fn next(&mut self, random: &mut StdRng, with_bad: bool) -> Planned {
        self.number = self.number.wrapping_add(1);
        let caller = random.random_range(0..self.callers.len());
        if with_bad && random.random_ratio(1, 10) {
            return self.bad(caller, random);
        }
        self.good(caller, random)
    }

    fn good(&self, caller: usize, random: &mut StdRng) -> Planned {
        let (number, format) =
            (self.number, ["png", "png", "jpeg", "webp", "pdf"][random.random_range(0..5)]);
        let html = number_marker::page(number);
        let (kind, path, mut body) = match random.random_range(0..20) {
            0..=1 => (
                "template",
                TEMPLATE,
                json!({ "templateId": self.callers[caller].template,
                "variables": { "number": number.to_string() } }),
            ),
            2..=3 => ("url", RENDER, json!({ "url": format!("{}/page/{number}", self.site) })),
            4 => ("large", RENDER, json!({ "html": format!("{html}<!-- {} -->", "x".repeat(LARGE_BYTES)) })),
            5 => ("wait", RENDER, json!({ "html": html, "waitForTimeout": random.random_range(100..1_500) })),
            6 => (
                "network idle",
                RENDER,
                json!({ "url": format!("{}/page/{number}", self.site), "waitUntil": "networkidle" }),
            ),
            7 => {
                let mut heavy = html.clone();
                let _ = write!(
                    heavy,
                    "<script>let x = 0; for (let i = 0; i < 5e7; i++) x += i</script><table>{}</table>",
                    "<tr><td>Item<td>12.00".repeat(300)
                );
                ("heavy", RENDER, json!({ "html": heavy }))
            }
            _ => ("small", RENDER, json!({ "html": html })),
        };
        body["format"] = format.into();
        if format != "pdf" {
            body["width"] = 400.into();
            body["height"] = 300.into();
        }
        let content_type = match format {
            "jpeg" => "image/jpeg",
            "webp" => "image/webp",
            "pdf" => "application/pdf",
            _ => "image/png",
        };
        self.planned(kind, caller, path, &body, Expected::File { content_type, number })
    }

    fn bad(&self, caller: usize, random: &mut StdRng) -> Planned {
        let html = json!({ "html": "x" });
        let rejected = |status, message| Expected::Rejected { status, message };
        let with_key = |key: &str, expected| Planned {
            request: Request::post(RENDER, key, html.to_string()),
            ..self.planned("bad", caller, RENDER, &html, expected)
        };
        match random.random_range(0..9) {
            0 => with_key("junk", rejected(401, "Invalid API key")),
            1 => with_key(&unknown_key(), rejected(401, "Invalid API key")),
            2 => self.planned(
                "bad",
                caller,
                RENDER,
                &json!({ "html": "x", "HTML": 1 }),
                rejected(400, "Unknown field \"HTML\". Did you mean \"html\"?"),
            ),
            3 => self.planned(
                "bad",
                caller,
                RENDER,
                &json!({ "html": "x", "height": 0 }),
                rejected(400, "\"height\" must be a whole number from 1 to 7680"),
            ),
            4 => self.planned(
                "bad",
                caller,
                TEMPLATE,
                &json!({ "templateId": self.callers[caller].template, "variables": {} }),
                rejected(400, "Missing template variable \"number\""),
            ),
            5 => self.planned("bad", caller, "/nowhere", &html, rejected(404, "Not found")),
            6 => {
                let mut planned = self.planned(
                    "bad",
                    caller,
                    RENDER,
                    &html,
                    rejected(415, "Content type must be application/json"),
                );
                planned.request.content_type = "text/plain";
                planned
            }
            7 => self.failing(caller, "download", "\"site.test\" did not answer with a page"),
            _ => self.failing(caller, "redirect", "\"site.test\" redirected too many times"),
        }
    }

    fn failing(&self, caller: usize, path: &str, message: &str) -> Planned {
        let expected = Expected::PageFails { message: message.to_owned() };
        self.planned(
            "failing page",
            caller,
            RENDER,
            &json!({ "url": format!("{}/{path}", self.site) }),
            expected,
        )
    }

    fn planned(
        &self,
        kind: &'static str,
        caller: usize,
        path: &'static str,
        body: &Value,
        expected: Expected,
    ) -> Planned {
        let request = Request::post(path, &self.callers[caller].account.key, body.to_string());
        Planned { kind, caller, request, expected }
    }
}

impl Planned {
    /// Checks an answer with everything that the contract promises.
    pub(super) fn verdict(&self, answer: &Answer) -> Verdict {
        self.judge(answer).unwrap_or_else(|error| Verdict::Wrong(format!("{}: {error:#}", self.kind)))
    }

    fn judge(&self, answer: &Answer) -> Result<Verdict> {
        match (&self.expected, answer.status) {
            (Expected::Rejected { status, message }, actual) if *status == actual => {
                answer.error(*status, message)?;
                Ok(Verdict::Rejected)
            }
            (Expected::File { content_type, number }, 200) => {
                check_file(answer.file(content_type)?, content_type, *number)?;
                Ok(Verdict::Right(200))
            }
            (Expected::PageFails { message }, 422) if answer.error(422, message).is_ok() => {
                Ok(Verdict::Right(422))
            }
            (_, 503) => {
                let right = REFUSALS.iter().any(|message| answer.error(503, message).is_ok());
                ensure!(right, "{}", answer.summary());
                Ok(Verdict::Refused(503))
            }
            (_, 429) => {
                answer.error(429, "Monthly quota exhausted")?;
                Ok(Verdict::Refused(429))
            }
            (Expected::Rejected { .. }, _) => bail!("{}", answer.summary()),
            (_, 502) => failed(answer, "The renderer failed"),
            (_, 504) => failed(answer, "The render did not finish in time"),
            (_, 422) => failed(answer, "The page crashed while it was rendered"),
            _ => bail!("{}", answer.summary()),
        }
    }
}

fn failed(answer: &Answer, message: &str) -> Result<Verdict> {
    answer.error(answer.status, message)?;
    Ok(Verdict::Failed(answer.status))
}

/// Decodes a file and compares its number.
fn check_file(file: &[u8], content_type: &str, number: u16) -> Result<()> {
    if content_type == "application/pdf" {
        let pdf = Pdf::parse(file)?;
        let title = pdf.title()?;
        ensure!(title == format!("number {number}"), "the title is {title:?} instead of {number}");
        if number.is_multiple_of(TEXT_SHARE) {
            let text = pdf.text()?;
            ensure!(
                text.contains(&format!("number {number} is done")),
                "the text is {text:?} instead of {number}"
            );
        }
        return Ok(());
    }
    let image = image::load_from_memory(file)?.into_rgba8();
    ensure!(image.dimensions() == (400, 300), "the image has {:?} pixels", image.dimensions());
    let found = number_marker::decode(&image).context("the image has no number")?;
    ensure!(found == number, "the image is that of {found} instead of {number}");
    Ok(())
}
