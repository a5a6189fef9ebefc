//! Scripts of the farm in the document of a job.
//!
//! Invariant: the page cannot change what they do. They run in an isolated world, whose prototypes the scripts of the page
//! do not share, and take the members of a document and of its elements from those prototypes: elements of the markup hide
//! members of the document that have their `id` or `name`, variables of the window that are not defined, and the members of
//! the form to which they belong.

use chromiumoxide_cdp::cdp::{
    browser_protocol::page::{AddScriptToEvaluateOnNewDocumentParams, CreateIsolatedWorldParams},
    js_protocol::runtime::{EvaluateParams, ExecutionContextId},
};

/// Name of the isolated world.
const WORLD: &str = "platen";

/// Names that every script may use:
/// - `as(Interface, object)` has the members of an interface as they are on the object.
/// - `document` has those of the document; where a node is needed, it is `window.document`.
/// - `own` keeps what later scripts of the farm need in this document. Elements are named by strings, never by symbols.
const PRELUDE: &str = "const as = ({ prototype }, object) => new Proxy(prototype, {\
    get: (_, name) => { const member = Reflect.get(prototype, name, object);\
        return typeof member === 'function' ? member.bind(object) : member },\
    set: (_, name, value) => Reflect.set(prototype, name, value, object) }),\
    document = as(Document, window.document), own = window[Symbol.for('platen')] ??= {};";

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
    format!("(() => {{ {PRELUDE} return ({expression}) }})()")
}
