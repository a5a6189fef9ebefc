//! The job that an edge sends to a farm, with all defaults filled in.
//!
//! Invariant: every [`RenderJob`] is valid once it is sent. Deserialisation checks the values again, so a farm does not
//! have to trust its caller.

mod asset;
mod document;
mod environment;
mod invoice;
mod jinja;
mod number;
mod output;
mod text;
mod xml_reader;

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use url::Url;

pub use self::{
    asset::{Asset, AssetContent, AssetPath, AssetText, AssetType, ContentHash, DamagedFile, path_names},
    document::{
        Attachment, DocumentOptions, Metadata, PdfA, PdfStandard, Permission, Protection, Relationship,
    },
    environment::{Animations, ColorScheme, Environment, MediaType, PageProblem},
    invoice::{InvalidInvoice, InvoiceProfile, InvoiceXml},
    jinja::{InvalidData, JinjaTemplate, TemplateData, Variable},
    number::{DeviceScaleFactor, OutOfRange, PdfScale, Quality, Side, WaitMs},
    output::{Clip, ImageOptions, Margins, Output, Pages, PdfOptions, Region, Sheet},
    text::{
        AttachmentName, Base64, Date, Expression, HeaderHtml, Html, MetadataText, MimeType, PdfPassword,
        Selector, StyleText, UserAgent,
    },
};
use crate::{
    format::WaitUntil,
    host_names::HostNames,
    id::AccountId,
    limits,
    url_rule::{self, InvalidUrl},
};

/// A rule on several options that a job breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the variants")]
pub enum InvalidOptions {
    #[error("an image of {pixels} pixels is over the limit of {}", limits::MAX_IMAGE_PIXELS)]
    TooManyPixels { pixels: u64, is_clip: bool },
    #[error("leaves no space for the page")]
    NoSpaceBetweenMargins,
    #[error("must have at most {} files", limits::MAX_ATTACHMENTS)]
    TooManyAttachments,
    #[error("must have at most {} bytes in all", limits::MAX_ATTACHMENT_BYTES)]
    AttachmentsTooLarge,
    #[error("is also the name of another file")]
    RepeatedName { index: usize },
    #[error("must have a password that is not empty, \"userPassword\" or \"ownerPassword\"")]
    NoPassword,
    #[error("must have each permission only once")]
    RepeatedPermission,
    #[error("must have at most {} files", limits::MAX_ASSETS)]
    TooManyAssets,
    #[error("must have at most {} bytes in all", limits::MAX_ASSET_BYTES)]
    AssetsTooLarge,
    #[error("has a path twice")]
    RepeatedAsset,
    #[error("a PDF/A-2b has no files")]
    FilesInA2b,
    #[error("a PDF/A-2b has no invoice")]
    InvoiceInA2b,
    #[error("a file of a standard has no passwords")]
    ProtectedStandard,
    #[error("a file with an invoice has no passwords")]
    ProtectedInvoice,
}

/// One render: the JSON body of `POST /v1/jobs` of a farm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RenderJob {
    /// The owner of the job. The farm shares its slots fairly between accounts, and no two of them use the
    /// same page.
    pub account: AccountId,
    /// The document to render.
    pub source: Source,
    /// How to render it.
    pub options: RenderOptions,
}

impl RenderJob {
    /// Whether the document has an address: its URL, or that of its markup.
    #[must_use]
    pub fn has_address(&self) -> bool {
        matches!(self.source, Source::Url(_))
            || self.options.assets.is_some()
            || self.options.base_url.is_some()
    }

    /// Adds the files of a template as assets, but those with a path that is equal to that of an asset of the request.
    pub fn add_template_files(&mut self, files: impl Iterator<Item = Asset>) {
        let mut files = files.peekable();
        if files.peek().is_none() {
            return;
        }
        let assets = self.options.assets.get_or_insert_default();
        let taken: Vec<Vec<String>> = assets.iter().map(|asset| path_names(asset.path.as_str())).collect();
        assets.extend(files.filter(|file| !taken.contains(&path_names(file.path.as_str()))));
    }

    /// The files of a template in the job: their hashes, and their contents as far as they are there.
    pub fn template_files(&mut self) -> impl Iterator<Item = (&ContentHash, &mut Option<Arc<Base64>>)> {
        self.options.assets.iter_mut().flatten().filter_map(|asset| match &mut asset.content {
            AssetContent::Stored { hash, content } => Some((&*hash, content)),
            AssetContent::Base64(_) | AssetContent::Text(_) => None,
        })
    }

    /// Sets the contents of the files of a template.
    ///
    /// # Errors
    /// [`DamagedFile`] if one is not among `contents`.
    pub fn set_contents(&mut self, contents: &BTreeMap<ContentHash, Vec<u8>>) -> Result<(), DamagedFile> {
        self.template_files().try_for_each(|(hash, content)| {
            *content = Some(Arc::new(Base64::of(contents.get(hash).ok_or(DamagedFile)?)));
            Ok(())
        })
    }
}

/// The document to render.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// Markup of the caller, or a filled template.
    Html(Html),
    /// The URL of a page that the browser loads.
    Url(PageUrl),
    /// A template that the farm fills before the browser gets it.
    Jinja(JinjaTemplate),
}

/// A URL that passes [`url_rule`]. Its host may still resolve to any address, about which the farm decides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PageUrl(Url);

impl PageUrl {
    /// A URL that the operator gives, with a host that need not be public. A job that has it is not read from JSON, so it is for
    /// a farm in the same process.
    ///
    /// # Errors
    /// The first rule of [`url_rule`] that the URL breaks, apart from that on its host.
    pub fn of_operator(text: &str) -> Result<Self, InvalidUrl> {
        url_rule::parse_with_any_host(text).map(Self)
    }

    /// The parsed URL, with its host in ASCII.
    #[must_use]
    pub fn as_url(&self) -> &Url {
        &self.0
    }
}

impl TryFrom<String> for PageUrl {
    type Error = InvalidUrl;

    fn try_from(text: String) -> Result<Self, InvalidUrl> {
        url_rule::parse(&text).map(Self)
    }
}

impl From<PageUrl> for String {
    fn from(url: PageUrl) -> Self {
        url.0.into()
    }
}

/// How to render a document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct RenderOptions {
    /// Size of the page's window.
    #[serde(default)]
    pub viewport: Viewport,
    /// What the page can read about its reader.
    #[serde(default)]
    pub environment: Environment,
    /// A style sheet that is added after those of the page.
    #[serde(default)]
    pub css: Option<StyleText>,
    /// The milestone at which the page counts as loaded.
    #[serde(default)]
    pub wait_until: WaitUntil,
    /// Time to wait after the milestone, in milliseconds of the page's clock.
    #[serde(default)]
    pub wait_for_timeout: WaitMs,
    /// An element that must be there and visible after the milestone.
    #[serde(default)]
    pub wait_for_selector: Option<Selector>,
    /// An expression that must be true after the milestone.
    #[serde(default)]
    pub wait_for_function: Option<Expression>,
    /// Whether the job fails if the page has an HTTP status of 400 or more.
    #[serde(default)]
    pub fail_on_http_status: bool,
    /// Files beside the markup. Also without any, markup that has this has an address.
    #[serde(default)]
    pub assets: Option<Vec<Asset>>,
    /// The address of the markup; without it one that only this job has, if it has `assets`.
    #[serde(default)]
    pub base_url: Option<PageUrl>,
    /// What makes the job fail if the page does it.
    #[serde(default)]
    pub fail_on: Vec<PageProblem>,
    /// Hosts to which the page may not connect.
    #[serde(default)]
    pub block_hosts: Vec<HostNames>,
    /// What happens to animations before the capture.
    #[serde(default)]
    pub animations: Animations,
    /// Whether the page is scrolled through before more than its viewport is captured.
    #[serde(default = "yes")]
    pub scroll: bool,
    /// Kind of file, and its options.
    pub output: Output,
}

fn yes() -> bool {
    true
}

impl RenderOptions {
    /// The defaults of all options but those of the file.
    #[must_use]
    pub fn new(output: Output) -> Self {
        Self {
            viewport: Viewport::default(),
            environment: Environment::default(),
            css: None,
            wait_until: WaitUntil::default(),
            wait_for_timeout: WaitMs::default(),
            wait_for_selector: None,
            wait_for_function: None,
            fail_on_http_status: false,
            assets: None,
            base_url: None,
            fail_on: Vec::new(),
            block_hosts: Vec::new(),
            animations: Animations::default(),
            scroll: true,
            output,
        }
    }

    /// Whether the markup has an address that no file may show, because only this job has it.
    #[must_use]
    pub fn has_own_address(&self) -> bool {
        self.assets.is_some() && self.base_url.is_none()
    }

    /// Checks the rules that concern several fields: number, size and paths of the assets of request and template, the number of pixels of an image, as
    /// far as it does not depend on the page, and the margins and the document of a PDF.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn check(&self) -> Result<(), InvalidOptions> {
        let assets = self.assets.as_deref().unwrap_or_default();
        if assets.len() > limits::MAX_ASSETS + limits::MAX_TEMPLATE_FILES {
            return Err(InvalidOptions::TooManyAssets);
        }
        let bytes: usize = assets.iter().map(Asset::bytes).sum();
        if bytes > limits::MAX_ASSET_BYTES + limits::MAX_TEMPLATE_FILE_BYTES {
            return Err(InvalidOptions::AssetsTooLarge);
        }
        if Asset::repeated(assets).is_some() {
            return Err(InvalidOptions::RepeatedAsset);
        }
        self.output.check(&self.viewport)
    }
}

impl Serialize for RenderOptions {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for RenderOptions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let options = Self::deserialize(deserializer)?;
        options.check().map_err(D::Error::custom)?;
        Ok(options)
    }
}

/// The viewport of a page.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Viewport {
    /// Width in CSS pixels.
    pub width: Side,
    /// Height in CSS pixels.
    pub height: Side,
    /// Device pixels per CSS pixel.
    pub device_scale_factor: DeviceScaleFactor,
    /// Whether the page is shown as on a mobile device: `<meta name=viewport>` holds, and there is a touch screen.
    #[serde(default)]
    pub mobile: bool,
}

impl Viewport {
    /// Number of device pixels of the viewport; see [`device_pixels`].
    #[must_use]
    pub fn device_pixels(&self) -> u64 {
        device_pixels(self.width.get(), self.height.get(), self.device_scale_factor)
    }
}

impl Default for Viewport {
    fn default() -> Self {
        Self {
            width: Side(limits::DEFAULT_WIDTH),
            height: Side(limits::DEFAULT_HEIGHT),
            device_scale_factor: DeviceScaleFactor::default(),
            mobile: false,
        }
    }
}

/// Number of device pixels of `width` × `height` CSS pixels. Each side is rounded to the nearest pixel and
/// is at least one.
#[must_use]
pub fn device_pixels(width: u32, height: u32, factor: DeviceScaleFactor) -> u64 {
    let side = |css: u32| rounded_pixels(css.into(), factor);
    side(width).saturating_mul(side(height))
}

/// A length of CSS pixels in whole device pixels, at least one.
#[must_use]
pub fn rounded_pixels(css: f64, factor: DeviceScaleFactor) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast saturates")]
    let pixels = (css * factor.get()).round() as u64;
    pixels.max(1)
}
