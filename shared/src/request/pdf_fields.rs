//! The fields that concern PDFs only.

use crate::{
    format::PaperSize,
    job::{HeaderHtml, Margins, Pages, PdfOptions, PdfScale, Sheet},
    length::Length,
    limits,
    page_ranges::PageRanges,
};

use super::{field::Field, field_name::FieldName, invalid::InvalidRequest, object::Object};

/// Rounding error of a conversion to pixels and back.
const ROUNDING_MM: f64 = 1e-6;
const MARGIN_MEMBERS: &[&str; 4] = &["top", "right", "bottom", "left"];

/// The values of the fields that concern PDFs only.
pub(super) struct PdfFields {
    paper: Option<PaperSize>,
    width: Option<Length>,
    height: Option<Length>,
    single_page: bool,
    page_ranges: Option<PageRanges>,
    pub(super) has_scale: bool,
    /// With the default sheet and all pages.
    options: PdfOptions,
}

/// The fields of PDFs that are among the first of the contract.
#[derive(Debug, Clone, Copy)]
pub(super) struct FirstPdfFields {
    pub(super) paper: Option<PaperSize>,
    pub(super) print_background: bool,
    pub(super) scale: Option<PdfScale>,
}

impl PdfFields {
    /// Reads the fields after the first of them.
    pub(super) fn read(object: &Object<'_>, first: FirstPdfFields) -> Result<Self, InvalidRequest> {
        let boolean = |name| Ok(object.field(name).boolean()?.unwrap_or_default());
        let html = |name| object.field(name).text_of::<HeaderHtml>();
        let landscape = boolean(FieldName::Landscape)?;
        let margins = margins(object.field(FieldName::Margin))?;
        let width = side(object.field(FieldName::PdfWidth))?;
        let height = side(object.field(FieldName::PdfHeight))?;
        let prefer_css_page_size = boolean(FieldName::PreferCssPageSize)?;
        let single_page = boolean(FieldName::SinglePage)?;
        let (header, footer) = (html(FieldName::HeaderHtml)?, html(FieldName::FooterHtml)?);
        let page_ranges = object.field(FieldName::PageRanges).text_of()?;
        let (tagged, outline) = (boolean(FieldName::Tagged)?, boolean(FieldName::Outline)?);
        let FirstPdfFields { paper, print_background, scale } = first;
        let options = PdfOptions {
            landscape,
            margins,
            prefer_css_page_size,
            print_background,
            scale: scale.unwrap_or_default(),
            header,
            footer,
            tagged: tagged || outline,
            outline,
            ..PdfOptions::new(paper.unwrap_or_default().into())
        };
        Ok(Self { paper, width, height, single_page, page_ranges, has_scale: scale.is_some(), options })
    }

    /// Checks which fields are given together.
    pub(super) fn check(&self) -> Result<(), InvalidRequest> {
        use FieldName::{PdfHeight, PdfWidth};
        match (self.width, self.height) {
            (Some(_), None) => Err(InvalidRequest::RequiredWith(PdfHeight.into(), PdfWidth.into())),
            (None, Some(_)) => Err(InvalidRequest::RequiredWith(PdfWidth.into(), PdfHeight.into())),
            _ => self.check_conflicts(),
        }
    }

    /// Checks which fields exclude each other.
    pub(super) fn check_conflicts(&self) -> Result<(), InvalidRequest> {
        use FieldName::{PageRanges, PdfFormat, PdfHeight, PdfWidth, SinglePage};
        let side = if self.width.is_some() { PdfWidth } else { PdfHeight };
        if self.paper.is_some() && (self.width.is_some() || self.height.is_some()) {
            Err(InvalidRequest::Conflict(side.into(), PdfFormat.into()))
        } else if self.single_page && self.page_ranges.is_some() {
            Err(InvalidRequest::Conflict(SinglePage.into(), PageRanges.into()))
        } else {
            Ok(())
        }
    }

    /// The options of a PDF.
    pub(super) fn into_options(self) -> PdfOptions {
        let mut options = self.options;
        if let (Some(width), Some(height)) = (self.width, self.height) {
            options.sheet = Sheet { width, height };
        }
        if options.landscape {
            options.sheet = options.sheet.landscape();
        }
        options.pages = match self.page_ranges {
            Some(ranges) => Pages::Ranges(ranges),
            None if self.single_page => Pages::Single,
            None => Pages::All,
        };
        options
    }
}

fn margins(field: Field<'_>) -> Result<Option<Margins>, InvalidRequest> {
    if field.value.is_none() {
        return Ok(None);
    }
    if let Some([top, right, bottom, left]) = field.members(MARGIN_MEMBERS)? {
        let side = |member: Field<'_>| Ok(member.length()?.unwrap_or_default());
        return Ok(Some(Margins {
            top: side(top)?,
            right: side(right)?,
            bottom: side(bottom)?,
            left: side(left)?,
        }));
    }
    field.length().map(|length| length.map(Margins::all)).map_err(|_| InvalidRequest::Margin)
}

fn side(field: Field<'_>) -> Result<Option<Length>, InvalidRequest> {
    let (min, max) = limits::PDF_SIDE_MM_RANGE.into_inner();
    match field.length()? {
        Some(length) if !(min - ROUNDING_MM..=max + ROUNDING_MM).contains(&length.mm()) => {
            Err(InvalidRequest::LengthRange { field: field.name, min, max })
        }
        length => Ok(length),
    }
}
