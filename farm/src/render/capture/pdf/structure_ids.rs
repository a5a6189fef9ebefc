//! The ids of elements in the structure tree, which cells of tables have for their header cells.
//!
//! Chromium makes them of the ids of its nodes, which differ from page to page.

use std::collections::HashMap;

use lopdf::{Document, Object, dictionary};

use crate::error::JobError;

/// Numbers the elements in the order of the file, which is that of the tree.
pub(super) fn renumber(document: &mut Document) -> Result<(), JobError> {
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
