//! The examples of `docs/options.md`, and their pictures.

use std::path::Path;

use image::{DynamicImage, Rgba, RgbaImage, imageops};
use platen_harness::{
    option_examples::{Example, examples},
    settings::tests_dir,
};

use crate::prelude::*;

pub(crate) fn cases() -> Vec<Case> {
    vec![Case::any_server("option_pictures/are_those_of_the_examples", pictures)]
}

/// Side of the squares of a background that shows transparency, in pixels.
const SQUARE: u32 = 8;
const GAP: u32 = 24;

/// Every example renders, and has a picture if one shows what its field does; with `PLATEN_PICTURES` they are made anew in
/// that directory.
async fn pictures(stage: Stage) -> Result<()> {
    let target = stage.common().await?;
    let directory = std::env::var_os("PLATEN_PICTURES");
    for example in examples() {
        let name = &example.field;
        let Some(without) = &example.without else {
            let answer = target.post(RENDER, example.body().to_owned()).send().await?;
            ensure!(answer.status == 200, "{name}: {}", answer.summary());
            continue;
        };
        let picture = picture(&target, &example, without).await.with_context(|| name.clone())?;
        let committed = tests_dir().join(format!("../docs/pictures/{name}.png"));
        match &directory {
            Some(directory) => picture.save(Path::new(directory).join(format!("{name}.png")))?,
            None => ensure!(committed.exists(), "{name} has no picture: run scripts/document-pictures"),
        }
    }
    Ok(())
}

async fn picture(target: &Target, example: &Example, without: &[String]) -> Result<RgbaImage> {
    let body: Value = serde_json::from_str(example.body())?;
    let mut parts = Vec::new();
    if !without.is_empty() {
        let mut body = body.clone();
        let fields = body.as_object_mut().context("an object")?;
        fields.retain(|field, _| !without.contains(field));
        parts.extend(rendered(target, &body).await?);
    }
    let before = parts.len();
    parts.extend(rendered(target, &body).await?);
    ensure!(parts.len() > before, "no page");
    ensure!(parts[..before] != parts[before..], "the picture does not show what the field does");
    Ok(side_by_side(&parts))
}

/// The pages of the file of a request.
async fn rendered(target: &Target, body: &Value) -> Result<Vec<DynamicImage>> {
    pages(&target.post(RENDER, body.to_string()).send().await?, 36)
}

/// The pages of a PDF with so many pixels per inch, or an image as it is.
pub(crate) fn pages(answer: &Answer, resolution: u32) -> Result<Vec<DynamicImage>> {
    ensure!(answer.status == 200, "{}", answer.summary());
    if answer.header("content-type")? != "application/pdf" {
        return Ok(vec![image::load_from_memory(&answer.body)?]);
    }
    Pdf::parse(&answer.body)?.pictures(resolution)
}

/// The pictures in a row, each with a border and on squares that show which pixels are transparent.
pub(crate) fn side_by_side(parts: &[DynamicImage]) -> RgbaImage {
    let parts: Vec<_> =
        parts.iter().map(|part| part.thumbnail(part.width().min(480), part.height().min(480))).collect();
    let width = parts.iter().map(|part| part.width() + 2 + GAP).sum::<u32>() - GAP;
    let height = parts.iter().map(DynamicImage::height).max().unwrap_or_default() + 2;
    let mut row = RgbaImage::new(width, height);
    let mut left = 0;
    for part in parts {
        let mut framed =
            RgbaImage::from_pixel(part.width() + 2, part.height() + 2, Rgba([150, 160, 180, 255]));
        let squares = RgbaImage::from_fn(part.width(), part.height(), |x, y| {
            let shade = if (x / SQUARE + y / SQUARE).is_multiple_of(2) { 255 } else { 215 };
            Rgba([shade, shade, shade, 255])
        });
        imageops::replace(&mut framed, &squares, 1, 1);
        imageops::overlay(&mut framed, &part, 1, 1);
        imageops::replace(&mut row, &framed, left, 0);
        left += i64::from(framed.width() + GAP);
    }
    row
}
