//! Parsed PDF files: their pages with a PDF library, their text and pixels with poppler.

use std::{collections::BTreeMap, fs, process::Command};

use anyhow::{Context as _, Result, ensure};
use image::DynamicImage;
use lopdf::{Dictionary, Document, Object, decode_text_string};
use tempfile::TempDir;

use crate::image_file::Picture;

/// A word of a page. The box is in points from the top left corner.
#[derive(Debug, Clone, PartialEq)]
pub struct Word {
    /// Number of the page, from 1.
    pub page: usize,
    pub text: String,
    pub left: f64,
    pub top: f64,
    pub right: f64,
    pub bottom: f64,
}

#[derive(Debug)]
pub struct Pdf {
    bytes: Vec<u8>,
    document: Document,
}

impl Pdf {
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        ensure!(bytes.starts_with(b"%PDF-"), "the file does not start as a PDF");
        let end = &bytes[bytes.len().saturating_sub(16)..];
        ensure!(end.windows(5).any(|window| window == b"%%EOF"), "the file does not end as a PDF");
        Ok(Self { bytes: bytes.to_vec(), document: Document::load_mem(bytes)? })
    }

    /// Width and height of every page in points (1/72 inch).
    pub fn pages(&self) -> Result<Vec<(f64, f64)>> {
        let pages = self.document.get_pages();
        pages.into_values().map(|id| self.size(self.document.get_dictionary(id)?)).collect()
    }

    fn size(&self, page: &Dictionary) -> Result<(f64, f64)> {
        let Ok(media_box) = page.get(b"MediaBox") else {
            let parent = page.get(b"Parent").context("a page has no media box")?.as_reference()?;
            return self.size(self.document.get_dictionary(parent)?);
        };
        let corners: Vec<f64> =
            self.document.dereference(media_box)?.1.as_array()?.iter().map(number).collect();
        let [left, bottom, right, top] = corners[..] else { anyhow::bail!("the media box is {corners:?}") };
        Ok((right - left, top - bottom))
    }

    /// The title in its metadata.
    pub fn title(&self) -> Result<String> {
        let info = self.document.dereference(self.document.trailer.get(b"Info")?)?.1.as_dict()?;
        Ok(decode_text_string(info.get(b"Title")?)?)
    }

    /// The text of all pages, with white space made single spaces.
    pub fn text(&self) -> Result<String> {
        let text = self.poppler("pdftotext", &["-enc", "UTF-8"], &["-"])?;
        Ok(String::from_utf8(text)?.split_whitespace().collect::<Vec<_>>().join(" "))
    }

    /// The text of all pages with its lines and columns, without page breaks.
    pub fn layout(&self) -> Result<String> {
        Ok(String::from_utf8(self.poppler(
            "pdftotext",
            &["-layout", "-nopgbrk", "-enc", "UTF-8"],
            &["-"],
        )?)?)
    }

    /// The words of all pages with their positions.
    pub fn words(&self) -> Result<Vec<Word>> {
        let text = String::from_utf8(self.poppler("pdftotext", &["-bbox", "-enc", "UTF-8"], &["-"])?)?;
        let (mut words, mut page) = (Vec::new(), 0);
        for line in text.lines().map(str::trim) {
            if line.starts_with("<page ") {
                page += 1;
            }
            let Some((attributes, rest)) = line.strip_prefix("<word ").and_then(|word| word.split_once('>'))
            else {
                continue;
            };
            let attribute = |name: &str| -> Result<f64> {
                let (_, value) =
                    attributes.split_once(&format!("{name}=\"")).context("a word without a box")?;
                Ok(value.split('"').next().unwrap_or_default().parse()?)
            };
            let (left, top) = (attribute("xMin")?, attribute("yMin")?);
            let (right, bottom) = (attribute("xMax")?, attribute("yMax")?);
            let text = rest.trim_end_matches("</word>").to_owned();
            words.push(Word { page, text, left, top, right, bottom });
        }
        Ok(words)
    }

    /// The first word with this text.
    pub fn word(&self, text: &str) -> Result<Word> {
        let words = self.words()?;
        let found = words.iter().find(|word| word.text == text).cloned();
        found.with_context(|| format!("{text} is not in {words:?}"))
    }

    /// Whether it has a structure tree (tagged PDF).
    pub fn is_tagged(&self) -> Result<bool> {
        Ok(self.document.catalog()?.has(b"StructTreeRoot"))
    }

    /// The elements of its structure tree, with their text.
    pub fn structure(&self) -> Result<String> {
        Ok(String::from_utf8(self.poppler("pdfinfo", &["-struct-text"], &[])?)?)
    }

    /// The links of all pages to other documents, with their pages.
    pub fn links(&self) -> Result<Vec<String>> {
        let links = String::from_utf8(self.poppler("pdfinfo", &["-url"], &[])?)?;
        Ok(links.lines().skip(1).map(str::to_owned).collect())
    }

    /// The names of its fonts.
    pub fn fonts(&self) -> Result<Vec<String>> {
        let fonts = String::from_utf8(self.poppler("pdffonts", &[], &[])?)?;
        Ok(fonts.lines().skip(2).filter_map(|line| line.split(' ').next()).map(str::to_owned).collect())
    }

    /// The titles in its outline, from top to bottom.
    pub fn outline(&self) -> Result<Vec<String>> {
        let mut titles = Vec::new();
        if let Ok(root) = self.document.catalog()?.get(b"Outlines") {
            self.collect_titles(self.document.dereference(root)?.1.as_dict()?, &mut titles)?;
        }
        Ok(titles)
    }

    fn collect_titles(&self, entry: &Dictionary, titles: &mut Vec<String>) -> Result<()> {
        let mut next = entry.get(b"First").ok();
        while let Some(item) = next {
            let item = self.document.dereference(item)?.1.as_dict()?;
            titles.push(decode_text_string(item.get(b"Title")?)?);
            self.collect_titles(item, titles)?;
            next = item.get(b"Next").ok();
        }
        Ok(())
    }

    /// The files in it by their names.
    pub fn files(&self) -> Result<BTreeMap<String, Vec<u8>>> {
        let directory = TempDir::new()?;
        let path = directory.path().to_str().context("not a UTF-8 path")?;
        self.poppler("pdfdetach", &["-saveall", "-enc", "UTF-8", "-o", path], &[])?;
        let entries = fs::read_dir(path)?.map(|entry| {
            let entry = entry?;
            let name = entry.file_name().into_string().ok().context("not a UTF-8 name")?;
            Ok((name, fs::read(entry.path())?))
        });
        entries.collect()
    }

    /// The first page as a picture with one pixel a point.
    pub fn first_page(&self) -> Result<Picture> {
        let options = ["-png", "-r", "72", "-f", "1", "-l", "1", "-singlefile"];
        Picture::decode(&self.poppler("pdftoppm", &options, &[])?, "image/png")
    }

    /// All pages as pictures with so many pixels per inch.
    pub fn pictures(&self, resolution: u32) -> Result<Vec<DynamicImage>> {
        let directory = TempDir::new()?;
        let prefix = directory.path().join("page");
        let prefix = prefix.to_str().context("not a UTF-8 path")?;
        self.poppler("pdftoppm", &["-png", "-r", &resolution.to_string()], &[prefix])?;
        let files = fs::read_dir(directory.path())?.map(|file| Ok(file?.path()));
        let mut files = files.collect::<Result<Vec<_>>>()?;
        // Numbers are padded to the same number of digits.
        files.sort();
        files.iter().map(|file| Ok(image::open(file)?)).collect()
    }

    fn poppler(&self, program: &str, before: &[&str], after: &[&str]) -> Result<Vec<u8>> {
        let directory = TempDir::new()?;
        let file = directory.path().join("file.pdf");
        fs::write(&file, &self.bytes)?;
        let output = Command::new(program).args(before).arg(&file).args(after).output();
        let output = output.with_context(|| format!("no {program}: install poppler-utils"))?;
        ensure!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(output.stdout)
    }
}

/// The bytes of a file without the times at which it was made.
pub fn without_dates(pdf: &[u8]) -> Vec<u8> {
    const DATE: &str = "(D:20260131235959+00'00')";
    let mut pdf = pdf.to_vec();
    for at in 0..pdf.len().saturating_sub(DATE.len()) {
        if pdf[at..].starts_with(b"(D:") {
            pdf[at..at + DATE.len()].fill(0);
        }
    }
    pdf
}

fn number(object: &Object) -> f64 {
    object.as_float().map_or(f64::NAN, f64::from)
}
