//! A number that a page draws as coloured squares, so that a file says which job it is of.
//!
//! Invariant: the number stands there twice, the second time inverted; a square of any third colour is
//! no number at all.

use image::RgbaImage;

/// Bits of a number.
pub(super) const BITS: u32 = 16;
/// One side of a square in CSS pixels.
pub(super) const SIDE: u32 = 20;

/// The colours of a page's squares: a bit that is set, one that is not.
pub(super) const COLOURS: [&str; 2] = ["#0000ff", "#ffff00"];

/// The bits of a number and of its inverse, the lowest first.
pub(super) fn bits(number: u16) -> impl Iterator<Item = bool> {
    let all = u32::from(number) | u32::from(!number) << BITS;
    (0..2 * BITS).map(move |place| all >> place & 1 == 1)
}

/// The number in a picture.
pub(super) fn decode(picture: &RgbaImage) -> Option<u16> {
    let mut all = 0_u32;
    for place in 0..2 * BITS {
        let (x, y) = (place % BITS * SIDE + SIDE / 2, place / BITS * SIDE + SIDE / 2);
        match picture.get_pixel_checked(x, y)?.0 {
            [0, 0, 255, 255] => all |= 1 << place,
            [255, 255, 0, 255] => {}
            _ => return None,
        }
    }
    let number = u16::try_from(all & 0xffff).ok()?;
    (all >> BITS == u32::from(!number)).then_some(number)
}

#[cfg(test)]
mod tests {
    use image::Rgba;

    use super::*;

    fn drawn(number: u16) -> RgbaImage {
        let mut picture = RgbaImage::from_pixel(400, 60, Rgba([255, 255, 255, 255]));
        for (place, set) in (0..).zip(bits(number)) {
            let colour = if set { [0, 0, 255, 255] } else { [255, 255, 0, 255] };
            for (x, y) in (0..SIDE).flat_map(|x| (0..SIDE).map(move |y| (x, y))) {
                picture.put_pixel(place % BITS * SIDE + x, place / BITS * SIDE + y, Rgba(colour));
            }
        }
        picture
    }

    #[test]
    fn a_number_comes_back() {
        for number in [0, 1, 1_000, 0xaaaa, u16::MAX] {
            assert_eq!(decode(&drawn(number)), Some(number));
        }
    }

    #[test]
    fn a_square_that_is_off_is_no_number() {
        let mut picture = drawn(77);
        picture.put_pixel(SIDE / 2, SIDE / 2, Rgba([255, 255, 0, 255]));
        assert_eq!(decode(&picture), None);
        picture.put_pixel(SIDE / 2, SIDE / 2, Rgba([255, 0, 0, 255]));
        assert_eq!(decode(&picture), None);
        assert_eq!(decode(&RgbaImage::new(10, 10)), None);
    }
}
