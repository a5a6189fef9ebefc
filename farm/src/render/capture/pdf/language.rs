//! The language of a document: what a screen reader pronounces its text in.

use platen_shared::{
    job::{PdfOptions, Source},
    locale::Locale,
};

use super::has_word;
use crate::{error::JobError, render::rendering::Rendering};

/// The language that the root element names.
const LANGUAGE: &str =
    "document.documentElement && as(Element, document.documentElement).getAttribute('lang')";

/// The language of the document: that of the job, else that of the page, else that of its reader. A page may name any text.
pub(super) async fn of(rendering: &mut Rendering<'_>, pdf: &PdfOptions) -> Result<Option<Locale>, JobError> {
    let metadata = &pdf.document.metadata;
    if metadata.language.is_some() {
        return Ok(metadata.language.clone());
    }
    let markup = match &rendering.job.source {
        Source::Html(html) if !rendering.scripts.ran => Some(html.as_str()),
        _ => None,
    };
    let of_page = if markup.is_some_and(|markup| !has_word(markup, "lang")) {
        None
    } else if let Some(language) = markup.and_then(of_root) {
        Some(language.to_owned())
    } else {
        let language = rendering.evaluate_isolated(LANGUAGE).await?;
        language.and_then(|language| language.as_str().map(str::to_owned))
    };
    let of_page = of_page.and_then(|language| Locale::try_from(language.replace('_', "-")).ok());
    Ok(of_page.or_else(|| rendering.job.options.environment.locale.clone()))
}

/// The language of the root element, if it can be told without a parser of HTML: the markup begins with its tag.
fn of_root(html: &str) -> Option<&str> {
    let mut rest = html.trim_ascii_start();
    if let Some(doctype) = after(rest, "<!doctype") {
        rest = doctype.split_once('>')?.1.trim_ascii_start();
    }
    attribute(after(rest, "<html")?)
}

fn after<'a>(text: &'a str, tag: &str) -> Option<&'a str> {
    let (start, rest) = text.split_at_checked(tag.len())?;
    start.eq_ignore_ascii_case(tag).then_some(rest)
}

/// The first `lang` among the attributes of a tag, if it can be read.
fn attribute(mut tag: &str) -> Option<&str> {
    loop {
        let start = tag.trim_ascii_start();
        if start.len() == tag.len() {
            return None;
        }
        let end = start.find(|it: char| !it.is_ascii_alphanumeric() && !"-:_".contains(it))?;
        let (name, value) = start.split_at(end);
        let value = value.strip_prefix('=')?;
        let quote = value.chars().next().filter(|it| "\"'".contains(*it))?;
        let (value, rest) = value[1..].split_once(quote)?;
        if name.eq_ignore_ascii_case("lang") {
            return Some(value).filter(|value| !value.contains('&'));
        }
        tag = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simple_markup_tells_its_language() {
        for (html, expected) in [
            ("<!DOCTYPE html>\n<HTML LANG='de-CH'><p>", Some("de-CH")),
            ("\n<html class=\"a b\" dir='ltr' lang=\"fr\" lang=\"de\">", Some("fr")),
            ("<html lang=\"\">", Some("")),
            ("<html lang=\">\">", Some(">")),
            // What only a parser of HTML reads right.
            ("<html lang=fr>", None),
            ("<html hidden lang=\"fr\">", None),
            ("<html lang = \"fr\">", None),
            ("<html lang=\"f&#114;\">", None),
            ("<html title=\"lang\"><html lang=\"fr\">", None),
            ("<!-- a --><html lang=\"fr\">", None),
            ("<htmlx lang=\"fr\">", None),
            ("<p lang=\"fr\">", None),
            ("<html/lang=\"fr\">", None),
            ("<html lang=\"fr", None),
            ("<html title=\"a\"lang=\"fr\">", None),
        ] {
            assert_eq!(of_root(html), expected, "{html}");
        }
    }
}
