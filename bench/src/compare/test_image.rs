//! Generated JPEG images that cost a decoder about as much as photographs.
//!
//! Invariant: the same number gives the same image. Its lowest fifth has one known colour, so that a
//! screenshot shows whether the image was drawn.

use std::io::Cursor;

use anyhow::Result;
use image::{Rgb, RgbImage, codecs::jpeg::JpegEncoder};
use platen_harness::image_file::Colour;

/// Colour of the lowest fifth.
pub(super) const STRIPE: Colour = [20, 160, 90];

/// A JPEG of 640 × 400.
pub(super) fn jpeg(number: u32) -> Result<Vec<u8>> {
    let (width, height) = (640, 400);
    let image = RgbImage::from_fn(width, height, |x, y| {
        if y >= height / 5 * 4 {
            return Rgb(STRIPE);
        }
        // Gradients, waves of several lengths and noise.
        let wave = |length: u32, phase: u32| triangle(x * 3 + y * 2 + number * phase, length);
        let noise = (x.wrapping_mul(73_856_093) ^ y.wrapping_mul(19_349_663)) >> 5 & 15;
        let channel = |length, phase| {
            let value = wave(length, phase) / 2 + wave(length / 7, phase) / 4 + y * 50 / height + noise;
            u8::try_from(value.min(255)).unwrap_or(u8::MAX)
        };
        Rgb([channel(900, 37), channel(700, 53), channel(500, 71)])
    });
    let mut file = Cursor::new(Vec::new());
    JpegEncoder::new_with_quality(&mut file, 82).encode_image(&image)?;
    Ok(file.into_inner())
}

/// A triangle wave from 0 to 255 with the period `length`.
fn triangle(position: u32, length: u32) -> u32 {
    let phase = position % length * 510 / length;
    if phase > 255 { 510 - phase } else { phase }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_has_the_size_of_a_photograph() {
        let file = jpeg(3).unwrap();
        assert!((15_000..120_000).contains(&file.len()), "{} bytes", file.len());
        let image = platen_harness::image_file::Picture::decode(&file, "image/jpeg").unwrap();
        assert_eq!(image.size(), (640, 400));
        image.expect(320, 390, STRIPE).unwrap();
    }
}
