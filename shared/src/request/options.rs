//! The fields that both endpoints share: their values, and the rules that concern several of them.

use std::borrow::Cow;

use serde_json::value::RawValue;
use strum::VariantNames as _;

use super::{
    assets::assets,
    field_name::{EXCLUSIVE, FieldName, FieldPath},
    invalid::{InvalidRequest, quoted},
    object::{Field, Object},
};
use crate::{
    format::{ImageFormat, OutputFormat, PaperSize},
    host_names::HostNames,
    job::{
        Attachment, Clip, ImageOptions, Margins, Metadata, Output, PageProblem, Pages, PdfOptions,
        PdfStandard, Permission, Protection, Region, RenderOptions, Sheet, Side,
    },
    length::Length,
    limits,
};

/// Rounding error of a conversion to pixels and back.
const ROUNDING_MM: f64 = 1e-6;

/// The values of the fields that both endpoints share, with all defaults filled in.
pub(super) struct Options<'o> {
    object: &'o Object<'o>,
    pub(super) file_name: Option<String>,
    pub(super) format: Option<OutputFormat>,
    width: Option<Side>,
    /// The options with the default width, and a PNG as their output.
    common: RenderOptions,
    image: ImageOptions,
    pdf: PdfOptions,
}

impl<'o> Options<'o> {
    /// Reads the fields in the order of the contract.
    pub(super) fn read(object: &'o Object<'o>) -> Result<Self, InvalidRequest> {
        let field = |name| object.field(name);
        let format = field(FieldName::Format).choice()?;
        let paper: PaperSize = field(FieldName::PdfFormat).choice()?.unwrap_or_default();
        let mut pdf = PdfOptions::new(paper.into());
        let mut image = ImageOptions::new(ImageFormat::Png);
        let mut options = RenderOptions::new(Output::Image(image.clone()));
        pdf.print_background = field(FieldName::PrintBackground).boolean(false)?;
        pdf.scale = field(FieldName::Scale).number()?.unwrap_or_default();
        let file_name = file_name(field(FieldName::FileName))?;
        let width = field(FieldName::Width).number()?;
        let viewport = &mut options.viewport;
        viewport.height = field(FieldName::Height).number()?.unwrap_or(viewport.height);
        viewport.device_scale_factor = field(FieldName::DeviceScaleFactor).number()?.unwrap_or_default();
        let full_page = field(FieldName::FullPage).boolean(false)?;
        options.wait_until = field(FieldName::WaitUntil).choice()?.unwrap_or_default();
        options.wait_for_timeout = field(FieldName::WaitForTimeout).number()?.unwrap_or_default();
        pdf.landscape = field(FieldName::Landscape).boolean(false)?;
        pdf.margins = margins(field(FieldName::Margin))?;
        let sides = (side(field(FieldName::PdfWidth))?, side(field(FieldName::PdfHeight))?);
        pdf.prefer_css_page_size = field(FieldName::PreferCssPageSize).boolean(false)?;
        let single_page = field(FieldName::SinglePage).boolean(false)?;
        pdf.header = field(FieldName::HeaderHtml).text_of()?;
        pdf.footer = field(FieldName::FooterHtml).text_of()?;
        let page_ranges = field(FieldName::PageRanges).text_of()?;
        pdf.tagged = field(FieldName::Tagged).boolean(false)?;
        pdf.outline = field(FieldName::Outline).boolean(false)?;
        image.quality = field(FieldName::Quality).number()?.unwrap_or_default();
        image.omit_background = field(FieldName::OmitBackground).boolean(false)?;
        let selector = field(FieldName::Selector).text_of()?;
        let clip = clip(field(FieldName::Clip))?;
        let environment = &mut options.environment;
        environment.media = field(FieldName::MediaType).choice()?;
        environment.color_scheme = field(FieldName::ColorScheme).choice()?.unwrap_or_default();
        environment.reduced_motion = field(FieldName::ReducedMotion).boolean(false)?;
        options.wait_for_selector = field(FieldName::WaitForSelector).text_of()?;
        environment.time_zone = field(FieldName::Timezone).text_of()?;
        environment.locale = field(FieldName::Locale).text_of()?;
        options.css = field(FieldName::Css).text_of()?;
        environment.java_script = field(FieldName::JavaScript).boolean(true)?;
        options.animations = field(FieldName::Animations).choice()?.unwrap_or_default();
        options.scroll = field(FieldName::Scroll).boolean(true)?;
        environment.user_agent = field(FieldName::UserAgent).text_of()?;
        options.viewport.mobile = field(FieldName::Mobile).boolean(false)?;
        image.optimize_for_speed = field(FieldName::OptimizeForSpeed).boolean(true)?;
        options.fail_on_http_status = field(FieldName::FailOnHttpStatus).boolean(false)?;
        pdf.document.metadata = metadata(field(FieldName::Metadata))?;
        pdf.first_header = field(FieldName::HeaderFirstHtml).text_of()?;
        pdf.first_footer = field(FieldName::FooterFirstHtml).text_of()?;
        pdf.fit_to_width = field(FieldName::FitToWidth).boolean(false)?;
        options.wait_for_function = field(FieldName::WaitForFunction).text_of()?;
        pdf.document.standard = standard(field(FieldName::PdfStandard))?;
        pdf.document.attachments = attachments(field(FieldName::Attachments))?;
        pdf.document.invoice = field(FieldName::InvoiceXml).text_of()?;
        pdf.document.protection = protection(field(FieldName::Protection))?;
        options.assets = assets(field(FieldName::Assets))?;
        options.base_url = field(FieldName::BaseUrl).text_of()?;
        options.fail_on = fail_on(field(FieldName::FailOn))?;
        options.block_hosts = block_hosts(field(FieldName::BlockHosts))?;

        if let (Some(width), Some(height)) = sides {
            pdf.sheet = Sheet { width, height };
        }
        if pdf.landscape {
            pdf.sheet = pdf.sheet.landscape();
        }
        pdf.pages = match page_ranges {
            Some(ranges) => Pages::Ranges(ranges),
            None if single_page => Pages::Single,
            None => Pages::All,
        };
        pdf.tagged |= pdf.outline || pdf.document.standard.ua1;
        image.region = match (selector, clip) {
            (Some(selector), _) => Region::Element(selector),
            (None, Some(clip)) => Region::Clip(clip),
            (None, None) if full_page => Region::FullPage,
            (None, None) => Region::Viewport,
        };
        Ok(Self { object, file_name, format, width, common: options, image, pdf })
    }

    /// Checks what no options of a template can make valid.
    pub(super) fn check(&self, format: Option<OutputFormat>) -> Result<(), InvalidRequest> {
        let gives = |name| self.object.gives(name);
        if let Some(&(field, other)) = EXCLUSIVE.iter().find(|(one, other)| gives(*one) && gives(*other)) {
            return Err(InvalidRequest::Conflict(field, other));
        }
        if gives(FieldName::WaitForFunction) && !self.common.environment.java_script {
            return Err(InvalidRequest::not_with(FieldName::WaitForFunction, FieldName::JavaScript, "false"));
        }
        self.pdf.document.check()?;
        let Some(format) = format else { return Ok(()) };
        let is_refused = |name: &FieldName| gives(*name) && name.is_refused_with(format);
        match self.object.names().find(is_refused) {
            Some(field) => Err(InvalidRequest::with_format(field, format)),
            None => Ok(()),
        }
    }

    /// The options of a file.
    pub(super) fn into_options(self) -> Result<RenderOptions, InvalidRequest> {
        use FieldName::{PdfHeight, PdfWidth};
        let gives = |name| self.object.gives(name);
        for (field, other) in [(PdfHeight, PdfWidth), (PdfWidth, PdfHeight)] {
            if gives(other) && !gives(field) {
                return Err(InvalidRequest::RequiredWith(field, other));
            }
        }
        let format = self.format.unwrap_or(OutputFormat::DEFAULT);
        self.check(Some(format))?;
        let mut options = self.common;
        match format {
            OutputFormat::Pdf => {
                options.viewport.width = self.pdf.content_width();
                options.output = Output::Pdf(Box::new(self.pdf));
            }
            OutputFormat::Image(format) => {
                options.output = Output::Image(ImageOptions { format, ..self.image });
            }
        }
        options.viewport.width = self.width.unwrap_or(options.viewport.width);
        options.check()?;
        Ok(options)
    }
}

fn file_name(field: Field<'_>) -> Result<Option<String>, InvalidRequest> {
    let name = field.string()?;
    match name.as_ref().map(|name| name.chars().count()) {
        None | Some(1..=limits::MAX_FILE_NAME_CHARS) => Ok(name),
        Some(_) => Err(field.rule(format!("must be 1 to {} characters", limits::MAX_FILE_NAME_CHARS))),
    }
}

fn margins(field: Field<'_>) -> Result<Option<Margins>, InvalidRequest> {
    let Some([top, right, bottom, left]) = field.members(["top", "right", "bottom", "left"])? else {
        let rule = "must be a length such as \"12mm\", or an object of lengths: \"top\", \"right\", \"bottom\", \"left\"";
        return field.length().map(|length| length.map(Margins::all)).map_err(|_| field.rule(rule));
    };
    let side = |member: Field<'_>| member.length().map(Option::unwrap_or_default);
    Ok(Some(Margins { top: side(top)?, right: side(right)?, bottom: side(bottom)?, left: side(left)? }))
}

fn side(field: Field<'_>) -> Result<Option<Length>, InvalidRequest> {
    let (min, max) = limits::PDF_SIDE_MM_RANGE.into_inner();
    match field.length()? {
        Some(length) if !(min - ROUNDING_MM..=max + ROUNDING_MM).contains(&length.mm()) => {
            Err(field.rule(format!("must be from {min}mm to {max}mm")))
        }
        length => Ok(length),
    }
}

/// The members of a field that is an object, or an object in an array; `None` if it is not given.
fn members<'a, const N: usize>(
    field: Field<'a>,
    names: [&'static str; N],
    rule: &str,
) -> Result<Option<[Field<'a>; N]>, InvalidRequest> {
    match field.members(names)? {
        None if field.value.is_some() => Err(field.rule(rule)),
        members => Ok(members),
    }
}

fn clip(field: Field<'_>) -> Result<Option<Clip>, InvalidRequest> {
    let rule = "must be an object of numbers: \"x\", \"y\", \"width\", \"height\"";
    let Some([x, y, width, height]) = members(field, ["x", "y", "width", "height"], rule)? else {
        return Ok(None);
    };
    let number = |member: Field<'_>, range| {
        let number = member.required()?.number_in("number", range, false);
        number.map(Option::unwrap_or_default)
    };
    Ok(Some(Clip {
        x: number(x, limits::CLIP_OFFSET_RANGE)?,
        y: number(y, limits::CLIP_OFFSET_RANGE)?,
        width: number(width, limits::CLIP_SIDE_RANGE)?,
        height: number(height, limits::CLIP_SIDE_RANGE)?,
    }))
}

fn metadata(field: Field<'_>) -> Result<Metadata, InvalidRequest> {
    let names = ["title", "author", "subject", "keywords", "creator", "language", "date"];
    let rule = "must be an object of strings: \"title\", \"author\", \"subject\", \"keywords\", \"creator\", \
                \"language\", \"date\"";
    let Some([title, author, subject, keywords, creator, language, date]) = members(field, names, rule)?
    else {
        return Ok(Metadata::default());
    };
    Ok(Metadata {
        title: title.text_of()?,
        author: author.text_of()?,
        subject: subject.text_of()?,
        keywords: keywords.text_of()?,
        creator: creator.text_of()?,
        language: language.text_of()?,
        date: date.text_of()?,
    })
}

fn standard(field: Field<'_>) -> Result<PdfStandard, InvalidRequest> {
    let Some(value) = field.value else { return Ok(PdfStandard::default()) };
    let names = match field.items(2) {
        Some(values) if values.len() == 2 => texts(field, &values),
        Some(_) => None,
        None => texts(field, &[value]),
    };
    names.and_then(|names| PdfStandard::of(&names)).ok_or_else(|| {
        field.rule(
            "must be \"pdf/a-2b\", \"pdf/a-3b\" or \"pdf/ua-1\", or an array of one of the first two and the last",
        )
    })
}

fn attachments(field: Field<'_>) -> Result<Vec<Attachment>, InvalidRequest> {
    if field.value.is_none() {
        return Ok(Vec::new());
    }
    let items =
        field.items(limits::MAX_ATTACHMENTS).ok_or_else(|| field.rule("must be an array of objects"))?;
    let of_item = |(index, value)| {
        attachment(Field { name: FieldPath { index: Some(index), ..field.name }, value: Some(value) })
    };
    items.into_iter().enumerate().map(of_item).collect()
}

fn attachment(field: Field<'_>) -> Result<Attachment, InvalidRequest> {
    let names = ["name", "content", "mimeType", "description", "relationship"];
    let [name, content, mime_type, description, relationship] = field.members(names)?.ok_or_else(|| {
        field.rule(
            "must be an object of strings: \"name\", \"content\", \"mimeType\", \"description\", \
             \"relationship\"",
        )
    })?;
    Ok(Attachment {
        name: name.text_of()?.ok_or(InvalidRequest::Required(name.name))?,
        content: content.text_of()?.ok_or(InvalidRequest::Required(content.name))?,
        mime_type: mime_type.text_of()?,
        description: description.text_of()?,
        relationship: relationship.choice()?.unwrap_or_default(),
    })
}

fn protection(field: Field<'_>) -> Result<Option<Protection>, InvalidRequest> {
    let names = ["userPassword", "ownerPassword", "allow"];
    let rule = "must be an object of \"userPassword\", \"ownerPassword\" and \"allow\"";
    let Some([user_password, owner_password, allow]) = members(field, names, rule)? else { return Ok(None) };
    Ok(Some(Protection {
        user_password: user_password.text_of()?.unwrap_or_default(),
        owner_password: owner_password.text_of()?.unwrap_or_default(),
        allow: permissions(allow)?,
    }))
}

fn permissions(field: Field<'_>) -> Result<Vec<Permission>, InvalidRequest> {
    if field.value.is_none() {
        return Ok(vec![Permission::Print]);
    }
    let values = field.items(Permission::VARIANTS.len());
    let names = values.as_ref().and_then(|values| texts(field, values));
    let permissions = names.and_then(|names| names.iter().map(|name| name.parse().ok()).collect());
    permissions.ok_or_else(|| field.rule(format!("must be an array of {}", quoted(Permission::VARIANTS))))
}

fn fail_on(field: Field<'_>) -> Result<Vec<PageProblem>, InvalidRequest> {
    let Some(_) = field.value else { return Ok(Vec::new()) };
    let values = field.items(PageProblem::VARIANTS.len());
    let names = values.as_ref().and_then(|values| texts(field, values));
    let problems = names.and_then(|names| names.iter().map(|name| name.parse().ok()).collect::<Option<_>>());
    let is_right = |problems: &Vec<PageProblem>| match problems[..] {
        [] | [_] => true,
        [one, other] => one != other,
        _ => false,
    };
    problems.filter(is_right).ok_or_else(|| {
        field.rule(format!("must be an array of {}, each at most once", quoted(PageProblem::VARIANTS)))
    })
}

fn block_hosts(field: Field<'_>) -> Result<Vec<HostNames>, InvalidRequest> {
    let Some(_) = field.value else { return Ok(Vec::new()) };
    let array =
        || field.rule(format!("must be an array of at most {} host names", limits::MAX_BLOCKED_HOSTS));
    let values = field.items(limits::MAX_BLOCKED_HOSTS).ok_or_else(array)?;
    if values.len() > limits::MAX_BLOCKED_HOSTS {
        return Err(array());
    }
    let name_of = |(index, value)| {
        let item = Field { name: FieldPath { index: Some(index), ..field.name }, value: Some(value) };
        item.text(value)?.parse().map_err(|error| item.rule(error))
    };
    values.into_iter().enumerate().map(name_of).collect()
}

/// The texts of values; `None` if one is no text.
fn texts<'a>(field: Field<'a>, values: &[&'a RawValue]) -> Option<Vec<Cow<'a, str>>> {
    values.iter().map(|value| field.text(value).ok()).collect()
}
