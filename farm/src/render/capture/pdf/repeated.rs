//! What Chromium prints again on each page and tags there again: header rows of tables, and elements with a fixed position. In
//! the structure tree they are once.

use std::collections::{BTreeMap, HashMap, HashSet};

use lopdf::{Document, ObjectId};

use super::{
    artifacts::Changes,
    parents::ParentTree,
    texts::{Mark, Text},
    tree::{self, Element},
};

/// The texts of an element on each page, each with its place.
type Pages<'a> = BTreeMap<usize, Vec<(&'a str, (i64, i64))>>;

/// Leaves out the copies, which become artifacts.
pub(super) fn remove(
    document: &mut Document,
    texts: &[Text],
    parents: &mut ParentTree,
    changes: &mut Changes,
) -> lopdf::Result<()> {
    let page_ids: Vec<ObjectId> = document.page_iter().collect();
    if page_ids.len() < 2 {
        return Ok(());
    }
    let mut of_marks: HashMap<Mark, Vec<&Text>> = HashMap::new();
    let mut pages: HashMap<ObjectId, usize> = page_ids.iter().enumerate().map(|(at, id)| (*id, at)).collect();
    for text in texts {
        pages.entry(text.object.0).or_insert(text.page);
        if let Some(mark) = text.mark {
            of_marks.entry(mark).or_default().push(text);
        }
    }
    let elements = tree::elements(document, tree::root(document)?);
    let printed = |element: &Element| {
        let mut found = Pages::new();
        for text in element.marks.iter().filter_map(|mark| of_marks.get(mark)).flatten() {
            found.entry(text.page).or_default().push((&text.content, text.place));
        }
        found
    };
    let mut removed: HashSet<Mark> = HashSet::new();
    // For each row whether all its texts are repeated, and its marks.
    let mut rows: BTreeMap<usize, (bool, Vec<Mark>)> = BTreeMap::new();
    for element in &elements {
        let found = printed(element);
        let row = tree::around(&elements, element, |around| around.kind == b"TR");
        if let Some(row) = row {
            let (is_repeated, marks) = rows.entry(row).or_insert((true, Vec::new()));
            *is_repeated &= found.is_empty() || is_repeated_text(&found);
            marks.extend(&element.marks);
        } else if found.len() == page_ids.len()
            && found.values().all(|texts| Some(texts) == found.values().next())
        {
            removed.extend(copies(&element.marks, &pages));
        }
    }
    let repeated = rows.into_values().filter(|(is_repeated, _)| *is_repeated);
    removed.extend(repeated.flat_map(|(_, marks)| copies(&marks, &pages)));
    parents.remove(document, &elements, &removed)?;
    changes.removed.extend(removed);
    Ok(())
}

fn is_repeated_text(found: &Pages<'_>) -> bool {
    let texts = |texts: &Vec<(&str, _)>| texts.iter().map(|(text, _)| (*text).to_owned()).collect::<String>();
    let mut all = found.values().map(texts);
    let first = all.next();
    found.len() > 1 && all.all(|text| Some(text) == first)
}

/// The marks on other pages than the first one.
fn copies(marks: &[Mark], pages: &HashMap<ObjectId, usize>) -> Vec<Mark> {
    let page = |mark: &Mark| pages.get(&mark.0).copied();
    let first = marks.iter().filter_map(page).min();
    marks.iter().filter(|mark| page(mark) > first).copied().collect()
}
