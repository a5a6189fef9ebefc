//! The check of a template when it is saved, and before it is parsed.
//!
//! Invariant: the parser recurses no deeper than [`MAX_OPERATORS`] and [`MAX_ELIFS`] allow, which 1 MiB of stack suffices for. A
//! stack that overflows ends the process. Blocks, brackets and parentheses within each other are limited by the parser.

use std::collections::BTreeSet;

use minijinja::{
    machinery::{Token, tokenize},
    syntax::SyntaxConfig,
};

use crate::{environment::environment, error::SyntaxError};

/// Maximum of operators of one expression, with those around it: each may be a level of its tree.
const MAX_OPERATORS: usize = 200;
/// Maximum of tokens within tags. Parsing takes time and memory for each.
const MAX_TOKENS: usize = 100_000;
/// Maximum of `elif` of one `if`, with those of the blocks around it.
const MAX_ELIFS: usize = 100;

/// Checks a template without filling it. Returns the names of the values that it uses.
///
/// # Errors
/// The first error of its syntax.
pub fn check(template: &str) -> Result<BTreeSet<String>, SyntaxError> {
    limit_tokens(template)?;
    let environment = environment();
    let template = environment.template_from_str(template).map_err(|error| SyntaxError::from(&error))?;
    let is_function = |name: &str| environment.globals().any(|(global, _)| global == name);
    Ok(template.undeclared_variables(false).into_iter().filter(|name| !is_function(name)).collect())
}

/// Counts what the parser would recurse on.
pub(crate) fn limit_tokens(template: &str) -> Result<(), SyntaxError> {
    let mut depth = Depth::default();
    for token in tokenize(template, false, SyntaxConfig::default()) {
        let (token, span) = token.map_err(|error| SyntaxError::from(&error))?;
        let error = |message: String| SyntaxError { line: span.start_line.into(), message };
        if let Token::Ident("autoescape") = token
            && depth.is_tag_name
        {
            return Err(error("unknown statement autoescape".to_owned()));
        }
        depth.add(&token);
        if depth.tokens > MAX_TOKENS {
            return Err(error(format!(
                "the tags of a template have at most {MAX_TOKENS} names, signs and values"
            )));
        }
        if depth.operators > MAX_OPERATORS {
            return Err(error(format!("an expression has at most {MAX_OPERATORS} operators")));
        }
        if depth.open_elifs > MAX_ELIFS {
            return Err(error(format!("an \"if\" has at most {MAX_ELIFS} \"elif\"")));
        }
    }
    Ok(())
}

#[derive(Default)]
struct Depth {
    tokens: usize,
    /// Operators of the expression, with those around it.
    operators: usize,
    /// The part of `operators` in each bracket that is open, after the whole tag's.
    brackets: Vec<usize>,
    /// The number of `elif` of all `if` that are open.
    open_elifs: usize,
    /// The part of `open_elifs` of each `if`.
    elifs: Vec<usize>,
    /// Whether the next token is the name of a statement.
    is_tag_name: bool,
}

impl Depth {
    fn add(&mut self, token: &Token<'_>) {
        let is_tag_name = std::mem::replace(&mut self.is_tag_name, matches!(token, Token::BlockStart));
        self.tokens += 1;
        match token {
            Token::TemplateData(_)
            | Token::VariableStart
            | Token::VariableEnd
            | Token::BlockStart
            | Token::BlockEnd => {
                self.brackets.clear();
                self.operators = 0;
            }
            Token::Ident(name) if is_tag_name => self.add_statement(name),
            Token::BracketOpen | Token::ParenOpen | Token::BraceOpen => {
                self.count();
                self.brackets.push(0);
            }
            Token::BracketClose | Token::ParenClose | Token::BraceClose => {
                self.operators -= self.brackets.pop().unwrap_or_default();
            }
            // What follows is an expression beside the one before.
            Token::Comma => {
                let ended = self.brackets.last_mut().map(std::mem::take);
                self.operators -= ended.unwrap_or_default();
            }
            Token::Ident("and" | "or" | "not" | "in" | "is" | "if" | "else") => self.count(),
            Token::Ident(_)
            | Token::Str(_)
            | Token::String(_)
            | Token::Int(_)
            | Token::Int128(_)
            | Token::Float(_)
            | Token::Colon
            | Token::Assign => {}
            _ => self.count(),
        }
    }

    fn add_statement(&mut self, name: &str) {
        match (name, self.elifs.last_mut()) {
            ("if", _) => self.elifs.push(0),
            ("elif", Some(count)) => {
                *count += 1;
                self.open_elifs += 1;
            }
            ("endif", _) => self.open_elifs -= self.elifs.pop().unwrap_or_default(),
            _ => {}
        }
    }

    fn count(&mut self) {
        self.operators += 1;
        match self.brackets.last_mut() {
            Some(count) => *count += 1,
            None => self.brackets.push(1),
        }
    }
}
