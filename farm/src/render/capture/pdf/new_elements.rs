//! New elements of the structure tree, for text that Chromium has not tagged.

use std::collections::HashMap;

use lopdf::{Document, Object, ObjectId, dictionary, text_string};

use super::{
    origins::{Kind, Origins},
    texts::Mark,
    tree::{self, Insertions},
};
use crate::error::JobError;

/// Where a new element stands.
pub(super) struct Place {
    /// The element of the page that contains what is beside it.
    pub(super) around: usize,
    pub(super) parent: ObjectId,
    pub(super) beside: ObjectId,
    pub(super) is_after: bool,
}

/// The new elements.
#[derive(Debug, Default)]
pub(super) struct NewElements {
    pages: Vec<ObjectId>,
    /// New elements by the numbers of their elements of the page.
    created: HashMap<usize, ObjectId>,
    kids: HashMap<ObjectId, Vec<Object>>,
    insertions: Insertions,
}

impl NewElements {
    pub(super) fn new(document: &Document) -> Self {
        Self { pages: document.page_iter().collect(), ..Self::default() }
    }

    /// The element around a text: one of the tree, or the innermost one of those that the tree does not have.
    pub(super) fn container(
        &mut self,
        document: &mut Document,
        origins: &Origins,
        origin: usize,
        place: &Place,
    ) -> lopdf::Result<Parent> {
        let mut parent = Parent::Beside(place.parent, place.beside, place.is_after);
        let mut around = tree::kind(document, &place.parent.into()).unwrap_or_default().to_vec();
        for (number, kind) in origins.kinds_below(Some(place.around), origin).into_iter().rev() {
            let is_wanted = match kind.role.as_str() {
                // Links are made of annotations.
                "Link" => false,
                "Figure" => kind.label.as_deref() != Some(""),
                // Chromium gives no types to tables that only place their content.
                "TR" => around == b"Table",
                "TD" | "TH" => around == b"TR",
                "LI" => around == b"L",
                _ => true,
            };
            if !is_wanted {
                continue;
            }
            let id = match self.created.get(&number) {
                Some(id) => *id,
                None => self.typed(document, kind, parent)?,
            };
            self.created.insert(number, id);
            parent = Parent::In(id);
            around = kind.role.clone().into_bytes();
        }
        Ok(parent)
    }

    fn typed(&mut self, document: &mut Document, kind: &Kind, parent: Parent) -> lopdf::Result<ObjectId> {
        let id = self.element(document, &kind.role, parent);
        let element = document.get_dictionary_mut(id)?;
        if let Some(label) = &kind.label {
            element.set("Alt", text_string(label));
        }
        if let (Some(columns), Some(rows)) = (kind.columns, kind.rows) {
            let mut cell = dictionary! { "O" => "Table", "RowSpan" => rows, "ColSpan" => columns };
            if kind.role == "TH" {
                cell.set(
                    "Scope",
                    Object::Name(if kind.is_of_row { b"Row".to_vec() } else { b"Column".to_vec() }),
                );
            }
            element.set("A", vec![cell.into()]);
        }
        Ok(id)
    }

    pub(super) fn element(&mut self, document: &mut Document, kind: &str, parent: Parent) -> ObjectId {
        let within = match parent {
            Parent::In(within) | Parent::Beside(within, ..) => within,
        };
        let id = tree::new_element(document, kind, within, Vec::new());
        match parent {
            Parent::In(within) => self.kids.entry(within).or_default().push(id.into()),
            Parent::Beside(within, beside, is_after) => self.insertions.add(within, beside, is_after, id),
        }
        id
    }

    /// Lets an element refer to a mark.
    pub(super) fn refer(&mut self, element: ObjectId, (stream, number): Mark, page: usize) {
        let page = self.pages[page];
        let mut reference = dictionary! { "Type" => "MCR", "Pg" => page, "MCID" => number };
        if stream != page {
            reference.set("Stm", stream);
        }
        self.kids.entry(element).or_default().push(reference.into());
    }

    pub(super) fn finish(self, document: &mut Document) -> Result<(), JobError> {
        for (element, kids) in self.kids {
            document.get_dictionary_mut(element)?.set("K", kids);
        }
        Ok(self.insertions.apply(document)?)
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Parent {
    In(ObjectId),
    Beside(ObjectId, ObjectId, bool),
}
