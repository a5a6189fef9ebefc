//! The structure tree of a tagged file: with the same ids for equal jobs, and as PDF/UA-1 (ISO 14289-1) asks for it.

use std::collections::{HashMap, HashSet};

use lopdf::{Dictionary, Document, Object, ObjectId, decode_text_string, dictionary};
use platen_shared::locale::Locale;

use super::{
    artifacts::{self, Changes},
    cells, links,
    origins::Reading,
    parents::ParentTree,
    repeated,
    texts::Mark,
    tree::{self, Element, kids, kind},
    untagged,
};
use crate::error::JobError;

/// Types of the browser that PDF 1.7 does not know, and what they are there.
const ROLES: [(&str, &str); 8] = [
    ("Em", "Span"),
    ("Strong", "Span"),
    ("Sub", "Span"),
    ("Title", "P"),
    ("Aside", "Div"),
    ("FENote", "Div"),
    ("DocumentFragment", "Div"),
    ("Artifact", "NonStruct"),
];

/// Repairs the tree, and refuses what the page must change. Returns how the tags of the content change.
pub(super) fn repair(document: &mut Document, reading: &Reading) -> Result<Changes, JobError> {
    let texts = &reading.content.texts;
    let no_text = || JobError::standard_not_met("the page has no text, and no image with one");
    let root = tree::root(document).map_err(|_| no_text())?;
    let roles: Dictionary =
        ROLES.iter().map(|(role, known)| (*role, Object::Name(known.as_bytes().to_vec()))).collect();
    document.get_dictionary_mut(root)?.set("RoleMap", roles);
    let mut changes = Changes::default();
    let mut parents = ParentTree::read(document, root)?;
    remove_absent(document, &reading.content.marks, &mut parents)?;
    let cleared = cells::clear(document, &reading.content.spaces, &mut parents, &mut changes)?;
    repeated::remove(document, texts, &mut parents, &mut changes)?;
    if let Some(origins) = &reading.origins {
        untagged::place(document, &reading.content, &cleared, origins, &mut parents, &mut changes)?;
    }
    cells::remove_empty(document, |id| cleared.contains_key(&id))?;
    if tree::kids(document, document.get_dictionary(root)?).is_empty() {
        return Err(no_text());
    }
    links::complete(document, texts, &mut parents, &changes)?;
    parents.write(document)?;
    repair_elements(document, root)?;
    Ok(changes)
}

/// Removes marks in what is not drawn, such as a mask.
fn remove_absent(
    document: &mut Document,
    drawn: &HashSet<Mark>,
    parents: &mut ParentTree,
) -> Result<(), JobError> {
    let root = tree::root(document)?;
    let elements = tree::elements(document, root);
    let marks = elements.iter().flat_map(|element| &element.marks);
    let absent: HashSet<Mark> = marks.filter(|mark| !drawn.contains(mark)).copied().collect();
    parents.remove(document, &elements, &absent)?;
    let forms: HashSet<ObjectId> = absent.iter().map(|(stream, _)| *stream).collect();
    for form in forms {
        if drawn.iter().all(|(stream, _)| *stream != form)
            && let Ok(form) = document.get_object_mut(form).and_then(Object::as_stream_mut)
        {
            artifacts::remove_tags(form)?;
        }
    }
    Ok(())
}

fn repair_elements(document: &mut Document, root: ObjectId) -> Result<(), JobError> {
    let elements = tree::elements(document, root);
    check_headings(&elements)?;
    // For each element the nearest one around it that is not without a meaning.
    let mut owners: Vec<Option<usize>> = Vec::with_capacity(elements.len());
    for element in &elements {
        let has_meaning = |parent: &usize| elements[*parent].kind != b"NonStruct";
        owners.push(element.parent.and_then(|at| Some(at).filter(has_meaning).or(owners[at])));
    }
    let owning: HashSet<usize> = owners.iter().copied().flatten().collect();
    let mut divisions = HashSet::new();
    for (index, Element { id, kind, .. }) in elements.iter().enumerate() {
        let element = document.get_dictionary_mut(*id)?;
        let language = element.get(b"Lang").and_then(decode_text_string);
        if language.is_ok_and(|language| Locale::try_from(language).is_err()) {
            element.remove(b"Lang");
        }
        match kind.as_slice() {
            // A <figure> with an image and its caption.
            b"Figure" if tree::own_text(document, *id).is_none() => {
                if !owning.contains(&index) {
                    return Err(JobError::standard_not_met(
                        "each image needs its text: alt of <img>, aria-label of <svg role=img> and <canvas role=img>; \
                         or aria-hidden=\"true\" if it is decoration",
                    ));
                }
                rename(document, *id, "Div")?;
                divisions.insert(index);
            }
            b"Caption" if owners[index].is_none_or(|owner| divisions.contains(&owner)) => {
                let is_block = child_elements(document, *id)?.iter().any(|(_, kind)| *kind != b"NonStruct");
                rename(document, *id, if is_block { "Div" } else { "P" })?;
            }
            // A level that PDF 1.7 does not know.
            b"H" => rename(document, *id, "H6")?,
            b"Table" => check_table(document, *id)?,
            b"L" | b"LI" => complete_list(document, *id, kind == b"LI")?,
            _ => {}
        }
    }
    Ok(())
}

fn rename(document: &mut Document, element: ObjectId, kind: &str) -> lopdf::Result<()> {
    document.get_dictionary_mut(element)?.set("S", Object::Name(kind.as_bytes().to_vec()));
    Ok(())
}

/// ISO 14289-1, 7.4.2.
fn check_headings(elements: &[Element]) -> Result<(), JobError> {
    let mut last = 0;
    for element in elements {
        let level = match element.kind[..] {
            [b'H', level @ b'1'..=b'6'] => level - b'0',
            // One of aria-level="7" or more.
            [b'H'] => 7,
            _ => continue,
        };
        if level > last + 1 {
            return Err(JobError::standard_not_met(
                "the first heading is a <h1>, and the next ones skip no level",
            ));
        }
        last = level;
    }
    Ok(())
}

/// Moves what is in a list and no item into an item, and what is beside the label of an item into a body (ISO 32000-1,
/// table 336).
fn complete_list(document: &mut Document, id: ObjectId, is_item: bool) -> lopdf::Result<()> {
    let known: &[&[u8]] = if is_item { &[b"Lbl", b"LBody"] } else { &[b"L", b"LI", b"Caption"] };
    let kids = kids(document, document.get_dictionary(id)?);
    let is_moved = |kid: &Object| kind(document, kid).is_some_and(|kind| !known.contains(&kind));
    if !kids.iter().any(is_moved) {
        return Ok(());
    }
    let kids = if is_item {
        let (moved, mut kept): (Vec<_>, Vec<_>) = kids.into_iter().partition(is_moved);
        kept.push(wrapped(document, id, "LBody", moved)?);
        kept
    } else {
        let moved: Vec<_> = kids.iter().map(is_moved).collect();
        let mut items = Vec::new();
        for (kid, is_moved) in kids.into_iter().zip(moved) {
            items.push(if is_moved {
                let body = wrapped(document, id, "LBody", vec![kid])?;
                wrapped(document, id, "LI", vec![body])?
            } else {
                kid
            });
        }
        items
    };
    document.get_dictionary_mut(id)?.set("K", kids);
    Ok(())
}

/// A new element around others.
fn wrapped(
    document: &mut Document,
    parent: ObjectId,
    kind: &str,
    kids: Vec<Object>,
) -> lopdf::Result<Object> {
    let element = tree::new_element(document, kind, parent, kids.clone());
    for kid in kids {
        document.get_dictionary_mut(kid.as_reference()?)?.set("P", element);
    }
    Ok(element.into())
}

/// Refuses a table in which something is no cell, or whose rows have different numbers of columns (ISO 14289-1, 7.5).
fn check_table(document: &Document, table: ObjectId) -> Result<(), JobError> {
    let mut rows = Vec::new();
    for (id, kind) in child_elements(document, table)? {
        match kind {
            b"TR" => rows.push(id),
            b"THead" | b"TBody" | b"TFoot" => {
                let group = child_elements(document, id)?;
                if group.iter().any(|(_, kind)| *kind != b"TR") {
                    return Err(JobError::standard_not_met(ONLY_CELLS));
                }
                rows.extend(group.into_iter().map(|(id, _)| id));
            }
            b"Caption" => {}
            _ => return Err(JobError::standard_not_met(ONLY_CELLS)),
        }
    }
    // For each column the rows that its last cell still covers.
    let mut covered: Vec<i64> = Vec::new();
    for (index, row) in rows.into_iter().enumerate() {
        let mut column = 0;
        for (cell, kind) in child_elements(document, row)? {
            if !matches!(kind, b"TH" | b"TD") {
                return Err(JobError::standard_not_met(ONLY_CELLS));
            }
            let cell = document.get_dictionary(cell)?;
            let rows = span(cell, b"RowSpan");
            for _ in 0..span(cell, b"ColSpan") {
                while covered.get(column).is_some_and(|rows| *rows > 0) {
                    column += 1;
                }
                match covered.get_mut(column) {
                    Some(covered) => *covered = rows,
                    None if index == 0 => covered.push(rows),
                    None => return Err(JobError::standard_not_met(SAME_COLUMNS)),
                }
            }
        }
        if covered.contains(&0) {
            return Err(JobError::standard_not_met(SAME_COLUMNS));
        }
        for rows in &mut covered {
            *rows -= 1;
        }
    }
    if covered.iter().any(|rows| *rows > 0) { Err(JobError::standard_not_met(SAME_COLUMNS)) } else { Ok(()) }
}

const ONLY_CELLS: &str = "a table has only rows, and a row only cells";
const SAME_COLUMNS: &str = "all rows of a table have cells for the same number of columns";

/// The elements in another one, with their types.
fn child_elements(document: &Document, parent: ObjectId) -> lopdf::Result<Vec<(ObjectId, &[u8])>> {
    let kids = kids(document, document.get_dictionary(parent)?);
    Ok(kids.iter().filter_map(|kid| Some((kid.as_reference().ok()?, kind(document, kid)?))).collect())
}

/// The rows or columns of a cell.
fn span(cell: &Dictionary, key: &[u8]) -> i64 {
    let attributes = cell.get(b"A").and_then(Object::as_array).map_or(&[][..], Vec::as_slice);
    let mut spans =
        attributes.iter().filter_map(|it| it.as_dict().ok()?.get(key).and_then(Object::as_i64).ok());
    spans.next_back().unwrap_or(1).max(1)
}

/// Numbers the ids of elements, which cells of tables have for their header cells, in the order of the file. Chromium makes
/// them of the ids of its nodes, which differ from page to page.
pub(super) fn renumber_ids(document: &mut Document) -> Result<(), JobError> {
    let mut ids = HashMap::new();
    let mut names = Vec::new();
    for (&element, object) in &document.objects {
        let Ok(id) = object.as_dict().and_then(|it| it.get(b"ID")?.as_str()) else { continue };
        let new = format!("{:08}", names.len() / 2);
        names.extend([Object::string_literal(new.clone()), element.into()]);
        ids.insert(id.to_owned(), new);
    }
    if ids.is_empty() {
        return Ok(());
    }
    for object in document.objects.values_mut() {
        rename_ids(object, &ids, false);
    }
    let tree = document.add_object(dictionary! { "Names" => names });
    let root = document.catalog()?.get(b"StructTreeRoot")?.as_reference()?;
    document.get_dictionary_mut(root)?.set("IDTree", tree);
    document.prune_objects();
    Ok(())
}

/// Renames the strings that are ids, in the entries that have them.
fn rename_ids(object: &mut Object, ids: &HashMap<Vec<u8>, String>, is_id: bool) {
    match object {
        Object::String(id, _) if is_id => {
            if let Some(new) = ids.get(id) {
                *id = new.clone().into_bytes();
            }
        }
        Object::Array(objects) => objects.iter_mut().for_each(|it| rename_ids(it, ids, is_id)),
        Object::Dictionary(entries) => {
            for (key, entry) in entries.iter_mut() {
                rename_ids(entry, ids, matches!(&key[..], b"ID" | b"Headers"));
            }
        }
        _ => {}
    }
}
