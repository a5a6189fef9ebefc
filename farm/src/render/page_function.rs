//! The JavaScript expression that a job waits for.
//!
//! It runs in the world of the page's scripts, whose variables it reads. The page can change what it does, and so only what
//! its own file shows.

use chromiumoxide_cdp::cdp::js_protocol::runtime::{CallFunctionOnParams, EvaluateParams, ExceptionDetails};
use platen_shared::{job::Expression, refusal::Refusal};
use serde::Deserialize;

use super::{rendering::Rendering, script::unless_refused};
use crate::error::JobError;

/// Characters of the page's message that a refusal has.
const MAX_MESSAGE_CHARS: usize = 300;
/// Evaluates the expression of an object made by [`object`], unless its promise is still pending. No command waits for that
/// promise: it may need the page's clock, which stands during commands. After one microtask the value of an expression
/// without a promise, or with a promise that is already settled, is known.
const CHECK: &str = "async function() { if (!this.pending) this.run(); await null; if (!this.error) return { met: this.met };\
    let message = 'an error'; try { message = `${this.error[0]?.message ?? this.error[0]}` } catch {} return { message } }";

fn object(expression: &Expression) -> String {
    format!(
        "({{ pending: false, met: false, error: null, async run() {{ this.pending = true;\
         try {{ this.met = !!await (\n{}\n) }} catch (error) {{ this.error = [error] }} this.pending = false }} }})",
        expression.as_str()
    )
}

#[derive(Deserialize)]
struct Checked {
    #[serde(default)]
    met: bool,
    message: Option<String>,
}

/// Whether the expression is true in the page's present document.
///
/// # Errors
/// [`Refusal::FunctionFailed`] if it throws.
pub(super) async fn is_true(
    rendering: &mut Rendering<'_>,
    expression: &Expression,
) -> Result<bool, JobError> {
    let document = rendering.load_state().documents;
    let known = rendering.function.take().filter(|(known, _)| *known == document);
    let function = if let Some((_, function)) = known {
        function
    } else {
        let evaluate = EvaluateParams::new(object(expression));
        let evaluated = rendering.wait_for_page(rendering.session.call(&evaluate)).await;
        let Some(evaluated) = unless_refused(evaluated)? else { return Ok(false) };
        if let Some(details) = evaluated.exception_details {
            return Err(failed(&thrown(details)));
        }
        evaluated.result.object_id.ok_or(JobError::NoFile)?
    };
    let check = CallFunctionOnParams {
        object_id: Some(function.clone()),
        await_promise: Some(true),
        return_by_value: Some(true),
        ..CallFunctionOnParams::new(CHECK)
    };
    let checked = rendering.wait_for_page(rendering.session.call(&check)).await;
    // Refused if the document is gone.
    let Some(checked) = unless_refused(checked)? else { return Ok(false) };
    rendering.function = Some((document, function));
    let checked = checked.result.value.and_then(|value| serde_json::from_value::<Checked>(value).ok());
    match checked {
        Some(Checked { message: Some(message), .. }) => Err(failed(&message)),
        checked => Ok(checked.is_some_and(|checked| checked.met)),
    }
}

fn thrown(details: ExceptionDetails) -> String {
    details.exception.and_then(|exception| exception.description).unwrap_or(details.text)
}

fn failed(message: &str) -> JobError {
    let line = message.lines().next().unwrap_or_default();
    let message = line.chars().filter(|it| !it.is_control()).take(MAX_MESSAGE_CHARS).collect();
    JobError::Refused(Refusal::FunctionFailed { message })
}
