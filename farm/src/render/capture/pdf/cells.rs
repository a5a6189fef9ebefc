//! Empty cells of tables. Chromium leaves out of the structure tree what draws nothing, so a row would have fewer cells than its
//! table has columns, or its cells would be those of other columns (ISO 14289-1, 7.5).
//!
//! Before the page is printed, each cell that may be empty gets a space. For Chromium it is part of the cell by `aria-owns`; in the
//! document it is elsewhere, so that the cell keeps its style and its layout.

use std::collections::{HashMap, HashSet};

use lopdf::{Document, ObjectId};
use platen_shared::job::{Pages, PdfOptions};

use super::{
    artifacts::Changes,
    parents::ParentTree,
    texts::{Mark, SPACE_COLOR, Text},
    tree::{self, Element},
};
use crate::{error::JobError, render::rendering::Rendering};

/// Adds the spaces, and remembers them as `own.spaces` by their cells.
const ADD: &str = concat!("(", include_str!("cells.js"), ")");

/// Adds spaces for a file of PDF/UA.
pub(super) async fn fill(rendering: &mut Rendering<'_>, pdf: &PdfOptions) -> Result<(), JobError> {
    if pdf.document.standard.ua1 {
        let is_part = matches!(pdf.pages, Pages::Ranges(_));
        rendering.evaluate_isolated(&format!("{ADD}('#{SPACE_COLOR:06x}', {is_part})")).await?;
    }
    Ok(())
}

/// Makes the spaces artifacts. Returns the elements that had them and are in a cell, with the marks.
pub(super) fn clear(
    document: &mut Document,
    spaces: &[Text],
    parents: &mut ParentTree,
    changes: &mut Changes,
) -> lopdf::Result<HashMap<ObjectId, Mark>> {
    let marks: HashSet<Mark> = spaces.iter().filter_map(|space| space.mark).collect();
    let elements = tree::elements(document, tree::root(document)?);
    parents.remove(document, &elements, &marks)?;
    let (mut cleared, mut others) = (HashMap::new(), HashSet::new());
    for element in &elements {
        let Some(mark) = element.marks.iter().find(|mark| marks.contains(mark)) else { continue };
        if tree::around(&elements, element, is_cell).is_some() {
            cleared.insert(element.id, *mark);
        } else {
            others.insert(element.id);
        }
    }
    changes.removed.extend(marks);
    // Those of hidden cells, and of tables that only place their content.
    remove_empty(document, |id| others.contains(&id))?;
    Ok(cleared)
}

/// Removes elements that had spaces, and those around them that have no content. The cells of a table with content stay.
pub(super) fn remove_empty(
    document: &mut Document,
    is_cleared: impl Fn(ObjectId) -> bool,
) -> lopdf::Result<()> {
    let elements = tree::elements(document, tree::root(document)?);
    let mut has_content = Vec::new();
    for element in &elements {
        let kids = tree::kids(document, document.get_dictionary(element.id)?);
        has_content.push(kids.iter().any(|kid| kid.as_reference().is_err()));
    }
    spread(&elements, &mut has_content);
    let mut stays = has_content.clone();
    for (at, element) in elements.iter().enumerate().filter(|(_, element)| is_cell(element)) {
        let table = tree::around(&elements, element, |around| around.kind == b"Table");
        stays[at] |= table.is_some_and(|table| has_content[table]);
    }
    spread(&elements, &mut stays);
    let mut is_removed: Vec<bool> = elements.iter().map(|element| is_cleared(element.id)).collect();
    spread(&elements, &mut is_removed);
    for (at, Element { id, parent, .. }) in elements.iter().enumerate() {
        let is_within = parent.is_some_and(|parent| is_removed[parent]);
        is_removed[at] = is_within || is_removed[at] && !stays[at];
        if is_removed[at] {
            let removed = document.objects.remove(id);
            if let (false, Some(removed)) = (is_within, removed) {
                tree::replace(document, removed.as_dict()?.get(b"P")?.as_reference()?, *id, None)?;
            }
        }
    }
    Ok(())
}

fn is_cell(element: &Element) -> bool {
    matches!(element.kind.as_slice(), b"TH" | b"TD")
}

/// Gives what holds for an element to those around it.
fn spread(elements: &[Element], holds: &mut [bool]) {
    for (at, element) in elements.iter().enumerate().rev() {
        if let (true, Some(parent)) = (holds[at], element.parent) {
            holds[parent] = true;
        }
    }
}
