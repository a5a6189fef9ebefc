//! The elements of a structure tree.

use lopdf::{Dictionary, Document, Object};

/// Elements, and references to content.
pub(super) fn kids(document: &Document, element: &Dictionary) -> Vec<Object> {
    match element.get(b"K") {
        Ok(Object::Array(kids)) => kids.clone(),
        Ok(Object::Reference(id)) => match document.get_object(*id) {
            Ok(Object::Array(kids)) => kids.clone(),
            _ => vec![Object::Reference(*id)],
        },
        Ok(kid) => vec![kid.clone()],
        Err(_) => Vec::new(),
    }
}

/// The type of an element; `None` for a reference to content.
pub(super) fn kind<'a>(document: &'a Document, kid: &Object) -> Option<&'a [u8]> {
    let kid = kid.as_reference().and_then(|id| document.get_dictionary(id)).ok()?;
    kid.get(b"S").and_then(Object::as_name).ok()
}
