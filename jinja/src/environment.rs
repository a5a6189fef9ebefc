//! What a template may use.

use minijinja::{AutoEscape, Environment, UndefinedBehavior};

/// Levels of calls and blocks within each other; a macro is several.
const MAX_RECURSION: usize = 200;

/// An environment without values.
pub(crate) fn environment<'t>() -> Environment<'t> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::SemiStrict);
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.set_recursion_limit(MAX_RECURSION);
    environment.set_debug(true);
    // It shows all values.
    environment.remove_global("debug");
    // Its time grows with the square of the levels of a value, and is counted afterwards.
    environment.remove_filter("pprint");
    environment
}
