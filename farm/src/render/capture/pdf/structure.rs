//! The structure tree of a tagged file: with the same ids for equal jobs, and as PDF/UA-1 (ISO 14289-1) asks for it.

use std::collections::{HashMap, HashSet};

use lopdf::{Dictionary, Document, Object, ObjectId, decode_text_string, dictionary, text_string};
use platen_shared::locale::Locale;

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

struct Element {
    id: ObjectId,
    kind: Vec<u8>,
    has_text: bool,
    /// The nearest element around it that is not without a meaning.
    owner: Option<usize>,
}

/// Repairs the tree, and refuses what the page must change.
pub(super) fn repair(document: &mut Document) -> Result<(), JobError> {
    let root = document.catalog()?.get(b"StructTreeRoot").and_then(Object::as_reference);
    let root = root.map_err(|_| JobError::standard_not_met("the page has no text, and no image with one"))?;
    let roles: Dictionary =
        ROLES.iter().map(|(role, known)| (*role, Object::Name(known.as_bytes().to_vec()))).collect();
    document.get_dictionary_mut(root)?.set("RoleMap", roles);
    let elements = elements(document, root);
    check_headings(&elements)?;
    let owners: HashSet<usize> = elements.iter().filter_map(|element| element.owner).collect();
    for (index, Element { id, kind, has_text, .. }) in elements.iter().enumerate() {
        let element = document.get_dictionary_mut(*id)?;
        let language = element.get(b"Lang").and_then(decode_text_string);
        if language.is_ok_and(|language| Locale::try_from(language).is_err()) {
            element.remove(b"Lang");
        }
        match kind.as_slice() {
            // A <figure> with an image and its caption.
            b"Figure" if !has_text && owners.contains(&index) => {
                element.set("S", Object::Name(b"Div".to_vec()));
            }
            b"Figure" if !has_text => {
                return Err(JobError::standard_not_met(
                    "each image needs its text: alt of <img>, aria-label of <svg role=img> and <canvas role=img>; \
                     or aria-hidden=\"true\" if it is decoration",
                ));
            }
            b"Table" => check_table(document, *id)?,
            b"L" | b"LI" => complete_list(document, *id, kind == b"LI")?,
            _ => {}
        }
    }
    complete_links(document, root)
}

/// The elements in the order of reading.
fn elements(document: &Document, root: ObjectId) -> Vec<Element> {
    let mut elements: Vec<Element> = Vec::new();
    let mut seen = HashSet::new();
    let mut left = vec![(root, None)];
    while let Some((id, owner)) = left.pop() {
        let Ok(dictionary) = document.get_dictionary(id) else { continue };
        if !seen.insert(id) {
            continue;
        }
        let mut owner = owner;
        if let Ok(kind) = dictionary.get(b"S").and_then(Object::as_name) {
            let has_text = [&b"Alt"[..], b"ActualText"].iter().any(|key| {
                dictionary.get(key).and_then(decode_text_string).is_ok_and(|text| !text.trim().is_empty())
            });
            elements.push(Element { id, kind: kind.to_vec(), has_text, owner });
            if kind != b"NonStruct" {
                owner = Some(elements.len() - 1);
            }
        }
        let kids = kids(document, dictionary).into_iter().rev().filter_map(|kid| kid.as_reference().ok());
        left.extend(kids.map(|kid| (kid, owner)));
    }
    elements
}

/// ISO 14289-1, 7.4.2.
fn check_headings(elements: &[Element]) -> Result<(), JobError> {
    let mut last = 0;
    for element in elements {
        let [b'H', level @ b'1'..=b'6'] = element.kind[..] else { continue };
        let level = level - b'0';
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
    let element = document
        .add_object(dictionary! { "Type" => "StructElem", "S" => kind, "P" => parent, "K" => kids.clone() });
    for kid in kids {
        document.get_dictionary_mut(kid.as_reference()?)?.set("P", element);
    }
    Ok(element.into())
}

/// Gives each link its description and its element. Those of headers and footers have none.
fn complete_links(document: &mut Document, root: ObjectId) -> Result<(), JobError> {
    for page in document.page_iter().collect::<Vec<_>>() {
        let annotations = document.get_dictionary(page)?.get_deref(b"Annots", document);
        let Ok(annotations) = annotations.and_then(Object::as_array) else { continue };
        for id in annotations.iter().filter_map(|id| id.as_reference().ok()).collect::<Vec<_>>() {
            let link = document.get_dictionary(id)?;
            let action = link.get_deref(b"A", document).and_then(Object::as_dict);
            let target = action.and_then(|action| action.get(b"URI")).and_then(Object::as_str);
            let target = target.or_else(|_| link.get(b"Dest").and_then(Object::as_name)).unwrap_or(b"Link");
            let description = text_string(&String::from_utf8_lossy(target));
            let has_element = link.has(b"StructParent");
            document.get_dictionary_mut(id)?.set("Contents", description);
            if !has_element {
                add_link(document, root, page, id)?;
            }
        }
    }
    Ok(())
}

/// Adds an element for a link at the end of the tree.
fn add_link(document: &mut Document, root: ObjectId, page: ObjectId, link: ObjectId) -> lopdf::Result<()> {
    let tree = document.get_dictionary(root)?;
    let key = tree.get(b"ParentTreeNextKey")?.as_i64()?;
    let parents = tree.get(b"ParentTree")?.as_reference()?;
    let parent = tree.get(b"K")?.as_reference()?;
    let element = document.add_object(dictionary! {
        "Type" => "StructElem", "S" => "Link", "P" => parent,
        "K" => dictionary! { "Type" => "OBJR", "Obj" => link, "Pg" => page },
    });
    let mut kids = kids(document, document.get_dictionary(parent)?);
    kids.push(element.into());
    document.get_dictionary_mut(parent)?.set("K", kids);
    let numbers = document.get_dictionary_mut(parents)?.get_mut(b"Nums")?.as_array_mut()?;
    numbers.extend([key.into(), element.into()]);
    document.get_dictionary_mut(link)?.set("StructParent", key);
    document.get_dictionary_mut(root)?.set("ParentTreeNextKey", key + 1);
    Ok(())
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

/// Elements, and references to content.
fn kids(document: &Document, element: &Dictionary) -> Vec<Object> {
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
fn kind<'a>(document: &'a Document, kid: &Object) -> Option<&'a [u8]> {
    let kid = kid.as_reference().and_then(|id| document.get_dictionary(id)).ok()?;
    kid.get(b"S").and_then(Object::as_name).ok()
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
        rename(object, &ids, false);
    }
    let tree = document.add_object(dictionary! { "Names" => names });
    let root = document.catalog()?.get(b"StructTreeRoot")?.as_reference()?;
    document.get_dictionary_mut(root)?.set("IDTree", tree);
    document.prune_objects();
    Ok(())
}

/// Renames the strings that are ids, in the entries that have them.
fn rename(object: &mut Object, ids: &HashMap<Vec<u8>, String>, is_id: bool) {
    match object {
        Object::String(id, _) if is_id => {
            if let Some(new) = ids.get(id) {
                *id = new.clone().into_bytes();
            }
        }
        Object::Array(objects) => objects.iter_mut().for_each(|it| rename(it, ids, is_id)),
        Object::Dictionary(entries) => {
            for (key, entry) in entries.iter_mut() {
                rename(entry, ids, matches!(&key[..], b"ID" | b"Headers"));
            }
        }
        _ => {}
    }
}
