//! A reader of XML 1.0 with namespaces, without a DTD.
//!
//! Invariant: an element costs time in proportion to its own text, whatever is around it. What is looked up for an element, or
//! compared with it, is limited: elements around it, declared namespaces, and its attributes.

use std::{borrow::Cow, mem::take};

use xmlparser::{ElementEnd, StrSpan, Token, Tokenizer, XmlCharExt as _};

pub(super) const MAX_ELEMENTS: usize = 50_000;
/// Elements inside each other.
pub(super) const MAX_NESTING: usize = 16;
/// Namespaces that an element and those around it declare.
pub(super) const MAX_NAMESPACES: usize = 16;
/// Attributes of one element.
pub(super) const MAX_ATTRIBUTES: usize = 8;

const XML: &str = "http://www.w3.org/XML/1998/namespace";
const XMLNS: &str = "http://www.w3.org/2000/xmlns/";

/// Why a text cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum XmlError {
    /// Line and column, and what is wrong there.
    #[error("{0}")]
    Syntax(String),
    #[error("the text is declared as another version or encoding")]
    Declaration,
    #[error("the text has a DTD")]
    Dtd,
    #[error("the text is over a limit")]
    Complexity,
}

impl From<xmlparser::Error> for XmlError {
    fn from(error: xmlparser::Error) -> Self {
        match error {
            xmlparser::Error::InvalidDoctype(..) => Self::Dtd,
            error => Self::Syntax(format!("{} {error}", error.pos())),
        }
    }
}

/// What is in the text, in its order. Comments and processing instructions are left out.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum XmlEvent<'r, 't> {
    Start {
        /// The address of the element's namespace; empty for none.
        namespace: &'r str,
        name: &'t str,
    },
    End,
    Text(Cow<'t, str>),
}

pub(super) struct XmlReader<'t> {
    tokens: Tokenizer<'t>,
    open: Vec<OpenElement<'t>>,
    /// Those of the open elements.
    namespaces: Vec<Namespace<'t>>,
    elements: usize,
    /// The innermost open element is one that has no end tag.
    is_empty: bool,
}

struct OpenElement<'t> {
    prefix: &'t str,
    name: &'t str,
    /// Namespaces that are declared around it.
    outer: usize,
}

struct Namespace<'t> {
    prefix: &'t str,
    address: Cow<'t, str>,
    /// The index of the first one with this address.
    id: usize,
}

impl<'t> XmlReader<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        let (open, namespaces) = (Vec::new(), Vec::new());
        Self { tokens: text.into(), open, namespaces, elements: 0, is_empty: false }
    }

    /// The next event; `None` after the end of the root.
    pub(super) fn next(&mut self) -> Result<Option<XmlEvent<'_, 't>>, XmlError> {
        if take(&mut self.is_empty) {
            return Ok(self.close());
        }
        while let Some(token) = self.tokens.next() {
            let token = token?;
            let at = token.span().start();
            match token {
                Token::Declaration { version, encoding, .. } => {
                    let is_utf8 =
                        encoding.is_none_or(|encoding| encoding.as_str().eq_ignore_ascii_case("UTF-8"));
                    if version.as_str() != "1.0" || !is_utf8 {
                        return Err(XmlError::Declaration);
                    }
                }
                Token::DtdStart { .. } | Token::EmptyDtd { .. } => return Err(XmlError::Dtd),
                Token::ElementStart { prefix, local, .. } => {
                    let (prefix, name) = self.name(prefix, local, at + "<".len())?;
                    return self.start(prefix, name, at).map(Some);
                }
                Token::ElementEnd { end: ElementEnd::Close(prefix, local), .. } => {
                    let name = self.name(prefix, local, at + "</".len())?;
                    if self.open.last().is_none_or(|it| (it.prefix, it.name) != name) {
                        return Err(self.syntax(at, "another end tag is expected"));
                    }
                    return Ok(self.close());
                }
                Token::Text { text } => {
                    return self.unescaped(text.as_str(), at).map(XmlEvent::Text).map(Some);
                }
                Token::Cdata { text, .. } => return Ok(Some(XmlEvent::Text(text.as_str().into()))),
                Token::ProcessingInstruction { target, .. }
                    if target.as_str().eq_ignore_ascii_case("xml") =>
                {
                    return Err(self.syntax(at, "a declaration is expected at the beginning only"));
                }
                _ => {}
            }
        }
        if self.elements == 0 || !self.open.is_empty() {
            return Err(self.syntax(usize::MAX, "the text ends before its root does"));
        }
        Ok(None)
    }

    fn start(&mut self, prefix: &'t str, name: &'t str, at: usize) -> Result<XmlEvent<'_, 't>, XmlError> {
        let outer = self.namespaces.len();
        let mut attributes: Vec<(&str, &str)> = Vec::new();
        self.elements += 1;
        self.is_empty = loop {
            match self.tokens.next() {
                Some(Ok(Token::Attribute { prefix, local, value, span })) => {
                    let value = self.unescaped(value.as_str(), span.start())?;
                    match self.name(prefix, local, span.start())? {
                        ("", "xmlns") => self.declare("", value, outer, span.start())?,
                        ("xmlns", prefix) => self.declare(prefix, value, outer, span.start())?,
                        attribute => attributes.push(attribute),
                    }
                    if attributes.len() > MAX_ATTRIBUTES {
                        return Err(XmlError::Complexity);
                    }
                }
                Some(Ok(Token::ElementEnd { end, .. })) => break end == ElementEnd::Empty,
                Some(Err(error)) => return Err(error.into()),
                Some(Ok(_)) | None => return Err(self.syntax(at, "the tag does not end")),
            }
        };
        if self.elements > MAX_ELEMENTS || self.open.len() == MAX_NESTING {
            return Err(XmlError::Complexity);
        }
        self.open.push(OpenElement { prefix, name, outer });
        let mut known = Vec::with_capacity(attributes.len());
        for (prefix, name) in attributes {
            let namespace = if prefix.is_empty() { None } else { Some(self.namespace(prefix, at)?) };
            let attribute = (namespace.map(|it| it.map(|it| it.id)), name);
            if known.contains(&attribute) {
                return Err(self.syntax(at, "an attribute is repeated"));
            }
            known.push(attribute);
        }
        let namespace = self.namespace(prefix, at)?.map_or("", |namespace| &namespace.address);
        Ok(XmlEvent::Start { namespace, name })
    }

    fn close(&mut self) -> Option<XmlEvent<'static, 't>> {
        self.namespaces.truncate(self.open.pop()?.outer);
        Some(XmlEvent::End)
    }

    /// Declares a namespace of an element around which `outer` ones are declared.
    fn declare(
        &mut self,
        prefix: &'t str,
        address: Cow<'t, str>,
        outer: usize,
        at: usize,
    ) -> Result<(), XmlError> {
        let is_reserved = prefix == "xmlns" || address == XMLNS || (prefix == "xml") != (address == XML);
        if is_reserved || (address.is_empty() && !prefix.is_empty()) {
            return Err(self.syntax(at, "this namespace cannot be declared"));
        }
        if self.namespaces[outer..].iter().any(|it| it.prefix == prefix) {
            return Err(self.syntax(at, "an attribute is repeated"));
        }
        if self.namespaces.len() == MAX_NAMESPACES {
            return Err(XmlError::Complexity);
        }
        let id = self.namespaces.iter().position(|it| it.address == address);
        self.namespaces.push(Namespace { prefix, address, id: id.unwrap_or(self.namespaces.len()) });
        Ok(())
    }

    /// The namespace of a prefix; `None` if it is that of XML itself, or none.
    fn namespace(&self, prefix: &str, at: usize) -> Result<Option<&Namespace<'t>>, XmlError> {
        match self.namespaces.iter().rfind(|it| it.prefix == prefix) {
            None if !["", "xml"].contains(&prefix) => Err(self.syntax(at, "a prefix has no namespace")),
            found => Ok(found),
        }
    }

    /// Prefix and local part of a name that begins at this place.
    fn name(
        &self,
        prefix: StrSpan<'t>,
        local: StrSpan<'t>,
        at: usize,
    ) -> Result<(&'t str, &'t str), XmlError> {
        if prefix.is_empty() && local.start() != at {
            return Err(self.syntax(at, "a name begins with a colon"));
        }
        Ok((prefix.as_str(), local.as_str()))
    }

    /// A text with the characters that its references stand for.
    fn unescaped(&self, text: &'t str, at: usize) -> Result<Cow<'t, str>, XmlError> {
        let mut parts = text.split('&');
        let first = parts.next().unwrap_or_default();
        if first.len() == text.len() {
            return Ok(text.into());
        }
        let mut unescaped = first.to_owned();
        for part in parts {
            let reference = part.split_once(';').and_then(|(name, rest)| Some((character(name)?, rest)));
            let (character, rest) =
                reference.ok_or_else(|| self.syntax(at, "\"&\" begins no known reference"))?;
            unescaped.push(character);
            unescaped.push_str(rest);
        }
        Ok(unescaped.into())
    }

    fn syntax(&self, at: usize, what: &str) -> XmlError {
        XmlError::Syntax(format!("{} {what}", self.tokens.stream().gen_text_pos_from(at)))
    }
}

/// The character that a reference stands for.
fn character(name: &str) -> Option<char> {
    let number = |digits: &str, radix| {
        let are_digits = digits.bytes().all(|byte| byte.is_ascii_alphanumeric());
        u32::from_str_radix(digits, radix).ok().filter(|_| are_digits)
    };
    let code = match name {
        "amp" => return Some('&'),
        "lt" => return Some('<'),
        "gt" => return Some('>'),
        "quot" => return Some('"'),
        "apos" => return Some('\''),
        _ => match name.strip_prefix('#')?.strip_prefix('x') {
            Some(digits) => number(digits, 16),
            None => number(&name[1..], 10),
        },
    };
    char::from_u32(code?).filter(char::is_xml_char)
}

#[cfg(test)]
mod tests;
