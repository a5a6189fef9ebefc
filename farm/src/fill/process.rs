//! The process that fills the template of one job: what it reads and writes, and its limits.
//!
//! Invariant: it has its limits before it reads anything. It has no environment, and cannot open a file or a socket.

use std::{
    env,
    io::{self, Read as _, Write as _},
    iter, mem, process,
    time::Duration,
};

use nix::{
    sys::{
        resource::{Resource, getrlimit, setrlimit},
        signal::{SigEvent, SigevNotify, Signal},
        timer::{Expiration, Timer, TimerSetTimeFlags},
    },
    time::ClockId,
};
use platen_jinja::{FillError, Filler};
use platen_shared::{
    job::JinjaTemplate,
    limits::{MAX_HEADER_BYTES, MAX_HTML_BYTES},
    locale::TimeZone,
    refusal::Refusal,
};

use crate::browser::lower_priority;

/// The argument with which a farm starts its own program as this process.
pub(super) const ARGUMENT: &str = "--fill-template";
/// The exit status of a process that has not filled its template for another reason than the template.
pub(super) const FAILED: i32 = 1;

/// CPU time of the process, with that of its start.
const MAX_CPU_TIME: Duration = Duration::from_millis(200);
/// Memory that the process may write, without its stack. The largest data that a template may have takes 100 MiB.
const MAX_MEMORY_BYTES: u64 = 256 * 1024 * 1024;
/// The usual size of a stack, which some systems do not limit.
const MAX_STACK_BYTES: u64 = 8 * 1024 * 1024;

/// A text and its name: that of a field of the contract, or empty for the markup.
pub(super) type Text<'a> = (&'a str, &'a str);

/// What the process reads: time zone, data and variables, and then names and templates in turn.
pub(super) fn request(
    template: &JinjaTemplate,
    fields: &[Text<'_>],
    time_zone: Option<&TimeZone>,
) -> io::Result<Vec<u8>> {
    let variables = serde_json::to_string(&template.variables)?;
    let mut texts = vec![time_zone.map_or("UTC", TimeZone::as_str), template.data.as_json(), &variables];
    texts.extend(["", template.markup.as_str()]);
    texts.extend(fields.iter().flat_map(|(name, text)| [*name, *text]));
    Ok(framed(&texts))
}

/// What it writes: the filled texts, or a refusal.
pub(super) fn answer(bytes: &[u8]) -> io::Result<Result<Vec<String>, Refusal>> {
    let texts = unframed(bytes)?;
    match texts.split_first() {
        Some((&"", filled)) => Ok(Ok(filled.iter().map(|text| (*text).to_owned()).collect())),
        Some((refusal, _)) => Ok(Err(serde_json::from_str(refusal)?)),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Texts with their lengths before them. JSON would take as much CPU time as filling a template does.
fn framed(texts: &[&str]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for text in texts {
        bytes.extend_from_slice(&text.len().to_le_bytes());
        bytes.extend_from_slice(text.as_bytes());
    }
    bytes
}

fn unframed(mut bytes: &[u8]) -> io::Result<Vec<&str>> {
    let mut texts = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk() {
        let (text, rest) =
            rest.split_at_checked(usize::from_le_bytes(*length)).ok_or(io::ErrorKind::UnexpectedEof)?;
        texts.push(std::str::from_utf8(text).map_err(io::Error::other)?);
        bytes = rest;
    }
    Ok(texts)
}

/// Fills the template that standard input has, and ends the process, if a farm has started this program for that. A program with a
/// farm calls it first.
pub fn fill_template_if_asked() {
    if env::args_os().nth(1).is_some_and(|argument| argument == ARGUMENT) {
        process::exit(if run().is_ok() { 0 } else { FAILED });
    }
}

fn run() -> io::Result<()> {
    limit()?;
    let mut request = Vec::new();
    io::stdin().lock().read_to_end(&mut request)?;
    let request = unframed(&request)?;
    let [time_zone, data, variables, texts @ ..] = request.as_slice() else {
        return Err(io::ErrorKind::UnexpectedEof.into());
    };
    let (refusal, texts) = match fill(Filler::new(data, &serde_json::from_str(variables)?, time_zone), texts)
    {
        Ok(filled) => (String::new(), filled),
        Err(refusal) => (serde_json::to_string(&refusal)?, Vec::new()),
    };
    let answer: Vec<&str> = iter::once(&refusal).chain(&texts).map(String::as_str).collect();
    io::stdout().lock().write_all(&framed(&answer))
}

/// Limits this process. The kernel ends it when it has used up its CPU time or its stack, and its allocator when it has used up its
/// memory.
fn limit() -> io::Result<()> {
    for (resource, most) in [
        (Resource::RLIMIT_DATA, MAX_MEMORY_BYTES),
        (Resource::RLIMIT_STACK, MAX_STACK_BYTES),
        (Resource::RLIMIT_CORE, 0),
        (Resource::RLIMIT_NOFILE, 0),
    ] {
        let (_, allowed) = getrlimit(resource)?;
        let most = most.min(allowed);
        setrlimit(resource, most, most)?;
    }
    lower_priority();
    let signal = SigevNotify::SigevSignal { signal: Signal::SIGXCPU, si_value: 0 };
    let mut timer = Timer::new(ClockId::CLOCK_PROCESS_CPUTIME_ID, SigEvent::new(signal))?;
    timer.set(Expiration::OneShot(MAX_CPU_TIME.into()), TimerSetTimeFlags::TFD_TIMER_ABSTIME)?;
    // It would be deleted when it is dropped.
    mem::forget(timer);
    Ok(())
}

fn fill(mut filler: Filler, texts: &[&str]) -> Result<Vec<String>, Refusal> {
    let fill = |text: &[&str]| {
        let max_bytes = if text[0].is_empty() { MAX_HTML_BYTES } else { MAX_HEADER_BYTES };
        filler.fill(text[1], max_bytes).map_err(|error| match error {
            FillError::Failed { line, message } => Refusal::TemplateFailed {
                field: Some(text[0].to_owned()).filter(|field| !field.is_empty()),
                line: u32::try_from(line).unwrap_or(u32::MAX),
                message: message.into(),
            },
            FillError::Exceeded(limit) => Refusal::TemplateLimitExceeded { limit },
        })
    };
    let texts = texts.chunks_exact(2).map(fill).collect();
    // It ends with the process: dropping a million values takes time.
    mem::forget(filler);
    texts
}
