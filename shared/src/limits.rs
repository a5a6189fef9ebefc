//! Every limit and default of the public API.
//!
//! Invariant: the code has each number from here. `openapi.json` has copies, which `tests/api/openapi.rs` compares.
//! The prose of other documents has copies that no test compares: search `docs/` when a number changes.

use std::ops::RangeInclusive;

use crate::length::Length;

/// Maximum of `html`, and of a filled template, in bytes of UTF-8 (5 MiB).
pub const MAX_HTML_BYTES: usize = 5 * 1024 * 1024;
/// Maximum of a request body in bytes (32 MiB): enough for 5 MiB of HTML with every character escaped.
pub const MAX_BODY_BYTES: usize = 32 * 1024 * 1024;
/// Maximum of `url` in Unicode scalar values.
pub const MAX_URL_CHARS: usize = 2_048;
/// Maximum of `fileName` in Unicode scalar values.
pub const MAX_FILE_NAME_CHARS: usize = 160;
/// Maximum of a download file name without its extension, in ASCII characters.
pub const MAX_FILE_STEM_CHARS: usize = 80;
/// Maximum number of entries in `variables`.
pub const MAX_VARIABLES: usize = 1_000;
/// Maximum of `data` in bytes of its JSON text (5 MiB).
pub const MAX_DATA_BYTES: usize = 5 * 1024 * 1024;
/// Maximum of objects and arrays within each other in `data`, with `data` itself.
pub const MAX_DATA_LEVELS: usize = 32;
/// Maximum number of device pixels in one image.
pub const MAX_IMAGE_PIXELS: u64 = 100_000_000;
/// Allowed `width` and `height` in CSS pixels.
pub const VIEWPORT_SIDE_RANGE: RangeInclusive<u32> = 1..=7_680;
/// Default `width` in CSS pixels of an image's viewport. That of a PDF is
/// [`PdfOptions::content_width`](crate::job::PdfOptions::content_width).
pub const DEFAULT_WIDTH: u32 = 1_280;
/// Default `height` in CSS pixels.
pub const DEFAULT_HEIGHT: u32 = 720;
/// The margins with which the default width of a PDF's page is computed where a request has none; they are those of
/// Chromium, 1 cm.
pub const DEFAULT_PDF_MARGIN: Length = Length::mm_of(10.0);
/// Allowed `deviceScaleFactor` in device pixels per CSS pixel.
pub const DEVICE_SCALE_FACTOR_RANGE: RangeInclusive<f64> = 0.1..=4.0;
/// Allowed `scale` of a PDF.
pub const PDF_SCALE_RANGE: RangeInclusive<f64> = 0.1..=2.0;
/// Allowed `waitForTimeout` in milliseconds.
pub const WAIT_FOR_TIMEOUT_MS_RANGE: RangeInclusive<f64> = 0.0..=10_000.0;
/// Maximum and default real time from the claim to the last byte of the file, in milliseconds.
pub const RENDER_TIMEOUT_MS: u64 = 30_000;
/// Maximum time for which an edge uses attempts that it has claimed ahead, in seconds.
pub const MAX_CLAIM_AHEAD_SECONDS: u64 = 30;
/// Maximum of a link's address in bytes, without scheme and host.
pub const MAX_LINK_BYTES: usize = 8_000;
/// Default of the time for which a link's files may be cached, in seconds.
pub const DEFAULT_LINK_MAX_AGE: u32 = 86_400;
/// Maximum of it: a year.
pub const MAX_LINK_MAX_AGE: u32 = 31_536_000;
/// Default of a link's limit of attempts in a day (UTC).
pub const DEFAULT_LINK_DAILY_LIMIT: u32 = 1_000;
/// Maximum of `headerHtml` and of `footerHtml`, also with the variables of a template filled in, in bytes of UTF-8.
pub const MAX_HEADER_BYTES: usize = 64 * 1024;
/// Maximum of `css` in bytes of UTF-8.
pub const MAX_CSS_BYTES: usize = 256 * 1024;
/// Maximum of `selector` and `waitForSelector` in Unicode scalar values.
pub const MAX_SELECTOR_CHARS: usize = 1_000;
/// Characters of a JavaScript expression.
pub const MAX_EXPRESSION_CHARS: usize = 10_000;
/// Maximum of a text of `metadata` in Unicode scalar values.
pub const MAX_METADATA_CHARS: usize = 1_000;
/// Maximum of `invoiceXml` in bytes of UTF-8 (2 MiB).
pub const MAX_INVOICE_BYTES: usize = 2 * 1024 * 1024;
/// Maximum number of `attachments`.
pub const MAX_ATTACHMENTS: usize = 20;
/// Maximum of all `attachments` in bytes, without their base64 (10 MiB).
pub const MAX_ATTACHMENT_BYTES: usize = 10 * 1024 * 1024;
/// Maximum number of `assets`.
pub const MAX_ASSETS: usize = 100;
/// Maximum of all `assets` in bytes, without their base64 (20 MiB).
pub const MAX_ASSET_BYTES: usize = 20 * 1024 * 1024;
/// Maximum number of the files of a template.
pub const MAX_TEMPLATE_FILES: usize = 50;
/// Maximum of all files of a template in bytes (4 MiB).
pub const MAX_TEMPLATE_FILE_BYTES: usize = 4 * 1024 * 1024;
/// Maximum of what a page gets from a folder beside its markup in bytes (256 MB, as from the network by default).
pub const MAX_FOLDER_BYTES: usize = 256_000_000;
/// Maximum of the path of an asset in Unicode scalar values.
pub const MAX_ASSET_PATH_CHARS: usize = 200;
/// Maximum number of `blockHosts`.
pub const MAX_BLOCKED_HOSTS: usize = 100;
/// Maximum of the name of an attachment in Unicode scalar values.
pub const MAX_ATTACHMENT_NAME_CHARS: usize = 160;
/// Maximum of a password of a PDF in bytes of UTF-8 (ISO 32000-2, 7.6.4.3.3).
pub const MAX_PDF_PASSWORD_BYTES: usize = 127;
/// Maximum of `userAgent` in characters of ASCII.
pub const MAX_USER_AGENT_CHARS: usize = 500;
/// Maximum number of ranges in `pageRanges`.
pub const MAX_PAGE_RANGES: usize = 100;
/// Allowed `pdfWidth` and `pdfHeight` in millimetres. The maximum is 200 inches, the largest page of PDF 1.7 (annex
/// C.2).
pub const PDF_SIDE_MM_RANGE: RangeInclusive<f64> = 10.0..=5_080.0;
/// The larger of them.
pub const MAX_PDF_SIDE: Length = Length::mm_of(*PDF_SIDE_MM_RANGE.end());
/// Allowed `quality` of JPEG and WebP.
pub const QUALITY_RANGE: RangeInclusive<u8> = 1..=100;
/// Default `quality`, which is also Chromium's: text has no visible artefacts at a normal viewing distance.
pub const DEFAULT_QUALITY: u8 = 80;
/// Allowed `x` and `y` of `clip` in CSS pixels. The maximum is above the largest page that Chromium lays out.
pub const CLIP_OFFSET_RANGE: RangeInclusive<f64> = 0.0..=100_000_000.0;
/// Allowed `width` and `height` of `clip` in CSS pixels.
pub const CLIP_SIDE_RANGE: RangeInclusive<f64> = 1.0..=100_000_000.0;
/// Rows of requests of one account and minute that were refused before an attempt was recorded. A trigger of the schema has
/// the same limit.
pub const MAX_REJECTED_ROWS: u32 = 30;
