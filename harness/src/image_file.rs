//! Decoded pictures.
//!
//! Invariant: a picture has been decoded completely, by a decoder that is not Chromium's.

use anyhow::{Context as _, Result, ensure};
use image::{DynamicImage, ImageFormat, RgbImage};

/// A decoded picture.
#[derive(Debug, Clone)]
pub struct Picture(RgbImage);

/// A colour: red, green, blue.
pub type Colour = [u8; 3];

/// `#008000`.
pub const GREEN: Colour = [0, 128, 0];
/// `#ff0000`.
pub const RED: Colour = [255, 0, 0];
/// `#0000ff`.
pub const BLUE: Colour = [0, 0, 255];
/// Blank paper.
pub const WHITE: Colour = [255, 255, 255];

impl Picture {
    pub fn decode(bytes: &[u8], content_type: &str) -> Result<Self> {
        let expected = ImageFormat::from_mime_type(content_type).context("no picture type")?;
        let actual = image::guess_format(bytes)?;
        ensure!(actual == expected, "the bytes are {actual:?}, the content type says {content_type}");
        Ok(Self(image::load_from_memory_with_format(bytes, expected)?.into_rgb8()))
    }

    /// Width and height in pixels.
    pub fn size(&self) -> (u32, u32) {
        self.0.dimensions()
    }

    /// Checks the colour of a pixel, with a tolerance for lossy formats.
    pub fn expect(&self, x: u32, y: u32, colour: Colour) -> Result<()> {
        const TOLERANCE: u8 = 12;
        let pixel =
            self.0.get_pixel_checked(x, y).with_context(|| format!("{x},{y} is outside of the picture"))?.0;
        let near = pixel.iter().zip(colour).all(|(one, other)| one.abs_diff(other) <= TOLERANCE);
        ensure!(near, "the pixel at {x},{y} is {pixel:?} instead of {colour:?}");
        Ok(())
    }

    /// The number of pixels of exactly this colour.
    pub fn count(&self, colour: Colour) -> usize {
        self.0.pixels().filter(|pixel| pixel.0 == colour).count()
    }

    /// The number of pixels that are not the same in another picture; all pixels if it has another size.
    pub fn differences(&self, other: &Self) -> usize {
        if self.size() != other.size() {
            return self.0.pixels().len().max(1);
        }
        self.0.pixels().zip(other.0.pixels()).filter(|(one, other)| one != other).count()
    }

    pub fn png_of(colour: Colour, width: u32, height: u32) -> Result<Vec<u8>> {
        let image = DynamicImage::from(RgbImage::from_pixel(width, height, image::Rgb(colour)));
        let mut file = std::io::Cursor::new(Vec::new());
        image.write_to(&mut file, ImageFormat::Png)?;
        Ok(file.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_encoded_picture_is_decoded() {
        let file = Picture::png_of(GREEN, 7, 5).unwrap();
        let picture = Picture::decode(&file, "image/png").unwrap();
        assert_eq!(picture.size(), (7, 5));
        picture.expect(6, 4, GREEN).unwrap();
        picture.expect(6, 4, RED).unwrap_err();
        picture.expect(7, 4, GREEN).unwrap_err();
        assert_eq!(picture.count(GREEN), 35);
        let red = Picture::decode(&Picture::png_of(RED, 7, 5).unwrap(), "image/png").unwrap();
        assert_eq!((picture.differences(&picture), picture.differences(&red)), (0, 35));
        Picture::decode(&file, "image/jpeg").unwrap_err();
    }
}
