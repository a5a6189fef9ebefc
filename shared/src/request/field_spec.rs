//! What each field of a request is: its type, default and bounds, and a description. The `OpenAPI` document, the command
//! line, the documentation and the dashboard take them from here.

use strum::VariantNames as _;

use super::{FieldKind, FieldName, Formats};
use crate::{
    format::{OutputFormat, PaperSize, WaitUntil},
    job::{Animations, ColorScheme, MediaType, PageProblem},
    limits,
};

/// A field of a request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FieldSpec {
    /// Its values.
    pub kind: FieldKind,
    /// The value that it has if it is left out, as JSON.
    pub default: Option<&'static str>,
    /// The formats for which it has an effect.
    pub formats: Formats,
    /// What it does, in Markdown.
    pub description: &'static str,
}

const BOOLEAN: FieldSpec =
    FieldSpec { kind: FieldKind::Boolean, default: Some("false"), formats: Formats::All, description: "" };

const fn text(min_chars: usize, max_chars: usize) -> FieldSpec {
    FieldSpec { kind: FieldKind::Text { min_chars, max_chars }, default: None, ..BOOLEAN }
}

const fn choice(names: &'static [&'static str], default: &'static str) -> FieldSpec {
    FieldSpec { kind: FieldKind::Choice(names), default: Some(default), ..BOOLEAN }
}

const fn number(min: f64, max: f64, whole: bool, default: Option<&'static str>) -> FieldSpec {
    FieldSpec { kind: FieldKind::Number { min, max, whole }, default, ..BOOLEAN }
}

const fn texts(max: usize) -> FieldSpec {
    FieldSpec { kind: FieldKind::Texts { max }, default: Some("[]"), ..BOOLEAN }
}

const fn of_pdf(kind: FieldKind) -> FieldSpec {
    FieldSpec { kind, default: None, formats: Formats::Pdf, description: "" }
}

impl FieldSpec {
    const fn of(self, formats: Formats) -> Self {
        Self { formats, ..self }
    }

    const fn says(self, description: &'static str) -> Self {
        Self { description, ..self }
    }
}

impl FieldName {
    /// What the field is.
    #[must_use]
    #[expect(clippy::too_many_lines, reason = "a table")]
    pub const fn spec(self) -> FieldSpec {
        const SIDE: (f64, f64) =
            (*limits::VIEWPORT_SIDE_RANGE.start() as f64, *limits::VIEWPORT_SIDE_RANGE.end() as f64);
        match self {
            Self::Html => text(1, limits::MAX_HTML_BYTES).says(
                "Markup to render: at most 5,242,880 bytes of UTF-8, which is fewer characters if some are not ASCII. \
                 Takes precedence over `url`. One of the two is required.",
            ),
            Self::Url => text(1, limits::MAX_URL_CHARS).says(
                "Absolute http or https URL of the page to render, at most 2,048 characters, without a user name or password. It must be reachable \
                 from the public internet: a local host name or a literal address that is not public is refused with 400, \
                 a name that resolves to such an address with 422.",
            ),
            Self::TemplateId => text(0, usize::MAX).says("Id of a saved template of the key's account."),
            Self::Variables => FieldSpec { kind: FieldKind::Variables, default: Some("{}"), ..BOOLEAN }
                .says("Values by placeholder name. A number keeps its spelling: `10.50` stays `10.50`. In a template in Jinja it is a number."),
            Self::Data => FieldSpec { kind: FieldKind::Data, default: Some("{}"), ..BOOLEAN }.says(
                "Values of a template in Jinja, by name: any JSON, at most 5,242,880 bytes of text and 32 levels. Whole numbers \
                 of up to 128 bits are exact, others are doubles. A name that `variables` has too is refused, and so is the \
                 field at a template with placeholders.",
            ),
            Self::Format => choice(OutputFormat::NAMES, "\"png\"").says("Format of the file. `jpg` means `jpeg`."),
            Self::PdfFormat => choice(PaperSize::NAMES, "\"A4\"")
                .of(Formats::Pdf)
                .says("Paper size of a PDF, in any case of letters; portrait except `Ledger`."),
            Self::PrintBackground => {
                BOOLEAN.of(Formats::Pdf).says("Whether a PDF contains the backgrounds of the page.")
            }
            Self::Scale => {
                number(*limits::PDF_SCALE_RANGE.start(), *limits::PDF_SCALE_RANGE.end(), false, Some("1"))
                    .of(Formats::Pdf)
                    .says("Scale of the content of a PDF.")
            }
            Self::FileName => text(1, limits::MAX_FILE_NAME_CHARS).says(
                "Name of the download. It is transliterated to ASCII in lower case, every run of other characters is \
                 replaced by one `-`, and the result is cut to 80 characters.",
            ),
            Self::Width => number(SIDE.0, SIDE.1, true, None).says(
                "Width of the viewport in CSS pixels. Without it an image has 1280, and a PDF the width of its paper \
                 between the margins of the request (1 cm each without `margin`), divided by `scale`: 718 for A4. An \
                 image has at most 100,000,000 device pixels.",
            ),
            Self::Height => {
                number(SIDE.0, SIDE.1, true, Some("720")).says("Height of the viewport in CSS pixels.")
            }
            Self::DeviceScaleFactor => number(
                *limits::DEVICE_SCALE_FACTOR_RANGE.start(),
                *limits::DEVICE_SCALE_FACTOR_RANGE.end(),
                false,
                Some("1"),
            )
            .says(
                "Device pixels per CSS pixel. In a PDF it is the resolution of what scripts draw on a `<canvas>`; text and \
                 pictures have their own.",
            ),
            Self::FullPage => {
                BOOLEAN.of(Formats::Images).says("Whether an image shows the whole page instead of the viewport.")
            }
            Self::WaitUntil => choice(WaitUntil::NAMES, "\"load\"").says(
                "The milestone at which the page counts as loaded: `domcontentloaded`, the document is parsed; `load`, the \
                 `load` event has fired; `networkidle`, the `load` event has fired and then no request was in progress for \
                 500 ms. After `load`, the third request of a script to the same method and address (a poll) does not \
                 count, nor does a request that began after `load` and is open for 10 s. The wait ends 2 s before the \
                 deadline at the latest. If something that was left out is still open, the response has `x-page-idle: \
                 false`.",
            ),
            Self::WaitForTimeout => number(
                *limits::WAIT_FOR_TIMEOUT_MS_RANGE.start(),
                *limits::WAIT_FOR_TIMEOUT_MS_RANGE.end(),
                false,
                Some("0"),
            )
            .says("Time to wait after the `waitUntil` milestone, in milliseconds of the page's clock."),
            Self::Landscape => BOOLEAN.of(Formats::Pdf).says(
                "Whether the longer side of the paper is the width. Has precedence over the orientation in the page's \
                 `@page` rule, unless `preferCssPageSize` is true.",
            ),
            Self::Margin => of_pdf(FieldKind::Margin).says(
                "Margins of the paper: one length for all sides, or an object of `top`, `right`, `bottom` and `left`, \
                 where a side that is left out is 0. Has precedence over the page's `@page` rule. Without it the margins \
                 are those of that rule, or 1 cm.",
            ),
            Self::PdfWidth => of_pdf(FieldKind::Length).says(
                "Width of the paper, from 10 mm to 5,080 mm. Needs `pdfHeight`, and excludes `pdfFormat`.",
            ),
            Self::PdfHeight => of_pdf(FieldKind::Length).says("Height of the paper, from 10 mm to 5,080 mm. Needs `pdfWidth`."),
            Self::PreferCssPageSize => {
                BOOLEAN.of(Formats::Pdf).says("Whether the size in the page's `@page` rule is used for the paper.")
            }
            Self::SinglePage => BOOLEAN.of(Formats::Pdf).says(
                "Whether all content is on one page, which is as tall as needed. Excludes `pageRanges`.",
            ),
            Self::HeaderHtml => text(0, limits::MAX_HEADER_BYTES).of(Formats::Pdf).says(
                "Markup in the top margin of every page, at most 65,536 bytes. Elements with the class `date`, `title`, \
                 `url`, `pageNumber` or `totalPages` get that text. It has the styles that it contains and none of the \
                 page, the font 10 px Arial, images only in `data:` URLs and only fonts that are installed. No scripts run. In a \
                 template, placeholders are replaced; it is in Jinja if the template is.",
            ),
            Self::FooterHtml => text(0, limits::MAX_HEADER_BYTES)
                .of(Formats::Pdf)
                .says("Markup in the bottom margin of every page, as `headerHtml`."),
            Self::PageRanges => text(1, usize::MAX).of(Formats::Pdf).says(
                "The pages that the file has, such as `1-3, 5`: ascending, at most 100 ranges. A page after the last one \
                 is a 422.",
            ),
            Self::Tagged => {
                BOOLEAN.of(Formats::Pdf).says("Whether the file has a structure tree, which screen readers use.")
            }
            Self::Outline => BOOLEAN.of(Formats::Pdf).says(
                "Whether the file has an outline (bookmarks) of the page's headings. Includes `tagged`.",
            ),
            Self::Quality => number(
                *limits::QUALITY_RANGE.start() as f64,
                *limits::QUALITY_RANGE.end() as f64,
                true,
                Some("80"),
            )
            .of(Formats::JpegAndWebp)
            .says("Quality of a JPEG or WebP image. With another format it is refused."),
            Self::OmitBackground => BOOLEAN.of(Formats::PngAndWebp).says(
                "Whether pixels that the page does not paint are transparent instead of white. With JPEG it is refused.",
            ),
            Self::Selector => text(1, limits::MAX_SELECTOR_CHARS).of(Formats::Images).says(
                "CSS selector of the element that an image shows: the border box of the first match, also outside of the \
                 viewport. Open shadow trees are searched after the document. No match is a 422. Excludes `fullPage` and \
                 `clip`.",
            ),
            Self::Clip => FieldSpec { kind: FieldKind::Clip, default: None, ..BOOLEAN }.of(Formats::Images).says(
                "The rectangle of the page that an image shows, in CSS pixels from its top left corner. Excludes \
                 `fullPage`.",
            ),
            Self::MediaType => FieldSpec { kind: FieldKind::Choice(MediaType::VARIANTS), default: None, ..BOOLEAN }
                .says("The CSS media type: `screen` or `print`. Without it `screen` for images and `print` for PDFs."),
            Self::ColorScheme => {
                choice(ColorScheme::VARIANTS, "\"light\"").says("The value of `prefers-color-scheme` in the page.")
            }
            Self::ReducedMotion => BOOLEAN.says("Whether `prefers-reduced-motion` is `reduce` in the page."),
            Self::WaitForSelector => text(1, limits::MAX_SELECTOR_CHARS).says(
                "CSS selector of an element that must be visible before the page is captured, in addition to \
                 `waitForTimeout`; open shadow trees are searched after the document. The root, the body and an element \
                 without a box of its own, such as one of the head, are visible if the document is drawn. If none is visible \
                 within the deadline, that is a 422.",
            ),
            Self::Timezone => {
                FieldSpec { default: Some("\"UTC\""), ..text(1, 100) }.says("IANA name of the page's time zone.")
            }
            Self::Locale => FieldSpec { default: Some("\"en-US\""), ..text(1, 100) }.says(
                "BCP 47 tag of the page's language, for formats of numbers and dates and for `accept-language`.",
            ),
            Self::Css => text(0, limits::MAX_CSS_BYTES).says(
                "Style sheet that is added after those of the page: at most 262,144 bytes of UTF-8, without `@import`.",
            ),
            Self::JavaScript => {
                FieldSpec { default: Some("true"), ..BOOLEAN }.says("Whether scripts of the page run.")
            }
            Self::Animations => choice(Animations::VARIANTS, "\"finish\"").says(
                "`finish`: CSS animations, transitions and Web Animations that run by time and end are at their end in \
                 the file, those of a view timeline as when they are in view, and scroll timelines, paused and endless ones \
                 as they are. `allow`: all are as they are. What scripts draw frame by frame is not changed: wait for it \
                 with `waitForTimeout`.",
            ),
            Self::Scroll => FieldSpec { default: Some("true"), ..BOOLEAN }.says(
                "Whether the page is scrolled through before more than its viewport is captured: with `fullPage`, with a \
                 `selector` or `clip` beyond the viewport, and in every PDF. What scrolling opens, such as a bar or a box, \
                 is then in the file.",
            ),
            Self::UserAgent => text(1, limits::MAX_USER_AGENT_CHARS).says(
                "User agent of the page, in requests, scripts and client hints: printable ASCII. Without it that of Chrome \
                 of the browser's version.",
            ),
            Self::Mobile => BOOLEAN.says(
                "Whether the page is shown as on a mobile device: the rules of `<meta name=viewport>`, touch, a mobile \
                 device in the client hints, and, without `userAgent`, Chrome on Android. A page without this `<meta>` is 980 \
                 pixels wide: its viewport is shown smaller, `fullPage`, `selector` and `clip` in CSS pixels.",
            ),
            Self::OptimizeForSpeed => FieldSpec { default: Some("true"), ..BOOLEAN }.of(Formats::Png).says(
                "Whether a PNG is written fast. `false` takes several times as long and gives a smaller file with the same \
                 pixels. With another format it is refused.",
            ),
            Self::FailOnHttpStatus => BOOLEAN.says(
                "Whether a page of `url` with a status of 400 or more is a 422. It is rendered otherwise. The response \
                 has the status in `x-page-status`.",
            ),
            Self::Metadata => of_pdf(FieldKind::Metadata).says(
                "Metadata of the file. `title` (without it that of the page), `author`, `subject`, `keywords` and `creator` have \
                 at most 1,000 characters each; `language` is a BCP 47 tag (without it that of the page, or `locale`); `date` is \
                 a date and time of RFC 3339, that of creation and change (without it the present). The same request with the \
                 same `date` gives the same bytes, except with `protection`. With another format it is refused.",
            ),
            Self::HeaderFirstHtml => text(0, limits::MAX_HEADER_BYTES).of(Formats::Pdf).says(
                "Markup in the top margin of the document's first page, in place of `headerHtml` and under its rules. An empty \
                 text is no header. With another format it is refused.",
            ),
            Self::FooterFirstHtml => text(0, limits::MAX_HEADER_BYTES).of(Formats::Pdf).says(
                "Markup in the bottom margin of the document's first page, in place of `footerHtml`. An empty text is no footer. \
                 With another format it is refused.",
            ),
            Self::FitToWidth => BOOLEAN.of(Formats::Pdf).says(
                "Whether content that is wider than the paper between its margins is scaled down, to 0.1 at least, until nothing is \
                 cut. Boxes that scroll sideways show all that they contain. Excludes `scale`. With another format it is refused.",
            ),
            Self::WaitForFunction => text(1, limits::MAX_EXPRESSION_CHARS).says(
                "JavaScript expression that is evaluated in the page, after the `waitUntil` milestone and until it is truthy, in addition to the \
                 other waits. A function is called, and a promise is awaited; a class or a function that only has to be there is \
                 `!!window.Chart`. If it throws, or is not truthy within the deadline, that is a 422. Excludes \
                 `javaScript: false`.",
            ),
            Self::PdfStandard => of_pdf(FieldKind::Standard).says(
                "Standard that the file conforms to: `pdf/a-2b`, `pdf/a-3b` or `pdf/ua-1`, or an array of one of the first two \
                 and the last. `pdf/ua-1` includes `tagged` and needs a title. What the page cannot meet is a 422 that names the \
                 rule. With another format it is refused.",
            ),
            Self::Attachments => of_pdf(FieldKind::Attachments).says(
                "Files inside the PDF, at most 20. Each has a `name` (1 to 160 characters, no path, no other file's) and a \
                 `content` (base64, 10,485,760 bytes in all), and may have a `mimeType`, a `description` (at most 1,000 \
                 characters) and a `relationship`: `source`, `data`, `alternative`, `supplement` or `unspecified` (default). \
                 Excludes `pdf/a-2b`. Not among the options of a template. With another format it is refused.",
            ),
            Self::InvoiceXml => text(1, limits::MAX_INVOICE_BYTES).of(Formats::Pdf).says(
                "Factur-X or ZUGFeRD invoice (CII) inside the PDF, at most 2,097,152 bytes. The file is a PDF/A-3b, and contains \
                 it as `factur-x.xml`, or `xrechnung.xml` for that profile. XML that is not well-formed, has a DTD or another \
                 root, or lacks an element of its profile is refused. Excludes `pdf/a-2b`. Not among the options of a template. \
                 With another format it is refused.",
            ),
            Self::Protection => of_pdf(FieldKind::Protection).says(
                "Passwords of the PDF, and what its readers may do (AES-256). `userPassword` opens it, `ownerPassword` opens it \
                 with all rights: at least one of them, at most 127 bytes of UTF-8 each. `allow` is an array of `print`, `copy`, \
                 `modify`, `annotate`, `fill` and `assemble`; without it only `print` is allowed. Excludes `pdfStandard` and \
                 `invoiceXml`. Not among the options of a template. With another format it is refused.",
            ),
            Self::Assets => FieldSpec { kind: FieldKind::Assets, default: None, ..BOOLEAN }.says(
                "Files beside the markup, by path: at most 100, 20,971,520 bytes in all. Each has either a `content` (base64) or a \
                 `text`, and may have a `mimeType` (without it that of the extension). A path is relative, without `..`, such as \
                 `img/logo.png`. The page finds a file where its path leads to from the address of the markup: `baseUrl`, or one \
                 that only this file has. Not with `url`, and not among the options of a template.",
            ),
            Self::BaseUrl => text(1, limits::MAX_URL_CHARS).says(
                "Address of the markup, under the rules of `url`: the page is shown as if this address had answered with it. What it \
                 asks for elsewhere comes from there, except `assets`. Its host must be public in any case. Not with `url`.",
            ),
            Self::FailOn => texts(PageProblem::VARIANTS.len()).says(
                "What makes the request a 422: `pageErrors`, exceptions and rejected promises that nothing in the page handles; \
                 `failedRequests`, requests without a response or with a status of 400 or more. The message has the first three. \
                 Without it the file has their numbers in `x-page-errors` and `x-page-failed-requests`.",
            ),
            Self::BlockHosts => texts(limits::MAX_BLOCKED_HOSTS).says(
                "Hosts to which the page may not connect, at most 100: a name, or `*.` and a name for all below it. Requests to \
                 them are not sent, and a navigation of the page there is a 422. The host of `url` is refused.",
            ),
        }
    }
}
