//! The structure tree of a file as it is read and changed.

use std::collections::{HashMap, HashSet};

use lopdf::{Dictionary, Document, Object, ObjectId, decode_text_string, dictionary};

use super::texts::Mark;

/// More elements than there are between what is in a cell of a table and the table.
const MAX_DEPTH: usize = 64;

/// An element in the order of reading.
#[derive(Debug)]
pub(super) struct Element {
    pub(super) id: ObjectId,
    pub(super) kind: Vec<u8>,
    /// That around it; `None` for the root.
    pub(super) parent: Option<usize>,
    pub(super) marks: Vec<Mark>,
}

pub(super) fn root(document: &Document) -> lopdf::Result<ObjectId> {
    document.catalog()?.get(b"StructTreeRoot").and_then(Object::as_reference)
}

/// The elements in the order of reading.
pub(super) fn elements(document: &Document, root: ObjectId) -> Vec<Element> {
    let mut elements: Vec<Element> = Vec::new();
    let mut seen = HashSet::new();
    let mut left = vec![(root, None)];
    while let Some((id, parent)) = left.pop() {
        let Ok(dictionary) = document.get_dictionary(id) else { continue };
        if !seen.insert(id) {
            continue;
        }
        let mut parent = parent;
        let kids = kids(document, dictionary);
        if let Ok(kind) = dictionary.get(b"S").and_then(Object::as_name) {
            let marks = kids.iter().filter_map(|kid| mark(dictionary, kid)).collect();
            elements.push(Element { id, kind: kind.to_vec(), parent, marks });
            parent = Some(elements.len() - 1);
        }
        let kids = kids.into_iter().rev().filter_map(|kid| kid.as_reference().ok());
        left.extend(kids.map(|kid| (kid, parent)));
    }
    elements
}

/// The nearest of the elements around one for which a condition holds.
pub(super) fn around(
    elements: &[Element],
    element: &Element,
    is_wanted: impl Fn(&Element) -> bool,
) -> Option<usize> {
    std::iter::successors(element.parent, |parent| elements[*parent].parent)
        .take(MAX_DEPTH)
        .find(|at| is_wanted(&elements[*at]))
}

/// The mark to which an element refers.
pub(super) fn mark(element: &Dictionary, kid: &Object) -> Option<Mark> {
    let page = element.get(b"Pg").and_then(Object::as_reference);
    match kid {
        Object::Integer(number) => Some((page.ok()?, *number)),
        Object::Dictionary(reference) => {
            let number = reference.get(b"MCID").and_then(Object::as_i64).ok()?;
            let stream = ["Stm", "Pg"].iter().find_map(|key| reference.get(key.as_bytes()).ok());
            Some((stream.and_then(|it| it.as_reference().ok()).or(page.ok())?, number))
        }
        _ => None,
    }
}

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

/// The text that an element has in place of its content.
pub(super) fn own_text(document: &Document, element: ObjectId) -> Option<String> {
    let element = document.get_dictionary(element).ok()?;
    let texts = ["Alt", "ActualText"].iter().filter_map(|key| element.get(key.as_bytes()).ok());
    texts.filter_map(|text| decode_text_string(text).ok()).find(|text| !text.trim().is_empty())
}

/// Adds an element, of which its parent does not know yet.
pub(super) fn new_element(
    document: &mut Document,
    kind: &str,
    parent: ObjectId,
    kids: Vec<Object>,
) -> ObjectId {
    document.add_object(dictionary! { "Type" => "StructElem", "S" => kind, "P" => parent, "K" => kids })
}

/// Puts another element in the place of one, or none.
pub(super) fn replace(
    document: &mut Document,
    parent: ObjectId,
    element: ObjectId,
    other: Option<ObjectId>,
) -> lopdf::Result<()> {
    let is_element = |kid: &Object| kid.as_reference().is_ok_and(|id| id == element);
    let kids = kids(document, document.get_dictionary(parent)?).into_iter();
    let kids: Vec<Object> =
        kids.filter_map(|kid| if is_element(&kid) { other.map(Object::from) } else { Some(kid) }).collect();
    document.get_dictionary_mut(parent)?.set("K", kids);
    Ok(())
}

/// New elements beside others.
#[derive(Debug, Default)]
pub(super) struct Insertions {
    before: HashMap<ObjectId, Vec<ObjectId>>,
    after: HashMap<ObjectId, Vec<ObjectId>>,
    parents: HashSet<ObjectId>,
}

impl Insertions {
    pub(super) fn add(&mut self, parent: ObjectId, beside: ObjectId, is_after: bool, element: ObjectId) {
        let side = if is_after { &mut self.after } else { &mut self.before };
        side.entry(beside).or_default().push(element);
        self.parents.insert(parent);
    }

    pub(super) fn apply(self, document: &mut Document) -> lopdf::Result<()> {
        for parent in self.parents {
            let mut all = Vec::new();
            for kid in kids(document, document.get_dictionary(parent)?) {
                let id = kid.as_reference().ok();
                let beside = |side: &HashMap<ObjectId, Vec<ObjectId>>| {
                    id.and_then(|id| side.get(&id)).into_iter().flatten().map(|it| (*it).into()).collect()
                };
                let (before, after): (Vec<Object>, Vec<Object>) = (beside(&self.before), beside(&self.after));
                all.extend(before);
                all.push(kid);
                all.extend(after);
            }
            document.get_dictionary_mut(parent)?.set("K", all);
        }
        Ok(())
    }
}
