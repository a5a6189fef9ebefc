//! A small picture of a file that a tool has written, for models that see pictures.

use std::{io::Cursor, path::Path, process::Stdio, time::Duration};

use image::{DynamicImage, ImageReader, Rgb, RgbImage, codecs::jpeg::JpegEncoder, imageops};
use platen_shared::format::OutputFormat;
use tokio::{process::Command, task::spawn_blocking, time::timeout};

/// The longer side of a picture in pixels: text of a page is legible, and a JPEG has some 50 KB.
const SIDE: u32 = 800;
/// A taller image is shown in part.
const MAX_HEIGHT_PER_WIDTH: u32 = 2;
const QUALITY: u8 = 80;
/// The time for one page of a PDF.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The media type of a picture.
pub(super) const MEDIA_TYPE: &str = "image/jpeg";

/// A picture, or why there is none.
pub(super) type Picture = Result<Vec<u8>, &'static str>;

/// The picture of a file with this content: of the first page of a PDF, and of an image, or of its top if it is tall.
pub(super) async fn of(path: &Path, bytes: &[u8], format: OutputFormat) -> Picture {
    match format {
        OutputFormat::Pdf => of_pdf(path).await,
        OutputFormat::Image(_) => {
            let bytes = bytes.to_owned();
            spawn_blocking(move || of_image(&bytes)).await.ok().flatten().ok_or("the image is too large")
        }
    }
}

/// The path is absolute, so that it is no option.
async fn of_pdf(path: &Path) -> Picture {
    let mut program = Command::new("pdftoppm");
    program.args(["-f", "1", "-l", "1", "-singlefile", "-jpeg", "-scale-to", &SIDE.to_string()]).arg(path);
    program.stdin(Stdio::null()).kill_on_drop(true);
    match timeout(TIMEOUT, program.output()).await {
        Ok(Ok(output)) if output.status.success() && !output.stdout.is_empty() => Ok(output.stdout),
        Ok(Err(_)) => Err("pdftoppm is not installed (poppler-utils)"),
        Err(_) => Err("pdftoppm takes too long"),
        // It cannot open a file with a password.
        Ok(Ok(_)) => Err("pdftoppm does not show this file"),
    }
}

/// The picture of an image; `None` for one that takes too much memory.
fn of_image(bytes: &[u8]) -> Option<Vec<u8>> {
    let image = ImageReader::new(Cursor::new(bytes)).with_guessed_format().ok()?.decode().ok()?;
    let top = image.width().saturating_mul(MAX_HEIGHT_PER_WIDTH).min(image.height());
    let top = if top < image.height() { image.crop_imm(0, 0, image.width(), top) } else { image };
    let small = if top.width().max(top.height()) > SIDE { top.thumbnail(SIDE, SIDE) } else { top };
    let mut jpeg = Vec::new();
    on_white(&small).write_with_encoder(JpegEncoder::new_with_quality(&mut jpeg, QUALITY)).ok()?;
    Some(jpeg)
}

/// JPEG has no transparency.
fn on_white(image: &DynamicImage) -> RgbImage {
    let mut page =
        DynamicImage::ImageRgb8(RgbImage::from_pixel(image.width(), image.height(), Rgb([255; 3])));
    imageops::overlay(&mut page, image, 0, 0);
    page.into_rgb8()
}

#[cfg(test)]
mod tests {
    use image::{ImageFormat, Rgba, RgbaImage};

    use super::*;

    #[test]
    fn pictures_are_small_and_show_the_top() {
        let mut image = RgbaImage::from_pixel(1000, 5000, Rgba([0, 0, 0, 0]));
        imageops::replace(&mut image, &RgbaImage::from_pixel(1000, 1000, Rgba([0, 0, 255, 255])), 0, 0);
        for format in [ImageFormat::Png, ImageFormat::WebP] {
            let mut file = Cursor::new(Vec::new());
            image.write_to(&mut file, format).unwrap();
            let picture = image::load_from_memory(&of_image(file.get_ref()).unwrap()).unwrap().into_rgb8();
            assert_eq!(picture.dimensions(), (400, 800));
            // The colour of the upper half, and white for what is transparent.
            for (y, expected) in [(200, [0, 0, 255]), (600, [255, 255, 255])] {
                let pixel = picture.get_pixel(200, y).0;
                assert!(pixel.iter().zip(expected).all(|(is, to_be)| is.abs_diff(to_be) < 8), "{pixel:?}");
            }
        }
        assert_eq!(of_image(b"no image"), None);
    }
}
