//! Links: the list of a template, and the page of one.

use askama::Template;
use platen_shared::{
    format::OutputFormat,
    limits::{DEFAULT_LINK_DAILY_LIMIT, DEFAULT_LINK_MAX_AGE, MAX_FILE_STEM_CHARS, MAX_LINK_MAX_AGE},
    link::{LinkAddress, LinkFormats},
    name::Name,
};
use platen_statements::{
    links::{Link, LinkSettings},
    templates,
};

use super::Layout;
use crate::{
    chart::Chart,
    form::{Field, Form},
    format,
    link_programs::LinkProgram,
};

#[derive(Debug, Template)]
#[template(path = "links.html")]
pub(crate) struct LinksPage {
    pub(crate) layout: Layout,
    pub(crate) template: templates::Template,
    /// The links of the template, newest first.
    pub(crate) links: Vec<Link>,
    pub(crate) form: LinkForm,
}

#[derive(Debug, Template)]
#[template(path = "link.html")]
pub(crate) struct LinkPage {
    pub(crate) layout: Layout,
    pub(crate) link: Link,
    pub(crate) chart: Chart,
    /// The secret, after the link was made or rolled.
    pub(crate) new_secret: Option<String>,
    pub(crate) form: LinkForm,
    pub(crate) file: FileForm,
    /// The address of the file; `None` if the form is not valid, and for users who cannot sign.
    pub(crate) address: Option<FileAddress>,
    /// Programs that sign it; none if the form is not valid.
    pub(crate) programs: Vec<LinkProgram>,
}

/// The extensions of all formats.
pub(crate) const EXTENSIONS: [&str; 4] = ["png", "jpg", "webp", "pdf"];

/// Units of time with their seconds, the largest first.
const UNITS: [(&str, u32); 4] = [("days", 86_400), ("hours", 3_600), ("minutes", 60), ("seconds", 1)];

/// The settings of a link, as a form has them.
#[derive(Debug)]
pub(crate) struct LinkForm {
    pub(crate) name: Field,
    /// Extensions with commas between them.
    pub(crate) formats: Field,
    /// A number of `unit`.
    pub(crate) max_age: Field,
    pub(crate) unit: &'static str,
    /// Attempts in a day; empty for no limit.
    pub(crate) daily_limit: Field,
}

impl LinkForm {
    /// That of a new link, with the defaults.
    pub(crate) fn of_new() -> Self {
        let (max_age, unit) = in_unit(DEFAULT_LINK_MAX_AGE);
        Self {
            name: Field::default(),
            formats: Field::valid("png"),
            max_age: Field::valid(max_age.to_string()),
            unit,
            daily_limit: Field::valid(DEFAULT_LINK_DAILY_LIMIT.to_string()),
        }
    }

    pub(crate) fn of(link: &Link) -> Self {
        let (max_age, unit) = in_unit(link.max_age);
        Self {
            name: Field::valid(&link.name),
            formats: Field::valid(link.formats.to_string()),
            max_age: Field::valid(max_age.to_string()),
            unit,
            daily_limit: Field::valid(link.daily_limit.map(|limit| limit.to_string()).unwrap_or_default()),
        }
    }

    /// What was entered, with its errors; and the settings if there are none.
    pub(crate) fn read(form: &Form) -> (Self, Option<(Name, LinkSettings)>) {
        let (name_text, max_age_text, limit_text) =
            (form.text("name"), form.text("maxAge"), form.text("dailyLimit"));
        let chosen =
            EXTENSIONS.into_iter().filter(|extension| form.get(&format!("format.{extension}")).is_some());
        let formats_text = chosen.collect::<Vec<_>>().join(",");
        let unit = form.get("unit").unwrap_or_default();
        let (unit, seconds) = *UNITS.iter().find(|(known, _)| *known == unit).unwrap_or(&UNITS[3]);

        let name = Name::parse(&name_text);
        let formats = formats_text.parse::<LinkFormats>().map_err(|_| "Choose at least one format");
        let max_age = parse_max_age(&max_age_text, seconds);
        let daily_limit = parse_limit(&limit_text);
        let fields = Self {
            name: Field::parsed(&name_text, name.as_ref()),
            formats: Field::parsed(&formats_text, formats.as_ref()),
            max_age: Field::parsed(&max_age_text, max_age.as_ref()),
            unit,
            daily_limit: Field::parsed(&limit_text, daily_limit.as_ref()),
        };
        let settings = match (name, formats, max_age, daily_limit) {
            (Ok(name), Ok(formats), Ok(max_age), Ok(daily_limit)) => {
                Some((name, LinkSettings { formats, max_age, daily_limit }))
            }
            _ => None,
        };
        (fields, settings)
    }

    fn has(&self, extension: &str) -> bool {
        self.formats.value.split(',').any(|chosen| chosen == extension)
    }

    fn units(&self) -> impl Iterator<Item = (&'static str, bool)> {
        UNITS.iter().map(|(unit, _)| (*unit, *unit == self.unit))
    }
}

/// A number of seconds in the largest unit of which it is a whole number.
fn in_unit(seconds: u32) -> (u32, &'static str) {
    let fits = |(_, length): &&(&str, u32)| seconds > 0 && seconds.is_multiple_of(*length);
    UNITS.iter().find(fits).map_or((seconds, "seconds"), |(unit, length)| (seconds / length, unit))
}

fn parse_max_age(text: &str, unit_seconds: u32) -> Result<u32, &'static str> {
    let seconds = text.trim().parse::<u32>().ok().and_then(|count| count.checked_mul(unit_seconds));
    seconds
        .filter(|seconds| *seconds <= MAX_LINK_MAX_AGE)
        .ok_or("Enter a whole number from 0, and no more than 365 days")
}

fn parse_limit(text: &str) -> Result<Option<u32>, &'static str> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let limit = text.parse().ok().filter(|limit| *limit > 0);
    limit.map(Some).ok_or("Enter a whole number from 1, or leave the field empty for no limit")
}

/// The time for which a file may be cached, in words.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "templates pass references")]
pub(crate) fn cached_for(max_age: &u32) -> String {
    match in_unit(*max_age) {
        (0, _) => "Not cached".to_owned(),
        (1, unit) => format!("1 {}", unit.trim_end_matches('s')),
        (count, unit) => format!("{} {unit}", format::number(&count.into())),
    }
}

/// The attempts of this day, with their limit.
pub(crate) fn today(link: &Link) -> String {
    let attempts = format::number(&link.attempts_today);
    match link.daily_limit {
        Some(limit) => format!("{attempts} of {}", format::number(&limit.into())),
        None => format!("{attempts}, no limit"),
    }
}

/// A file of a link, as a form has it.
#[derive(Debug)]
pub(crate) struct FileForm {
    /// The name without its extension.
    pub(crate) stem: Field,
    pub(crate) extension: String,
    /// Values by name.
    pub(crate) values: Vec<(String, String)>,
    /// Why the values are not valid; empty if they are.
    pub(crate) error: String,
    /// The values of a template in Jinja that are empty are left out.
    pub(crate) is_jinja: bool,
    /// Whether the file is shown.
    pub(crate) is_submitted: bool,
}

/// The name of a file for something with this name.
pub(crate) fn stem_of(name: &str) -> String {
    let words = name.to_ascii_lowercase();
    let words = words.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let stem: String = words.collect::<Vec<_>>().join("-").chars().take(MAX_FILE_STEM_CHARS).collect();
    if stem.is_empty() { "file".to_owned() } else { stem }
}

/// A signed address as the page shows it.
#[derive(Debug)]
pub(crate) struct FileAddress {
    /// Path and query.
    pub(crate) target: String,
    /// The address with scheme and host.
    pub(crate) url: String,
    /// The tags of a page's head; empty for a PDF.
    pub(crate) tags: String,
}

impl FileAddress {
    /// The address on this server. `pixels` are width and height of the file, if they are known.
    pub(crate) fn of(address: &LinkAddress, server: &str, pixels: Option<(u64, u64)>) -> Self {
        let target = address.spelling();
        let url = format!("{server}{target}");
        let tags = match address.file.format {
            OutputFormat::Image(_) => tags(&url, pixels),
            OutputFormat::Pdf => String::new(),
        };
        Self { target, url, tags }
    }
}

fn tags(url: &str, pixels: Option<(u64, u64)>) -> String {
    // An address has no quotation marks.
    let mut lines = vec![format!("<meta property=\"og:image\" content=\"{}\">", url.replace('&', "&amp;"))];
    if let Some((width, height)) = pixels {
        lines.push(format!("<meta property=\"og:image:width\" content=\"{width}\">"));
        lines.push(format!("<meta property=\"og:image:height\" content=\"{height}\">"));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use platen_shared::link::{LinkFile, LinkId, LinkSecret, RANDOM_BYTES};

    use super::*;

    #[test]
    fn each_error_is_at_its_field() {
        let read = |query: &str| LinkForm::read(&Form::parse(query.as_bytes()));
        let good = "name=Blog&format.png=on&format.pdf=on&maxAge=2&unit=hours&dailyLimit=5";
        let (fields, settings) = read(good);
        let (name, settings) = settings.unwrap();
        assert_eq!((name.as_str(), settings.max_age, settings.daily_limit), ("Blog", 7_200, Some(5)));
        assert_eq!(settings.formats.to_string(), "png,pdf");
        assert!(fields.has("pdf") && !fields.has("webp"));
        assert_eq!(read(&good.replace("=5", "=")).1.unwrap().1.daily_limit, None);
        assert_eq!(read(&good.replace("=2", "=0")).1.unwrap().1.max_age, 0);
        for (from, to, field) in [
            ("name=Blog", "name=+", 0),
            ("format.png=on&format.pdf=on&", "", 1),
            ("maxAge=2", "maxAge=", 2),
            ("maxAge=2", "maxAge=-1", 2),
            ("maxAge=2", "maxAge=1.5", 2),
            ("maxAge=2&unit=hours", "maxAge=366&unit=days", 2),
            ("maxAge=2&unit=hours", "maxAge=4000000000&unit=days", 2),
            ("dailyLimit=5", "dailyLimit=0", 3),
            ("dailyLimit=5", "dailyLimit=many", 3),
        ] {
            let (form, settings) = read(&good.replace(from, to));
            assert!(settings.is_none(), "{to}");
            let fields = [form.name, form.formats, form.max_age, form.daily_limit];
            let wrong: Vec<usize> = (0..4).filter(|index| !fields[*index].error.is_empty()).collect();
            assert_eq!(wrong, [field], "{to}");
        }
    }

    #[test]
    fn times_are_in_their_largest_unit() {
        for (seconds, text) in [
            (0, "Not cached"),
            (1, "1 second"),
            (90, "90 seconds"),
            (3_600, "1 hour"),
            (5_400, "90 minutes"),
            (86_400, "1 day"),
            (MAX_LINK_MAX_AGE, "365 days"),
        ] {
            assert_eq!(cached_for(&seconds), text);
        }
    }

    #[test]
    fn names_of_files_have_the_letters_of_addresses() {
        for (name, stem) in [("Blog Card 2", "blog-card-2"), ("é", "file"), (" -x- ", "x"), ("Größe", "gr-e")]
        {
            assert_eq!(stem_of(name), stem);
        }
        assert_eq!(stem_of(&"a".repeat(200)).len(), MAX_FILE_STEM_CHARS);
    }

    #[test]
    fn tags_have_the_address_and_the_size() {
        let values = [("a", "1"), ("b", "<")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        let address = |name: &str| {
            let file = LinkFile::new(LinkId::from_random([0; RANDOM_BYTES]), name, values.clone()).unwrap();
            let signed = file.signed(&LinkSecret::from_random([0; RANDOM_BYTES]));
            FileAddress::of(&signed, "https://a.example", Some((1_200, 630)))
        };
        let FileAddress { url, tags, .. } = address("card.png");
        assert!(url.starts_with("https://a.example/v1/links/lnk_") && url.ends_with("?a=1&b=%3C"), "{url}");
        let expected = format!(
            "<meta property=\"og:image\" content=\"{}\">\n<meta property=\"og:image:width\" content=\"1200\">\n\
             <meta property=\"og:image:height\" content=\"630\">",
            url.replace('&', "&amp;")
        );
        assert_eq!(tags, expected);
        assert!(address("card.pdf").tags.is_empty());
    }
}
