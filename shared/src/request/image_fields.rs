//! The fields that concern images only.

use std::ops::RangeInclusive;

use crate::{
    format::{ImageFormat, OutputFormat},
    job::{Clip, ImageOptions, Quality, Region, Selector},
    length::Length,
    limits,
};

use super::{
    field::Field,
    field_name::{FieldName, FieldPath},
    invalid::InvalidRequest,
    object::Object,
};

const CLIP_MEMBERS: &[&str; 4] = &["x", "y", "width", "height"];

/// The values of the fields that concern images only.
pub(super) struct ImageFields {
    full_page: bool,
    quality: Option<Quality>,
    omit_background: bool,
    selector: Option<Selector>,
    clip: Option<Clip>,
}

impl ImageFields {
    /// Reads the fields; `full_page` is among the first of the contract and was read with them.
    pub(super) fn read(object: &Object<'_>, full_page: bool) -> Result<Self, InvalidRequest> {
        Ok(Self {
            full_page,
            quality: object.field(FieldName::Quality).whole_number(limits::QUALITY_RANGE)?,
            omit_background: object.field(FieldName::OmitBackground).boolean()?.unwrap_or_default(),
            selector: object.field(FieldName::Selector).text_of()?,
            clip: clip(object.field(FieldName::Clip))?,
        })
    }

    /// Checks which fields are given together.
    pub(super) fn check(&self) -> Result<(), InvalidRequest> {
        use FieldName::{Clip, FullPage, Selector};
        let given =
            [(self.full_page, FullPage), (self.selector.is_some(), Selector), (self.clip.is_some(), Clip)];
        let mut given =
            given.into_iter().filter_map(|(is_given, field)| is_given.then_some(FieldPath::from(field)));
        match (given.next(), given.next()) {
            (Some(one), Some(other)) => Err(InvalidRequest::Conflict(other, one)),
            _ => Ok(()),
        }
    }

    /// Checks which fields the format has.
    pub(super) fn check_format(&self, format: OutputFormat) -> Result<(), InvalidRequest> {
        let field = match format {
            OutputFormat::Pdf | OutputFormat::Image(ImageFormat::Png) if self.quality.is_some() => {
                FieldName::Quality
            }
            OutputFormat::Image(ImageFormat::Jpeg) if self.omit_background => FieldName::OmitBackground,
            _ => return Ok(()),
        };
        Err(InvalidRequest::with_format(field, format))
    }

    /// The options of an image.
    pub(super) fn into_options(self, format: ImageFormat) -> ImageOptions {
        let region = match (self.full_page, self.selector, self.clip) {
            (_, Some(selector), _) => Region::Element(selector),
            (_, _, Some(clip)) => Region::Clip(clip),
            (true, ..) => Region::FullPage,
            (false, ..) => Region::Viewport,
        };
        let quality = self.quality.unwrap_or_default();
        ImageOptions { format, quality, omit_background: self.omit_background, region }
    }
}

fn clip(field: Field<'_>) -> Result<Option<Clip>, InvalidRequest> {
    if field.value.is_none() {
        return Ok(None);
    }
    let Some([x, y, width, height]) = field.members(CLIP_MEMBERS)? else { return Err(InvalidRequest::Clip) };
    let number = |member: Field<'_>, range: RangeInclusive<f64>| {
        let length = member.required()?.number("number", range, |it| Length::try_from(it).ok())?;
        Ok(length.unwrap_or_default())
    };
    Ok(Some(Clip {
        x: number(x, limits::CLIP_OFFSET_RANGE)?,
        y: number(y, limits::CLIP_OFFSET_RANGE)?,
        width: number(width, limits::CLIP_SIDE_RANGE)?,
        height: number(height, limits::CLIP_SIDE_RANGE)?,
    }))
}
