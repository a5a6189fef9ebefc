//! The parent tree: which element of the structure tree each mark and each annotation belongs to (ISO 32000-1, 14.7.4.4).

use std::collections::{BTreeMap, HashSet};

use lopdf::{Document, Object, ObjectId};

use super::{
    texts::Mark,
    tree::{Element, kids, mark},
};

/// Invariant: it is written to the document when it is complete.
pub(super) struct ParentTree {
    root: ObjectId,
    entries: BTreeMap<i64, Object>,
    next: i64,
}

impl ParentTree {
    pub(super) fn read(document: &Document, root: ObjectId) -> lopdf::Result<Self> {
        let tree = document.get_dictionary(root)?.get_deref(b"ParentTree", document)?.as_dict()?;
        let mut entries = BTreeMap::new();
        for entry in tree.get_deref(b"Nums", document)?.as_array()?.chunks_exact(2) {
            let value = match document.dereference(&entry[1]) {
                Ok((_, Object::Array(elements))) => Object::Array(elements.clone()),
                _ => entry[1].clone(),
            };
            entries.insert(entry[0].as_i64()?, value);
        }
        let next = entries.last_key_value().map_or(0, |(last, _)| last + 1);
        Ok(Self { root, entries, next })
    }

    pub(super) fn write(self, document: &mut Document) -> lopdf::Result<()> {
        let tree = document.get_dictionary(self.root)?.get(b"ParentTree")?.as_reference()?;
        let numbers: Vec<Object> = self.entries.into_iter().flat_map(|(key, it)| [key.into(), it]).collect();
        document.get_dictionary_mut(tree)?.set("Nums", numbers);
        document.get_dictionary_mut(self.root)?.set("ParentTreeNextKey", self.next);
        Ok(())
    }

    /// The element of an annotation.
    pub(super) fn of_annotation(&self, document: &Document, annotation: ObjectId) -> Option<ObjectId> {
        let key =
            document.get_dictionary(annotation).and_then(|it| it.get(b"StructParent")?.as_i64()).ok()?;
        self.entries.get(&key)?.as_reference().ok()
    }

    pub(super) fn set_annotation(
        &mut self,
        document: &mut Document,
        annotation: ObjectId,
        element: ObjectId,
    ) -> lopdf::Result<()> {
        let annotation = document.get_dictionary_mut(annotation)?;
        let key = annotation.get(b"StructParent").and_then(Object::as_i64).unwrap_or(self.next);
        self.next = self.next.max(key + 1);
        annotation.set("StructParent", key);
        self.entries.insert(key, element.into());
        Ok(())
    }

    /// Gives a mark to another element, or to none.
    pub(super) fn set(&mut self, document: &Document, (stream, number): Mark, element: Option<ObjectId>) {
        let elements = key(document, stream).and_then(|key| self.entries.get_mut(&key)?.as_array_mut().ok());
        let entry = elements.and_then(|it| it.get_mut(usize::try_from(number).ok()?));
        if let Some(entry) = entry {
            *entry = element.map_or(Object::Null, Object::from);
        }
    }

    /// Removes marks here and from their elements.
    pub(super) fn remove(
        &mut self,
        document: &mut Document,
        elements: &[Element],
        removed: &HashSet<Mark>,
    ) -> lopdf::Result<()> {
        for element in elements.iter().filter(|it| it.marks.iter().any(|mark| removed.contains(mark))) {
            let dictionary = document.get_dictionary(element.id)?;
            let is_kept = |kid: &Object| mark(dictionary, kid).is_none_or(|mark| !removed.contains(&mark));
            let kept: Vec<Object> = kids(document, dictionary).into_iter().filter(is_kept).collect();
            document.get_dictionary_mut(element.id)?.set("K", kept);
        }
        for mark in removed {
            self.set(document, *mark, None);
        }
        Ok(())
    }

    /// A new mark of an element in the stream of a page or a form.
    pub(super) fn add(
        &mut self,
        document: &mut Document,
        stream: ObjectId,
        element: ObjectId,
    ) -> lopdf::Result<i64> {
        let key = if let Some(key) = key(document, stream) {
            key
        } else {
            let owner = match document.get_object_mut(stream)? {
                Object::Stream(form) => &mut form.dict,
                page => page.as_dict_mut()?,
            };
            owner.set("StructParents", self.next);
            self.next
        };
        self.next = self.next.max(key + 1);
        let elements = self.entries.entry(key).or_insert_with(|| Object::Array(Vec::new())).as_array_mut()?;
        elements.push(element.into());
        Ok(i64::try_from(elements.len() - 1).unwrap_or(i64::MAX))
    }
}

/// The key of a page or a form.
fn key(document: &Document, stream: ObjectId) -> Option<i64> {
    let owner = document.get_object(stream).ok()?;
    let owner = owner.as_dict().or_else(|_| owner.as_stream().map(|form| &form.dict)).ok()?;
    owner.get(b"StructParents").and_then(Object::as_i64).ok()
}
