//! Which elements of the page the texts of its file are from.
//!
//! Chromium tags no text that styles generate, nor text of frames, of some controls, and of what is inert, and a file does not
//! tell it from a header or from what is hidden from screen readers. So the page is printed once more, with the colour of each
//! text as the number of its element. That file has the same texts at the same places.

use std::collections::HashMap;

use lopdf::Document;
use platen_shared::job::{DocumentOptions, PdfOptions, Sheet};
use serde::Deserialize;
use serde_json::{Value, from_value};
use tokio::task::spawn_blocking;

use super::{
    links, print,
    texts::{Drawn, Text, content},
};
use crate::{error::JobError, render::rendering::Rendering};

const COLORS: &str = concat!("(", include_str!("colors.js"), ")");
/// The colour before that of the first element is that of what is hidden. Few texts of headers and of pictures have such a
/// colour, which would be taken for a number.
const FIRST_COLOR: u32 = 0x12_34_57;
/// Colours of an element: for what is before its content, in it and after it.
const SIDES: [Side; 3] = [Side::Before, Side::In, Side::After];
/// Gives all texts of a frame the colour of its element, if its owner cannot look into it.
const PAINT_FRAME: &str = concat!("(", include_str!("paint_frame.js"), ")");

/// What is known of a file that is to be read: its content, and the origins of its texts if something has no tags.
#[derive(Debug, Default)]
pub(super) struct Reading {
    pub(super) content: Drawn,
    pub(super) origins: Option<Origins>,
}

/// The options and the sheet with which the page was printed.
#[derive(Debug)]
pub(super) struct Printed {
    pub(super) pdf: PdfOptions,
    pub(super) sheet: Sheet,
}

/// Reads a file for PDF/UA; of others nothing is needed.
pub(super) async fn reading(
    rendering: &mut Rendering<'_>,
    document: Document,
    printed: &Printed,
) -> Result<(Document, Reading), JobError> {
    if !printed.pdf.document.standard.ua1 {
        return Ok((document, Reading::default()));
    }
    let found = spawn_blocking(move || {
        let content = content(&document)?;
        let is_untagged = |text: &Text| text.mark.is_none() && !text.is_blank();
        let has_untagged = content.texts.iter().any(is_untagged) || links::has_untagged(&document);
        Ok::<_, lopdf::Error>((document, content, has_untagged))
    });
    let (document, content, has_untagged) = found.await.map_err(|_| JobError::NoFile)??;
    let origins = if has_untagged { Some(Origins::of(rendering, printed).await?) } else { None };
    Ok((document, Reading { content, origins }))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Side {
    Before,
    In,
    After,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    Element(usize, Side),
    /// An element that is hidden from screen readers.
    Hidden,
    /// A margin box, or a picture.
    Other,
    /// A header or a footer, if the page was the same.
    Missing,
}

/// What an element is in the structure tree.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Kind {
    #[serde(rename = "kind")]
    pub(super) role: String,
    pub(super) label: Option<String>,
    pub(super) columns: Option<i64>,
    pub(super) rows: Option<i64>,
    #[serde(default)]
    pub(super) is_of_row: bool,
}

#[derive(Debug, Deserialize)]
struct Numbered {
    parents: Vec<Option<usize>>,
    kinds: Vec<Option<Kind>>,
    frames: Value,
}

/// The number of a page, and where a text begins on it.
type PagePoint = (usize, (i64, i64));

/// The elements of the page, which have numbers in the order of the document, and the texts of its second file.
#[derive(Debug)]
pub(super) struct Origins {
    parents: Vec<Option<usize>>,
    kinds: Vec<Option<Kind>>,
    /// The last one in each element.
    last: Vec<usize>,
    /// The colours of the texts at a place of a page.
    colors: HashMap<PagePoint, Vec<Option<u32>>>,
    has_header: bool,
}

impl Origins {
    /// Prints the page again as it was printed.
    async fn of(rendering: &mut Rendering<'_>, printed: &Printed) -> Result<Self, JobError> {
        let numbered = rendering.evaluate_isolated(&format!("{COLORS}({FIRST_COLOR})")).await?;
        let numbered = numbered.and_then(|it| from_value::<Numbered>(it).ok()).ok_or(JobError::NoFile)?;
        if numbered.frames.as_object().is_some_and(|frames| !frames.is_empty()) {
            rendering.evaluate_in_frames(&format!("{PAINT_FRAME}({})", numbered.frames)).await?;
        }
        let pdf = PdfOptions {
            header: None,
            footer: None,
            tagged: false,
            outline: false,
            print_background: true,
            document: DocumentOptions::default(),
            ..printed.pdf.clone()
        };
        let file = print(rendering, &pdf, printed.sheet).await?;
        let found = spawn_blocking(move || content(&Document::load_mem(&file)?)).await;
        let found = found.map_err(|_| JobError::NoFile)??;
        let origins = Self::new(numbered.parents, numbered.kinds, &found.texts).ok_or(JobError::NoFile)?;
        let PdfOptions { header, footer, first_header, first_footer, .. } = &printed.pdf;
        let has_header = [header, footer, first_header, first_footer].into_iter().any(Option::is_some);
        Ok(Self { has_header, ..origins })
    }

    /// `None` if the numbers are not in the order of the document.
    fn new(parents: Vec<Option<usize>>, kinds: Vec<Option<Kind>>, drawn: &[Text]) -> Option<Self> {
        let mut last: Vec<usize> = (0..parents.len()).collect();
        for (number, parent) in parents.iter().enumerate().rev() {
            if let Some(parent) = *parent {
                last[parent] = last.get(parent).copied().filter(|_| parent < number)?.max(last[number]);
            }
        }
        let mut colors: HashMap<_, Vec<_>> = HashMap::new();
        for text in drawn {
            colors.entry((text.page, text.place)).or_default().push(text.color);
        }
        (kinds.len() == parents.len()).then_some(Self { parents, kinds, last, colors, has_header: false })
    }

    /// The origin of each text of the first file.
    pub(super) fn find(&self, texts: &[Text]) -> Vec<Origin> {
        // Texts at the same place are drawn in the same order.
        let mut before: HashMap<_, usize> = HashMap::new();
        let origin = |text: &Text| {
            let place = (text.page, text.place);
            let count = before.entry(place).or_default();
            let color = self.colors.get(&place).and_then(|colors| colors.get(*count));
            *count += 1;
            color.map_or(Origin::Missing, |color| color.map_or(Origin::Other, |color| self.origin(color)))
        };
        texts.iter().map(origin).collect()
    }

    fn origin(&self, color: u32) -> Origin {
        if color == FIRST_COLOR - 1 {
            return Origin::Hidden;
        }
        let number = color.checked_sub(FIRST_COLOR).and_then(|number| usize::try_from(number).ok());
        let number = number.filter(|number| number / SIDES.len() < self.parents.len());
        number.map_or(Origin::Other, |it| Origin::Element(it / SIDES.len(), SIDES[it % SIDES.len()]))
    }

    /// Whether the first file has headers or footers, which this one does not have.
    pub(super) fn has_header(&self) -> bool {
        self.has_header
    }

    pub(super) fn last(&self, element: usize) -> usize {
        self.last[element]
    }

    pub(super) fn contains(&self, element: usize, other: usize) -> bool {
        (element..=self.last[element]).contains(&other)
    }

    /// The elements from one up to the root.
    pub(super) fn ancestors(&self, element: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(Some(element), |element| self.parents[*element])
    }

    /// The elements with a type from one up to below another, which contains it.
    pub(super) fn kinds_below(&self, top: Option<usize>, element: usize) -> Vec<(usize, &Kind)> {
        let below = self.ancestors(element).take_while(|element| Some(*element) != top);
        below.filter_map(|element| Some((element, self.kinds[element].as_ref()?))).collect()
    }
}
