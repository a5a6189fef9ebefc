//! The first page of a document, which may have another header and footer than the others.
//!
//! Chromium prints the same ones on all pages. So the first page is printed again, with its own, and what is on it takes the
//! place of what is on that page in the file of all pages. The structure tree of that file remains.
//!
//! Invariant: the first page ends where the second one begins. The page does not change between its prints, and what it could
//! still change, such as an image that has just arrived, is noticed by the text.

use std::{
    collections::{HashMap, HashSet},
    mem,
};

use lopdf::{
    Dictionary, Document, Object, ObjectId,
    content::{Content, Operation},
};
use platen_shared::{
    job::{HeaderHtml, Pages, PdfOptions},
    refusal::Refusal,
};

use super::{super::page_scripts::disable_scripts, emulate_print, texts::form_resources};
use crate::{
    error::JobError,
    render::{animations, header_templates::MARK_SIZE, rendering::Rendering, resources, static_page},
};

/// The options of the file that has only the first page, or of a single page; `None` if that page is like the others, or
/// not asked for.
pub(super) fn options(pdf: &PdfOptions) -> Option<PdfOptions> {
    let pages = match &pdf.pages {
        Pages::Single => Pages::Single,
        Pages::Ranges(ranges) if ranges.first() != 1 => return None,
        Pages::All | Pages::Ranges(_) => Pages::Ranges("1".parse().ok()?),
    };
    let own = |first: &Option<HeaderHtml>, every: &Option<HeaderHtml>| {
        first.as_ref().or(every.as_ref()).filter(|html| !html.as_str().is_empty()).cloned()
    };
    let header = own(&pdf.first_header, &pdf.header);
    let footer = own(&pdf.first_footer, &pdf.footer);
    (pdf.first_header.is_some() || pdf.first_footer.is_some()).then(|| PdfOptions {
        header,
        footer,
        pages,
        ..pdf.clone()
    })
}

/// The event of which a page may prepare itself for being printed.
const BEFORE_PRINT: &str = "EventTarget.prototype.dispatchEvent.call(window, new Event('beforeprint'))";

/// Shows the page once what printing shows it, and then ends its scripts and stops its animations, so that all prints are of the
/// same page. A page in which nothing can change stays as it is, and can be used again.
pub(super) async fn freeze(rendering: &mut Rendering<'_>) -> Result<(), JobError> {
    if static_page::is_static(rendering).await? {
        return Ok(());
    }
    if rendering.scripts.enabled {
        rendering.evaluate_in_frames(BEFORE_PRINT).await?;
        emulate_print(rendering).await?;
        animations::frame(rendering).await?;
        resources::settle(rendering).await?;
        disable_scripts(rendering).await?;
    }
    Ok(rendering.pause_animations()?)
}

/// Gives the first page of a document what is on the page of the file `printed`. Both were printed with `pdf`.
///
/// # Errors
/// [`Refusal::FirstPageChanged`] if the page has changed between both, so that text would be lost, or the structure tree would
/// not be that of its content.
pub(super) fn insert(document: &mut Document, printed: &[u8], pdf: &PdfOptions) -> Result<(), JobError> {
    let changed = || JobError::Refused(Refusal::FirstPageChanged);
    let mut printed = Document::load_mem(printed)?;
    printed.renumber_objects_with(document.max_id + 1);
    printed.objects.values_mut().for_each(rename_subset);
    let from = printed.page_iter().next().ok_or(JobError::NoFile)?;
    let to = document.page_iter().next().ok_or(JobError::NoFile)?;
    let texts = (text(document, to, pdf)?, text(&printed, from, options(pdf).as_ref().unwrap_or(pdf))?);
    if let (Some(text), Some(printed)) = texts
        && text != printed
    {
        return Err(changed());
    }
    // The structure tree also refers to forms on the page, such as what is transparent.
    let marked = marked_objects(document);
    let mut replaced = HashMap::from([(from, to)]);
    for (key, (id, contents)) in marked_objects(&printed) {
        let (own, _) = marked.get(&key).filter(|(_, its)| *its == contents).ok_or_else(changed)?;
        replaced.insert(id, *own);
    }
    if struct_parents(document.get_object(to)?) != struct_parents(printed.get_object(from)?)
        || replaced[&from] != to
    {
        return Err(changed());
    }
    let own = |id: ObjectId| replaced.get(&id).copied().unwrap_or(id);
    printed.objects = mem::take(&mut printed.objects).into_iter().map(|(id, it)| (own(id), it)).collect();
    printed.traverse_objects(|object| {
        if let Object::Reference(id) = object {
            *id = own(*id);
        }
    });
    // Links of the page are in the structure tree, those of its header are not.
    let mut links = links(document, to, true);
    links.extend(self::links(&printed, to, false));
    let source = printed.objects.remove(&to).ok_or(JobError::NoFile)?;
    let page = document.get_dictionary_mut(to)?;
    for key in ["Contents", "Resources"] {
        page.set(key, source.as_dict()?.get(key.as_bytes())?.clone());
    }
    page.remove(b"Annots");
    if !links.is_empty() {
        page.set("Annots", links);
    }
    document.max_id = printed.max_id;
    document.objects.extend(printed.objects);
    document.prune_objects();
    Ok(())
}

/// The text that a page draws before its header and its footer, as codes of glyphs; `None` if a template hides the mark between both.
fn text(document: &Document, page: ObjectId, pdf: &PdfOptions) -> lopdf::Result<Option<Vec<Vec<u8>>>> {
    let mut text = PageText { document, glyphs: Vec::new(), forms: HashSet::new() };
    let resources = document.get_page_resources(page)?.0;
    let has_header = pdf.header.is_some() || pdf.footer.is_some();
    let is_known = text.read(&document.get_page_content(page), resources)? || !has_header;
    Ok(is_known.then_some(text.glyphs))
}

struct PageText<'a> {
    document: &'a Document,
    glyphs: Vec<Vec<u8>>,
    /// The forms that have been read; what is transparent is one.
    forms: HashSet<ObjectId>,
}

impl PageText<'_> {
    /// Reads content up to the mark; true if it has that.
    fn read(&mut self, content: &[u8], resources: Option<&Dictionary>) -> lopdf::Result<bool> {
        let forms = resources.map(|it| it.get_deref(b"XObject", self.document).and_then(Object::as_dict));
        for Operation { operator, operands } in Content::decode(content)?.operations {
            let Some(operand) = operands.last() else { continue };
            match operator.as_str() {
                "Tf" if operand.as_float().is_ok_and(|size| (size - MARK_SIZE).abs() < 0.005) => {
                    return Ok(true);
                }
                "Tj" => self.glyphs.extend(operand.as_str().ok().map(<[u8]>::to_vec)),
                "Do" => {
                    let form = operand.as_name().ok().and_then(|name| {
                        forms.as_ref()?.as_ref().ok()?.get(name).and_then(Object::as_reference).ok()
                    });
                    if let Some(form) = form
                        && self.forms.insert(form)
                        && let Ok(form) = self.document.get_object(form).and_then(Object::as_stream)
                        && form
                            .dict
                            .get(b"Subtype")
                            .and_then(Object::as_name)
                            .is_ok_and(|kind| kind == b"Form")
                        && self.read(&form.get_plain_content()?, form_resources(self.document, form))?
                    {
                        return Ok(true);
                    }
                }
                _ => {}
            }
        }
        Ok(false)
    }
}

/// Gives the subset of a font another tag, because another subset of that font in the document has the same one.
fn rename_subset(object: &mut Object) {
    let Ok(font) = object.as_dict_mut() else { return };
    for key in [&b"BaseFont"[..], b"FontName"] {
        // Chromium counts from `AAAAAA`, and the last letter is the highest digit.
        if let Ok(Object::Name(name)) = font.get_mut(key)
            && name.get(6) == Some(&b'+')
        {
            name[5] = b'Z';
        }
    }
}

/// The pages and forms with contents that the structure tree refers to, and the number of these, by their keys in its
/// parent tree. Chromium numbers keys from the first page on.
fn marked_objects(document: &Document) -> HashMap<i64, (ObjectId, usize)> {
    let parents = document.catalog().and_then(|catalog| {
        let root = catalog.get_deref(b"StructTreeRoot", document)?.as_dict()?;
        root.get_deref(b"ParentTree", document)?.as_dict()?.get_deref(b"Nums", document)?.as_array()
    });
    let contents = |entry: &[Object]| {
        let elements = document.dereference(&entry[1]).ok()?.1.as_array().ok()?;
        Some((entry[0].as_i64().ok()?, elements.len()))
    };
    let contents: HashMap<i64, usize> =
        parents.into_iter().flat_map(|parents| parents.chunks_exact(2)).filter_map(contents).collect();
    let marked = |(&id, object): (&ObjectId, &Object)| {
        let key = struct_parents(object)?;
        Some((key, (id, *contents.get(&key)?)))
    };
    document.objects.iter().filter_map(marked).collect()
}

/// The key of a page or a form in the parent tree.
fn struct_parents(object: &Object) -> Option<i64> {
    let entries = object.as_dict().or_else(|_| object.as_stream().map(|form| &form.dict)).ok()?;
    entries.get(b"StructParents").ok()?.as_i64().ok()
}

/// The links of a page that are in the structure tree, or those that are not.
fn links(document: &Document, page: ObjectId, in_structure: bool) -> Vec<Object> {
    let links =
        document.get_dictionary(page).and_then(|page| page.get_deref(b"Annots", document)?.as_array());
    let is_in_structure = |link: &&Object| {
        let link = document.dereference(link).and_then(|(_, link)| link.as_dict());
        link.is_ok_and(|link| link.has(b"StructParent") == in_structure)
    };
    links.into_iter().flatten().filter(is_in_structure).cloned().collect()
}
