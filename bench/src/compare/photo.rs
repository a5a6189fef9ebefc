//! Pictures that cost a decoder about what photographs do.
//!
//! Invariant: the same number gives the same picture, and its lowest fifth is one known colour, so
//! that a screenshot shows whether the picture is there.

use std::io::Cursor;

use anyhow::Result;
use image::{Rgb, RgbImage, codecs::jpeg::JpegEncoder};
use platen_tests::image_file::Colour;

/// The colour of the lowest fifth.
pub(super) const STRIPE: Colour = [20, 160, 90];

/// A JPEG of 640 × 400.
pub(super) fn jpeg(number: u32) -> Result<Vec<u8>> {
    let (width, height) = (640, 400);
    let picture = RgbImage::from_fn(width, height, |x, y| {
        if y >= height / 5 * 4 {
            return Rgb(STRIPE);
        }
        // Slopes and waves of several lengths, and some grain.
        let wave = |length: u32, phase: u32| triangle(x * 3 + y * 2 + number * phase, length);
        let grain = (x.wrapping_mul(73_856_093) ^ y.wrapping_mul(19_349_663)) >> 5 & 15;
        let channel = |length, phase| {
            let light = wave(length, phase) / 2 + wave(length / 7, phase) / 4 + y * 50 / height + grain;
            u8::try_from(light.min(255)).unwrap_or(u8::MAX)
        };
        Rgb([channel(900, 37), channel(700, 53), channel(500, 71)])
    });
    let mut file = Cursor::new(Vec::new());
    JpegEncoder::new_with_quality(&mut file, 82).encode_image(&picture)?;
    Ok(file.into_inner())
}

/// Up from 0 to 255 and down again within `length`.
fn triangle(at: u32, length: u32) -> u32 {
    let place = at % length * 510 / length;
    if place > 255 { 510 - place } else { place }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_picture_of_a_photographs_size() {
        let file = jpeg(3).unwrap();
        assert!((15_000..120_000).contains(&file.len()), "{} bytes", file.len());
        let picture = platen_tests::image_file::Picture::decode(&file, "image/jpeg").unwrap();
        assert_eq!(picture.size(), (640, 400));
        picture.expect(320, 390, STRIPE).unwrap();
    }
}
