//! Scripts of the farm in the document of a job, and the expression that a job waits for.
//!
//! Invariant: the page cannot change what scripts of the farm do. They run in an isolated world, after `prelude.js`, which says
//! what bounds that. A script of more than three lines is a function in a file beside its Rust. The expression of a job runs in the
//! world of the page's scripts, whose variables it reads: the page can change what it does, and so only what its own file shows.

use chromiumoxide_cdp::cdp::{
    browser_protocol::page::{
        AddScriptToEvaluateOnNewDocumentParams, CreateIsolatedWorldParams, FrameId, FrameTree,
        GetFrameTreeParams,
    },
    js_protocol::runtime::{CallFunctionOnParams, EvaluateParams, ExceptionDetails, ExecutionContextId},
};
use platen_cdp::{CdpError, Session};
use platen_shared::{
    job::Expression,
    refusal::{FirstError, Refusal},
};
use serde::Deserialize;
use serde_json::Value;

use super::rendering::{Rendering, unless_refused};
use crate::error::JobError;

/// Name of the isolated world.
const WORLD: &str = "platen";

/// The names that every script may use.
const PRELUDE: &str = include_str!("prelude.js");

/// The command that creates the isolated world of the document in a frame, or finds it.
pub(super) fn create_world(frame: &str) -> CreateIsolatedWorldParams {
    let mut world = CreateIsolatedWorldParams::new(frame.to_owned());
    world.world_name = Some(WORLD.to_owned());
    world
}

/// The command that runs a script, which is an expression, in an isolated world and returns its value.
pub(super) fn evaluate(expression: &str, world: ExecutionContextId) -> EvaluateParams {
    let mut evaluate = EvaluateParams::new(complete(expression));
    evaluate.context_id = Some(world);
    evaluate.return_by_value = Some(true);
    evaluate
}

/// The command that runs a script in the isolated world of the next documents of a page and of their frames, before their
/// first script. In a document without scripts Chromium runs it with the first script of a command.
pub(super) fn of_next_documents(expression: &str) -> AddScriptToEvaluateOnNewDocumentParams {
    let mut script = AddScriptToEvaluateOnNewDocumentParams::new(complete(expression));
    script.world_name = Some(WORLD.to_owned());
    script
}

fn complete(expression: &str) -> String {
    format!("(() => {{ {PRELUDE}return ({expression}) }})()")
}

impl Rendering<'_> {
    /// The isolated world of the page's main document; `None` if the page has just navigated.
    async fn isolated_world(&mut self) -> Result<Option<ExecutionContextId>, JobError> {
        let document = self.load_state().document.number;
        if let Some((of, world)) = self.document.world
            && of == document
        {
            return Ok(Some(world));
        }
        let created = self.world_of_frame(self.main_frame).await?;
        self.document.world = created.map(|world| (document, world));
        Ok(created)
    }

    /// The isolated world of the document in a frame; `None` if the frame has just navigated or is gone.
    pub(super) async fn world_of_frame(&self, frame: &str) -> Result<Option<ExecutionContextId>, JobError> {
        let create = create_world(frame);
        let created = self.reply(self.session.call(&create)).await?;
        Ok(created.map(|created| created.execution_context_id))
    }

    /// The command that runs a script, an expression, in the isolated world of the document. `None` if
    /// the page has just navigated.
    pub(super) async fn script(&mut self, expression: &str) -> Result<Option<EvaluateParams>, JobError> {
        Ok(self.isolated_world().await?.map(|world| evaluate(expression, world)))
    }

    /// Runs a script, an expression, in the isolated world of the document and returns its value, or that of its
    /// promise. `None` if it has no value or the document is gone.
    pub(super) async fn evaluate_isolated(&mut self, expression: &str) -> Result<Option<Value>, JobError> {
        // The world of the document may be another one meanwhile.
        for _ in 0..2 {
            let Some(mut evaluate) = self.script(expression).await? else { continue };
            evaluate.await_promise = Some(true);
            match self.reply(self.session.call(&evaluate)).await? {
                Some(evaluated) => return Ok(evaluated.result.value),
                None => self.document.world = None,
            }
        }
        Ok(None)
    }

    /// Runs a script as [`Self::evaluate_isolated`] does, in the document and in those of its frames, and returns the values.
    pub(super) async fn evaluate_in_frames(&mut self, expression: &str) -> Result<Vec<Value>, JobError> {
        let tree = self.wait_for_page(self.session.call(&GetFrameTreeParams {})).await?.frame_tree;
        let mut found = vec![self.evaluate_isolated(expression).await?];
        for frame in descendants(&tree) {
            // A frame that has just navigated has no world.
            let Some(world) = self.world_of_frame(frame.inner()).await? else { continue };
            let evaluate = evaluate(expression, world);
            let evaluated = self.reply(self.session.call(&evaluate)).await?;
            found.push(evaluated.and_then(|evaluated| evaluated.result.value));
        }
        Ok(found.into_iter().flatten().collect())
    }
}

/// Whether a script, an expression, is true in the isolated world of the page's document or in that of one of its frames.
pub(super) async fn is_true_in_a_frame(session: &Session, expression: &str) -> Result<bool, JobError> {
    let tree = session.call(&GetFrameTreeParams {}).await?.frame_tree;
    for frame in std::iter::once(&tree.frame.id).chain(descendants(&tree)) {
        let value = async {
            let world = session.call(&create_world(frame.inner())).await?.execution_context_id;
            Ok::<_, CdpError>(session.call(&evaluate(expression, world)).await?.result.value)
        };
        // Refused if the frame has just navigated.
        if unless_refused(value.await)?.flatten() == Some(Value::Bool(true)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The frames within a page.
fn descendants(tree: &FrameTree) -> Vec<&FrameId> {
    let children = tree.child_frames.iter().flatten();
    children.flat_map(|child| std::iter::once(&child.frame.id).chain(descendants(child))).collect()
}

/// Characters of the page's message that a refusal has.
const MAX_MESSAGE_CHARS: usize = 300;
/// Makes an object of a function that evaluates the expression.
const KEEP: &str = concat!("(", include_str!("page_expression.js"), ")");
/// Evaluates the expression of an object made by [`object`], unless its promise is still pending.
const CHECK: &str = include_str!("check_expression.js");

/// The expression has the names and the `this` of the page's scripts. Between `do` and `while` there is one statement, whose
/// semicolon may be missing; after a comma it goes on with an expression.
fn object(expression: &Expression) -> String {
    format!("{KEEP}(async () => {{ do return void 0,\n{}\nwhile (0) }})", expression.as_str())
}

/// The error of a text that is no expression: if it can, one that names what is in the text or that it ends too early.
async fn syntax_error(
    rendering: &Rendering<'_>,
    expression: &Expression,
    details: ExceptionDetails,
) -> Result<JobError, JobError> {
    let alone = EvaluateParams::new(format!("async () => (\n{}\n)", expression.as_str()));
    let evaluated = rendering.reply(rendering.session.call(&alone)).await?;
    let better = evaluated.and_then(|evaluated| evaluated.exception_details);
    Ok(failed(&thrown(better.unwrap_or(details))))
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
    let document = rendering.load_state().document.number;
    let known = rendering.document.function.take().filter(|(known, _)| *known == document);
    let function = if let Some((_, function)) = known {
        function
    } else {
        let evaluate = EvaluateParams::new(object(expression));
        let evaluated = rendering.reply(rendering.session.call(&evaluate)).await?;
        let Some(evaluated) = evaluated else { return Ok(false) };
        if let Some(details) = evaluated.exception_details {
            return Err(syntax_error(rendering, expression, details).await?);
        }
        evaluated.result.object_id.ok_or(JobError::NoFile)?
    };
    let check = CallFunctionOnParams {
        object_id: Some(function.clone()),
        await_promise: Some(true),
        return_by_value: Some(true),
        ..CallFunctionOnParams::new(CHECK)
    };
    let checked = rendering.reply(rendering.session.call(&check)).await?;
    let Some(checked) = checked else { return Ok(false) };
    rendering.document.function = Some((document, function));
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
    let message: String = line.chars().filter(|it| !it.is_control()).take(MAX_MESSAGE_CHARS).collect();
    JobError::Refused(Refusal::FunctionFailed { message: message.into(), first_error: FirstError::default() })
}
