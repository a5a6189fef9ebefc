//! A number that a page draws as coloured squares, which identifies the job of an image.
//!
//! Invariant: the number is drawn twice, the second time inverted. A square of any third colour makes the
//! marker invalid.

use image::RgbaImage;

/// Bits of a number.
pub(crate) const BITS: u32 = 16;
/// Width and height of a square in CSS pixels.
pub(crate) const SQUARE_SIZE: u32 = 20;

/// Colours of a set and of an unset bit.
pub(crate) const COLOURS: [&str; 2] = ["#0000ff", "#ffff00"];

/// The markup of a page that draws a number and has it in its title and text. As a template, the number is the only placeholder.
pub(crate) const TEMPLATE_HTML: &str = "<!doctype html><title>number {{number}}</title>\
    <style>i { position: absolute; width: 20px; height: 20px; -webkit-print-color-adjust: exact }</style>\
    <body style='margin: 50px 0 0'><p>number {{number}} is done</p><script>\
    const n = {{number}};\
    for (let k = 0; k < 32; k++) {\
      const square = document.createElement('i');\
      square.style.left = k % 16 * 20 + 'px'; square.style.top = (k >> 4) * 20 + 'px';\
      square.style.background = (k < 16 ? n >> k : ~n >> k - 16) & 1 ? '#0000ff' : '#ffff00';\
      document.body.append(square) }</script>";

/// The bits of a number, then of its inverse, the lowest bit first.
pub(crate) fn bits(number: u16) -> impl Iterator<Item = bool> {
    let all = u32::from(number) | u32::from(!number) << BITS;
    (0..2 * BITS).map(move |index| all >> index & 1 == 1)
}

/// The page of a number.
pub(crate) fn page(number: u16) -> String {
    TEMPLATE_HTML.replace("{{number}}", &number.to_string())
}

/// The number in an image, if its marker is valid.
pub(crate) fn decode(image: &RgbaImage) -> Option<u16> {
    let mut all = 0_u32;
    for index in 0..2 * BITS {
        let (x, y) =
            (index % BITS * SQUARE_SIZE + SQUARE_SIZE / 2, index / BITS * SQUARE_SIZE + SQUARE_SIZE / 2);
        let pixel = image.get_pixel_checked(x, y)?.0;
        if is_near(pixel, [0, 0, 255, 255]) {
            all |= 1 << index;
        } else if !is_near(pixel, [255, 255, 0, 255]) {
            return None;
        }
    }
    let number = u16::try_from(all & 0xffff).ok()?;
    (all >> BITS == u32::from(!number)).then_some(number)
}

/// Equal but for what lossy formats change.
fn is_near(pixel: [u8; 4], colour: [u8; 4]) -> bool {
    const TOLERANCE: u8 = 24;
    pixel.iter().zip(colour).all(|(one, other)| one.abs_diff(other) <= TOLERANCE)
}

#[cfg(test)]
mod tests {
    use image::Rgba;

    use super::*;

    fn drawn(number: u16) -> RgbaImage {
        let mut image = RgbaImage::from_pixel(400, 60, Rgba([255, 255, 255, 255]));
        for (index, set) in (0..).zip(bits(number)) {
            let colour = if set { [0, 0, 255, 255] } else { [255, 255, 0, 255] };
            for (x, y) in (0..SQUARE_SIZE).flat_map(|x| (0..SQUARE_SIZE).map(move |y| (x, y))) {
                image.put_pixel(index % BITS * SQUARE_SIZE + x, index / BITS * SQUARE_SIZE + y, Rgba(colour));
            }
        }
        image
    }

    #[test]
    fn a_wrong_square_makes_the_marker_invalid() {
        let mut image = drawn(77);
        assert_eq!(decode(&image), Some(77));
        image.put_pixel(SQUARE_SIZE / 2, SQUARE_SIZE / 2, Rgba([255, 255, 0, 255]));
        assert_eq!(decode(&image), None);
        image.put_pixel(SQUARE_SIZE / 2, SQUARE_SIZE / 2, Rgba([255, 0, 0, 255]));
        assert_eq!(decode(&image), None);
        assert_eq!(decode(&RgbaImage::new(10, 10)), None);
    }
}
