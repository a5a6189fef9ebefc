//! Links: each annotation has its element, and the text of the link as its description (ISO 14289-1, 7.18.5).

use std::collections::{HashMap, HashSet};

use lopdf::{Dictionary, Document, Object, ObjectId, dictionary, text_string};

use super::{
    artifacts::Changes,
    parents::ParentTree,
    texts::{Mark, Text},
    tree,
};
use crate::error::JobError;

/// How far the beginning of a text may be outside of its link, in points.
const TOLERANCE: f64 = 0.5;

/// Gives each link its element and its description. Links of headers and of what is hidden from screen readers have none, and
/// are removed: an annotation without an element is not allowed.
pub(super) fn complete(
    document: &mut Document,
    texts: &[Text],
    parents: &mut ParentTree,
    changes: &Changes,
) -> Result<(), JobError> {
    let placed = texts.iter().filter_map(|text| Some((text, changes.placed.get(&text.object)?.1)));
    let mut of_pages: HashMap<usize, Vec<(&Text, ObjectId)>> = HashMap::new();
    for (text, span) in placed {
        of_pages.entry(text.page).or_default().push((text, span));
    }
    let mut links = Vec::new();
    for (number, page) in document.page_iter().enumerate().collect::<Vec<_>>() {
        let annotations = document.get_dictionary(page)?.get_deref(b"Annots", document);
        let Ok(annotations) = annotations.and_then(Object::as_array) else { continue };
        let mut kept = Vec::new();
        for id in annotations.iter().filter_map(|id| id.as_reference().ok()).collect::<Vec<_>>() {
            let spans = spans_in(document, id, of_pages.get(&number).map_or(&[][..], Vec::as_slice));
            let link = match parents.of_annotation(document, id) {
                Some(element) => {
                    let link = link_around(document, element, parents)?;
                    if !has_content(document, link) {
                        move_into(document, link, &spans)?;
                    }
                    link
                }
                None if spans.is_empty() => continue,
                None => new_link(document, (page, id), &spans, parents)?,
            };
            kept.push(Object::from(id));
            links.push((id, link));
        }
        let page = document.get_dictionary_mut(page)?;
        if kept.is_empty() {
            page.remove(b"Annots");
        } else {
            page.set("Annots", kept);
        }
    }
    describe(document, texts, changes, &links)
}

/// Whether the file has a link without an element.
pub(super) fn has_untagged(document: &Document) -> bool {
    let links = document.objects.values().filter_map(|object| object.as_dict().ok());
    let mut links = links
        .filter(|object| object.get(b"Subtype").and_then(Object::as_name).is_ok_and(|kind| kind == b"Link"));
    links.any(|link| !link.has(b"StructParent"))
}

/// The elements of texts that begin in a link.
fn spans_in(document: &Document, link: ObjectId, placed: &[(&Text, ObjectId)]) -> Vec<ObjectId> {
    let rect = document.get_dictionary(link).and_then(|link| link.get(b"Rect")?.as_array());
    let sides: Vec<f64> = rect
        .map(|it| it.iter().filter_map(|it| it.as_float().ok()).map(f64::from).collect())
        .unwrap_or_default();
    let [left, bottom, right, top] = sides[..] else { return Vec::new() };
    let is_in = |text: &Text| {
        let (x, y) = text.point();
        (left - TOLERANCE..=right).contains(&x) && (bottom - TOLERANCE..=top).contains(&y)
    };
    let mut spans: Vec<ObjectId> =
        placed.iter().filter(|(text, _)| is_in(text)).map(|(_, span)| *span).collect();
    spans.dedup();
    spans
}

/// The link of an element to which an annotation belongs: itself, or a new one around it or its content.
fn link_around(
    document: &mut Document,
    element: ObjectId,
    parents: &mut ParentTree,
) -> Result<ObjectId, JobError> {
    let dictionary = document.get_dictionary(element)?;
    let is_reference = |kid: &Object| kid.as_dict().is_ok_and(|kid| kid.has_type(b"OBJR"));
    let (references, content): (Vec<Object>, Vec<Object>) =
        tree::kids(document, dictionary).into_iter().partition(is_reference);
    let parent = dictionary.get(b"P")?.as_reference()?;
    let page = dictionary.get(b"Pg").cloned();
    match dictionary.get(b"S")?.as_name()? {
        b"Link" => return Ok(element),
        // Its text takes the place of its content, and would take that of the link.
        b"Figure" => {
            let link = tree::new_element(document, "Link", parent, vec![element.into()]);
            tree::replace(document, parent, element, Some(link))?;
            let figure = document.get_dictionary_mut(element)?;
            figure.set("P", link);
            figure.set("K", content);
            refer(document, link, references, parents)?;
            return Ok(link);
        }
        _ => {}
    }
    let marks: Vec<Mark> = content.iter().filter_map(|kid| tree::mark(dictionary, kid)).collect();
    let inner: Vec<ObjectId> = content.iter().filter_map(|kid| kid.as_reference().ok()).collect();
    let link = tree::new_element(document, "Link", element, content);
    for mark in marks {
        parents.set(document, mark, Some(link));
    }
    for inner in inner {
        document.get_dictionary_mut(inner)?.set("P", link);
    }
    if let Ok(page) = page {
        document.get_dictionary_mut(link)?.set("Pg", page);
    }
    document.get_dictionary_mut(element)?.set("K", vec![link.into()]);
    refer(document, link, references, parents)?;
    Ok(link)
}

/// Lets an element refer to annotations.
fn refer(
    document: &mut Document,
    link: ObjectId,
    references: Vec<Object>,
    parents: &mut ParentTree,
) -> Result<(), JobError> {
    for reference in &references {
        let annotation = reference.as_dict()?.get(b"Obj")?.as_reference()?;
        parents.set_annotation(document, annotation, link)?;
    }
    push(document, link, references)?;
    Ok(())
}

fn push(document: &mut Document, element: ObjectId, new: Vec<Object>) -> lopdf::Result<()> {
    let mut kids = tree::kids(document, document.get_dictionary(element)?);
    kids.extend(new);
    document.get_dictionary_mut(element)?.set("K", kids);
    Ok(())
}

fn move_into(document: &mut Document, link: ObjectId, spans: &[ObjectId]) -> lopdf::Result<()> {
    for span in spans {
        let parent = document.get_dictionary(*span)?.get(b"P")?.as_reference()?;
        tree::replace(document, parent, *span, None)?;
        document.get_dictionary_mut(*span)?.set("P", link);
    }
    push(document, link, spans.iter().map(|span| (*span).into()).collect())
}

/// A link around new elements, or the one in which they are.
fn new_link(
    document: &mut Document,
    (page, annotation): (ObjectId, ObjectId),
    spans: &[ObjectId],
    parents: &mut ParentTree,
) -> Result<ObjectId, JobError> {
    let parent = document.get_dictionary(spans[0])?.get(b"P")?.as_reference()?;
    let link = if tree::kind(document, &parent.into()) == Some(b"Link") {
        parent
    } else {
        let link = tree::new_element(document, "Link", parent, Vec::new());
        tree::replace(document, parent, spans[0], Some(link))?;
        document.get_dictionary_mut(spans[0])?.set("P", link);
        push(document, link, vec![spans[0].into()])?;
        move_into(document, link, &spans[1..])?;
        link
    };
    let reference = dictionary! { "Type" => "OBJR", "Obj" => annotation, "Pg" => page };
    refer(document, link, vec![reference.into()], parents)?;
    Ok(link)
}

/// Whether an element has more than references to annotations.
fn has_content(document: &Document, element: ObjectId) -> bool {
    let Ok(dictionary) = document.get_dictionary(element) else { return false };
    tree::kids(document, dictionary).iter().any(|kid| match kid {
        Object::Reference(_) => true,
        kid => tree::mark(dictionary, kid).is_some(),
    })
}

/// Describes links by their texts; those without one by where they lead.
fn describe(
    document: &mut Document,
    texts: &[Text],
    changes: &Changes,
    links: &[(ObjectId, ObjectId)],
) -> Result<(), JobError> {
    let mut of_marks: HashMap<Mark, Vec<&Text>> = HashMap::new();
    for text in texts {
        let (stream, _) = text.object;
        let placed = changes.placed.get(&text.object).map(|(number, _)| (stream, *number));
        if let Some(mark) = placed.or(text.mark) {
            of_marks.entry(mark).or_default().push(text);
        }
    }
    let all: HashSet<ObjectId> = links.iter().map(|(_, link)| *link).collect();
    let elements = tree::elements(document, tree::root(document)?);
    // For each element the link in which it is, unless an element around it has a text in place of its content.
    let mut within: Vec<Option<ObjectId>> = Vec::with_capacity(elements.len());
    let mut descriptions: HashMap<ObjectId, Description> = HashMap::new();
    for element in &elements {
        let around = element.parent.and_then(|parent| within[parent]);
        let link = around.or_else(|| all.contains(&element.id).then_some(element.id));
        let own = link.and_then(|_| tree::own_text(document, element.id));
        within.push(link.filter(|_| own.is_none()));
        let Some(link) = link else { continue };
        let description = descriptions.entry(link).or_default();
        if let Some(text) = own {
            description.add(&text, None);
            continue;
        }
        for text in element.marks.iter().filter_map(|mark| of_marks.get(mark)).flatten() {
            description.add(&text.content, Some(text.place.1));
        }
    }
    for (id, link) in links {
        let words = descriptions.get(link).map(Description::words).filter(|words| !words.is_empty());
        let annotation = document.get_dictionary(*id)?;
        let words = words.unwrap_or_else(|| target(document, annotation));
        document.get_dictionary_mut(*id)?.set("Contents", text_string(&words));
    }
    Ok(())
}

/// The address of a link, or the name of its place in the document.
fn target(document: &Document, link: &Dictionary) -> String {
    let action = link.get_deref(b"A", document).and_then(Object::as_dict);
    let target = action.and_then(|action| action.get(b"URI")).and_then(Object::as_str);
    let target = target.or_else(|_| link.get(b"Dest").and_then(Object::as_name)).unwrap_or(b"Link");
    String::from_utf8_lossy(target).into_owned()
}

#[derive(Default)]
struct Description {
    text: String,
    /// The baseline of its last part.
    line: Option<i64>,
}

impl Description {
    fn add(&mut self, text: &str, line: Option<i64>) {
        // The space at which a line ends is not drawn.
        if line.is_none() || line != self.line {
            self.text.push(' ');
        }
        self.text += text;
        self.line = line;
    }

    fn words(&self) -> String {
        self.text.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}
