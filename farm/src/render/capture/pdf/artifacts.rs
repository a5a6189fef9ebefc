//! Content that belongs to no element of the structure tree, such as borders and shadows, as artifacts.
//!
//! The browser draws the content of a page in forms, some of which have tags of their own.

use std::collections::{HashMap, HashSet};

use lopdf::{
    Dictionary, Document, Object, ObjectId, Stream,
    content::{Content, Operation},
    dictionary,
};

use super::texts::{MAX_FORM_DEPTH, Mark, form_resources, property};
use crate::error::JobError;

/// What differs from the tags of the browser.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// The marks and the elements of texts that have none, by their streams and their numbers in these.
    pub(super) placed: HashMap<(ObjectId, usize), (i64, ObjectId)>,
    /// Marks that are artifacts.
    pub(super) removed: HashSet<Mark>,
}

/// Marks the content of all pages that has no tag.
pub(super) fn mark(document: &mut Document, changes: &Changes) -> Result<(), JobError> {
    let mut seen = HashSet::new();
    let mut forms = Vec::new();
    for page in document.page_iter().collect::<Vec<_>>() {
        forms.extend(mark_stream(document, page, &mut seen, changes)?);
    }
    while let Some(form) = forms.pop() {
        forms.extend(mark_stream(document, form, &mut seen, changes)?);
    }
    Ok(())
}

/// Marks the content of a page or a form, and returns the forms with tags that it draws first.
fn mark_stream(
    document: &mut Document,
    owner: ObjectId,
    seen: &mut HashSet<ObjectId>,
    changes: &Changes,
) -> Result<Vec<ObjectId>, JobError> {
    let (resources, content) = match document.get_object(owner)? {
        Object::Stream(form) => (form_resources(document, form), form.get_plain_content()?),
        _ => (document.get_page_resources(owner)?.0, document.get_page_content(owner)),
    };
    let marked = marked(document, (owner, &content), &x_objects(document, resources), seen, changes)?;
    add_copies(document, owner, marked.copies)?;
    if let Some(content) = marked.content {
        if let Object::Stream(form) = document.get_object_mut(owner)? {
            form.set_plain_content(content);
            form.compress()?;
        } else {
            document.change_page_content(owner, content)?;
        }
    }
    Ok(marked.forms)
}

/// A stream with its marks.
struct Marked {
    /// `None` if everything had one.
    content: Option<Vec<u8>>,
    /// The forms with tags that it draws first.
    forms: Vec<ObjectId>,
    /// Those that were drawn before, and the names of their copies without tags.
    copies: Vec<(Vec<u8>, ObjectId)>,
}

fn marked(
    document: &Document,
    (stream, content): (ObjectId, &[u8]),
    drawn: &HashMap<&[u8], ObjectId>,
    seen: &mut HashSet<ObjectId>,
    changes: &Changes,
) -> Result<Marked, JobError> {
    let mut marked = Marked { content: None, forms: Vec::new(), copies: Vec::new() };
    let (mut result, mut has_changed) = (Vec::new(), false);
    // The number of open tags, and where the path or the text begins.
    let (mut tags, mut start) = (0_usize, None);
    // The number of the text, and whether it is open.
    let (mut text, mut in_text) = (0, false);
    for mut operation in Content::decode(content)?.operations {
        let (mut is_artifact, ends_text) = (false, operation.operator == "ET");
        match operation.operator.as_str() {
            // Sequences in a text are no tags.
            "BDC" | "BMC" if !in_text => {
                (tags, start) = (tags + 1, None);
                let number = property(&operation.operands, b"MCID").and_then(|it| it.as_i64().ok());
                if number.is_some_and(|number| changes.removed.contains(&(stream, number))) {
                    (operation, has_changed) = (artifact(), true);
                }
            }
            "EMC" if !in_text => (tags, start) = (tags.saturating_sub(1), None),
            "BT" | "m" | "re" => {
                _ = start.get_or_insert(result.len());
                in_text = operation.operator == "BT";
            }
            "n" => start = None,
            "ET" => (is_artifact, in_text) = (tags == 0, false),
            "f" | "F" | "f*" | "B" | "B*" | "b" | "b*" | "S" | "s" | "sh" | "BI" => is_artifact = tags == 0,
            "Do" if tags == 0 => {
                is_artifact = draws_artifact(document, &mut operation, drawn, seen, &mut marked);
            }
            _ => {}
        }
        result.push(operation);
        if is_artifact {
            let start = start.take().unwrap_or(result.len() - 1);
            let placed = changes.placed.get(&(stream, text)).filter(|_| ends_text);
            result.insert(start, placed.map_or_else(artifact, |(number, _)| tag(*number)));
            result.push(Operation::new("EMC", Vec::new()));
            has_changed = true;
        }
        text += usize::from(ends_text);
    }
    marked.content = has_changed.then(|| Content { operations: result }.encode()).transpose()?;
    Ok(marked)
}

/// Whether a `Do` outside of tags draws an artifact. A form with tags is none; drawn again, it is a copy without them.
fn draws_artifact(
    document: &Document,
    operation: &mut Operation,
    drawn: &HashMap<&[u8], ObjectId>,
    seen: &mut HashSet<ObjectId>,
    marked: &mut Marked,
) -> bool {
    let name = operation.operands.first().and_then(|name| name.as_name().ok()).unwrap_or_default();
    let form = drawn.get(name).copied().filter(|&form| is_tagged(document, form, 0));
    let Some(form) = form else { return true };
    if seen.insert(form) {
        marked.forms.push(form);
        return false;
    }
    // A mask draws its content twice.
    let copy = [name, b"Copy"].concat();
    operation.operands = vec![Object::Name(copy.clone())];
    marked.copies.push((copy, form));
    true
}

fn artifact() -> Operation {
    Operation::new("BMC", vec![Object::Name(b"Artifact".to_vec())])
}

fn tag(number: i64) -> Operation {
    let properties = dictionary! { "MCID" => number };
    Operation::new("BDC", vec![Object::Name(b"Span".to_vec()), properties.into()])
}

/// Adds copies of forms without their tags to what a page or a form can draw.
fn add_copies(
    document: &mut Document,
    owner: ObjectId,
    copies: Vec<(Vec<u8>, ObjectId)>,
) -> Result<(), JobError> {
    for (name, form) in copies {
        let mut copy = document.get_object(form)?.as_stream()?.clone();
        let mut drawn = x_objects(document, form_resources(document, &copy)).into_values();
        if drawn.any(|form| is_tagged(document, form, 0)) {
            return Err(JobError::standard_not_met("an effect in a mask prints a text twice"));
        }
        remove_tags(&mut copy)?;
        let copy = document.add_object(copy);
        let owner = match document.get_object_mut(owner)? {
            Object::Stream(form) => &mut form.dict,
            page => page.as_dict_mut()?,
        };
        let drawn = owner.get_mut(b"Resources")?.as_dict_mut()?.get_mut(b"XObject")?.as_dict_mut()?;
        drawn.set(name, copy);
    }
    Ok(())
}

/// Removes all tags of a form.
pub(super) fn remove_tags(form: &mut Stream) -> lopdf::Result<()> {
    form.dict.remove(b"StructParents");
    let mut content = Content::decode(&form.get_plain_content()?)?;
    content.operations.retain(|it| !matches!(it.operator.as_str(), "BDC" | "BMC" | "EMC"));
    form.set_plain_content(content.encode()?);
    form.compress()
}

/// Whether a form has tags, or draws a form that has.
fn is_tagged(document: &Document, form: ObjectId, depth: usize) -> bool {
    let Ok(form) = document.get_object(form).and_then(Object::as_stream) else { return false };
    form.dict.has(b"StructParents")
        || depth < MAX_FORM_DEPTH
            && x_objects(document, form_resources(document, form))
                .into_values()
                .any(|form| is_tagged(document, form, depth + 1))
}

/// The images and forms that a stream can draw.
fn x_objects<'a>(document: &'a Document, resources: Option<&'a Dictionary>) -> HashMap<&'a [u8], ObjectId> {
    let drawn = resources.and_then(|it| it.get_deref(b"XObject", document).and_then(Object::as_dict).ok());
    let drawn = drawn.into_iter().flatten();
    drawn.filter_map(|(name, id)| Some((name.as_slice(), id.as_reference().ok()?))).collect()
}
