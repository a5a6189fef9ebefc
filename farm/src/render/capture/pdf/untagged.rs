//! Text of the page that Chromium has not tagged, in the structure tree: where it stands in the document.
//!
//! The elements of the page with tagged text are found in the tree by that text. What is between two of them gets an element
//! between theirs, with the types of the elements of the page around it that the tree does not have.

use std::collections::{HashMap, HashSet};

use lopdf::{Document, ObjectId};

use super::{
    artifacts::Changes,
    new_elements::{NewElements, Place},
    origins::{Origin, Origins, Side},
    parents::ParentTree,
    texts::{Drawn, Mark, Text},
    tree::{self, Element},
};
use crate::error::JobError;

/// Types that have a meaning where they are: what stands before or after the content of an element belongs into the one of its
/// type.
const STRUCTURED: [&[u8]; 18] = [
    b"Document",
    b"P",
    b"H",
    b"H1",
    b"H2",
    b"H3",
    b"H4",
    b"H5",
    b"H6",
    b"L",
    b"LI",
    b"Table",
    b"TR",
    b"TH",
    b"TD",
    b"Caption",
    b"Figure",
    b"Link",
];
/// Those in which there is only what makes a table.
const TABLE_PARTS: [&[u8]; 5] = [b"Table", b"TR", b"THead", b"TBody", b"TFoot"];

/// An element of the tree whose text is that of an element of the page.
struct Leaf {
    /// Its number in the tree.
    element: usize,
    origin: usize,
}

/// Texts of an element of the page that follow each other.
struct Run<'a> {
    origin: usize,
    side: Side,
    /// The number of the leaf that is drawn before them, plus one.
    leaf: usize,
    texts: Vec<&'a Text>,
}

/// Adds what is not tagged, and removes what is hidden. Returns the new elements of texts.
pub(super) fn place(
    document: &mut Document,
    content: &Drawn,
    cleared: &HashMap<ObjectId, Mark>,
    origins: &Origins,
    parents: &mut ParentTree,
    changes: &mut Changes,
) -> Result<(), JobError> {
    let texts = &content.texts;
    let found = origins.find(texts);
    let (of_marks, hidden) = origins_of_marks(content, &found, origins)?;
    let elements = tree::elements(document, tree::root(document)?);
    parents.remove(document, &elements, &hidden)?;
    changes.removed.extend(hidden);
    let leaf = |(element, it): (usize, &Element)| {
        let origin = *it.marks.iter().chain(cleared.get(&it.id)).find_map(|mark| of_marks.get(mark))?;
        Some(Leaf { element, origin })
    };
    let leaves: Vec<Leaf> = elements.iter().enumerate().filter_map(leaf).collect();
    let runs = runs(texts, &found, &elements, &leaves);
    let map = Map::new(&elements, leaves, origins);
    let mut new = NewElements::new(document);
    for run in runs {
        let Some(place) = map.place(&run) else {
            return Err(JobError::standard_not_met(&format!(
                "there is text that screen readers find, beside \"{:.40}\"",
                run.texts[0].content.trim()
            )));
        };
        let parent = new.container(document, origins, run.origin, &place)?;
        let span = new.element(document, "Span", parent);
        for text in run.texts {
            let (stream, _) = text.object;
            let number = parents.add(document, stream, span)?;
            changes.placed.insert(text.object, (number, span));
            new.refer(span, (stream, number), text.page);
        }
    }
    new.finish(document)
}

/// The element of the page of each mark, and the marks of hidden text alone.
fn origins_of_marks(
    content: &Drawn,
    found: &[Origin],
    origins: &Origins,
) -> Result<(HashMap<Mark, usize>, HashSet<Mark>), JobError> {
    let mut of_marks: HashMap<Mark, usize> = HashMap::new();
    let mut hidden: HashSet<Mark> = HashSet::new();
    for (text, origin) in content.texts.iter().zip(found) {
        let is_missing = *origin == Origin::Missing && !text.is_blank();
        if is_missing && (text.mark.is_some() || !origins.has_header()) {
            return Err(JobError::standard_not_met(&format!(
                "the page stays as it is while it is printed; \"{:.40}\" changes",
                text.content.trim()
            )));
        }
        let Some(mark) = text.mark else { continue };
        match origin {
            Origin::Element(element, _) => _ = of_marks.entry(mark).or_insert(*element),
            Origin::Hidden => _ = hidden.insert(mark),
            _ => {}
        }
    }
    for (space, origin) in content.spaces.iter().zip(origins.find(&content.spaces)) {
        if let (Some(mark), Origin::Element(element, _)) = (space.mark, origin) {
            of_marks.insert(mark, element);
        }
    }
    hidden.retain(|mark| !of_marks.contains_key(mark));
    Ok((of_marks, hidden))
}

/// The texts that are not tagged and belong to the page, in the order in which they are drawn; each once, although what is
/// repeated on every page is drawn there again.
fn runs<'a>(texts: &'a [Text], found: &[Origin], elements: &[Element], leaves: &[Leaf]) -> Vec<Run<'a>> {
    let of_leaf = leaves.iter().enumerate();
    let marks =
        of_leaf.flat_map(|(at, leaf)| elements[leaf.element].marks.iter().map(move |mark| (*mark, at)));
    let marks: HashMap<Mark, usize> = marks.collect();
    let mut runs: Vec<Run<'_>> = Vec::new();
    let (mut leaf, mut is_open) = (0, false);
    for (text, origin) in texts.iter().zip(found) {
        let (None, Origin::Element(origin, side)) = (text.mark, *origin) else {
            if let Some(at) = text.mark.and_then(|mark| marks.get(&mark)) {
                leaf = at + 1;
            }
            is_open = false;
            continue;
        };
        match runs.last_mut() {
            Some(run) if is_open && (run.origin, run.side) == (origin, side) => run.texts.push(text),
            _ if text.is_blank() => {}
            _ => {
                runs.push(Run { origin, side, leaf, texts: vec![text] });
                is_open = true;
            }
        }
    }
    let mut first: HashMap<_, (usize, (i64, i64))> = HashMap::new();
    runs.retain(|run| {
        let text: String = run.texts.iter().map(|text| text.content.as_str()).collect();
        let Text { page, place, .. } = *run.texts[0];
        let (its_page, its_place) = *first.entry((run.origin, run.side, text)).or_insert((page, place));
        its_page == page || run.side == Side::In && its_place != place
    });
    runs
}

/// The tree beside the page.
struct Map<'a> {
    elements: &'a [Element],
    leaves: Vec<Leaf>,
    origins: &'a Origins,
    /// The highest origin of the leaves up to each.
    highest: Vec<usize>,
    /// The origins of the leaves in the order of the document.
    sorted: Vec<usize>,
    /// The lowest and the highest origin of the leaves in each element.
    ranges: Vec<Option<(usize, usize)>>,
}

impl<'a> Map<'a> {
    fn new(elements: &'a [Element], leaves: Vec<Leaf>, origins: &'a Origins) -> Self {
        let highest = leaves.iter().scan(0, |highest, leaf| {
            *highest = leaf.origin.max(*highest);
            Some(*highest)
        });
        let highest = highest.collect();
        let mut ranges: Vec<Option<(usize, usize)>> = vec![None; elements.len()];
        for leaf in &leaves {
            ranges[leaf.element] = Some((leaf.origin, leaf.origin));
        }
        for (number, element) in elements.iter().enumerate().rev() {
            if let (Some((low, high)), Some(parent)) = (ranges[number], element.parent) {
                let (its_low, its_high) = ranges[parent].unwrap_or((low, high));
                ranges[parent] = Some((low.min(its_low), high.max(its_high)));
            }
        }
        let mut sorted: Vec<usize> = leaves.iter().map(|leaf| leaf.origin).collect();
        sorted.sort_unstable();
        Self { elements, leaves, origins, highest, sorted, ranges }
    }

    /// Where a run stands; `None` if no text is tagged.
    fn place(&self, run: &Run<'_>) -> Option<Place> {
        let at = self.position(run);
        let beside = |leaf: usize| {
            let leaf = self.leaves.get(leaf)?;
            let around =
                self.origins.ancestors(run.origin).find(|it| self.origins.contains(*it, leaf.origin))?;
            Some((around, leaf))
        };
        let (before, after) = (at.checked_sub(1).and_then(beside), beside(at));
        // The nearer one is in the smaller element around both.
        let is_after = match (&before, &after) {
            (Some((one, _)), Some((other, _))) => one >= other,
            (before, _) => before.is_some(),
        };
        let (around, leaf) = if is_after { before? } else { after? };
        let path = self.origins.kinds_below(Some(around), leaf.origin);
        let mut path: Vec<&[u8]> = path.into_iter().map(|(_, kind)| kind.role.as_bytes()).collect();
        // The element of the page below the common one, in which all text of an element of the tree must be.
        let top = self.origins.ancestors(leaf.origin).take_while(|it| *it != around).last();
        let outermost = self.origins.kinds_below(Some(around), run.origin).pop();
        let is_table_part =
            outermost.is_some_and(|(_, kind)| matches!(kind.role.as_str(), "TR" | "TD" | "TH"));
        let mut beside = leaf.element;
        let mut found = (self.elements[beside].parent?, beside);
        while let (Some(top), Some(parent)) = (top, self.elements[beside].parent) {
            let kind = self.elements[parent].kind.as_slice();
            let is_allowed = is_table_part || !TABLE_PARTS.contains(&kind);
            if is_allowed {
                found = (parent, beside);
            }
            let is_within = |(low, high)| self.origins.contains(top, low) && self.origins.contains(top, high);
            if !self.ranges[parent].is_some_and(is_within) {
                break;
            }
            if STRUCTURED.contains(&kind) {
                let Some(known) = path.iter().position(|it| *it == kind) else { break };
                path.remove(known);
            }
            beside = parent;
        }
        let (parent, beside) = (self.elements[found.0].id, self.elements[found.1].id);
        Some(Place { around, parent, beside, is_after })
    }

    /// The number of leaves before a run: those of the document before its element, or those that are drawn before it if that
    /// element has no leaf.
    fn position(&self, run: &Run<'_>) -> usize {
        let Run { origin, side, leaf, .. } = *run;
        let last = self.origins.last(origin);
        let before = |element: usize| self.sorted.partition_point(|other| *other < element);
        let first = self.highest.partition_point(|highest| *highest < origin);
        match (side, before(last + 1) - before(origin)) {
            (Side::Before, 1..) => return first,
            (Side::After, count @ 1..) => return first + count,
            _ => {}
        }
        let begins_after = |leaf: &Leaf| leaf.origin > last;
        let ends_before = |leaf: &Leaf| self.origins.last(leaf.origin) < origin;
        let is_after = leaf.checked_sub(1).is_none_or(|before| !begins_after(&self.leaves[before]));
        let is_between = is_after && self.leaves.get(leaf).is_none_or(|after| !ends_before(after));
        if is_between { leaf } else { first }
    }
}
