//! The fields of a request body as options.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use platen_shared::{
    job::PdfStandard,
    request::{FieldKind, FieldName},
};
use serde_json::{
    Number, Value,
    value::{RawValue, to_raw_value},
};

use crate::cli::template;

/// The values of the options as given. Files that they name are read when a job is made.
#[derive(Debug, Default)]
pub(super) struct Fields(Vec<(FieldName, String)>);

impl Fields {
    /// The fields that are options of the command line. The others are its arguments, or concern
    /// saved templates and downloads.
    fn names() -> impl Iterator<Item = FieldName> {
        use FieldName::{FileName, Html, TemplateId, Url};
        FieldName::all().filter(|name| !matches!(name, Html | Url | TemplateId | FileName))
    }

    fn argument(name: FieldName) -> Arg {
        let spec = name.spec();
        let help = help(spec.description);
        let help = match spec.default {
            Some(default) if spec.kind != FieldKind::Boolean => {
                format!("{help} [default: {}]", default.trim_matches('"'))
            }
            _ => help,
        };
        let argument = Arg::new(name.as_str())
            .long(option(name))
            .help(help)
            .help_heading(name.group().to_string())
            .allow_hyphen_values(true);
        match spec.kind {
            FieldKind::Boolean => argument
                .num_args(0..=1)
                .require_equals(true)
                .default_missing_value("true")
                .value_parser(["true", "false"])
                .hide_possible_values(true)
                .value_name("true|false"),
            FieldKind::Number { .. } => argument.value_name("NUMBER"),
            FieldKind::Choice(names) => argument.value_name(names.join("|")),
            FieldKind::Length | FieldKind::Margin => argument.value_name("LENGTH"),
            FieldKind::Clip => argument.value_name("X,Y,WIDTH,HEIGHT"),
            FieldKind::Variables
            | FieldKind::Data
            | FieldKind::Metadata
            | FieldKind::Attachments
            | FieldKind::Protection => argument.value_name("JSON|@FILE"),
            FieldKind::Assets => argument.value_name("JSON|@FILE|DIR"),
            FieldKind::Standard => argument.value_name(PdfStandard::NAMES.join("|")),
            FieldKind::Text { .. } if is_content(name) => argument.value_name("TEXT|@FILE"),
            FieldKind::Texts { .. } => argument.value_name("TEXT,TEXT"),
            FieldKind::Text { .. } => argument.value_name("TEXT"),
        }
    }

    /// The files that the options name.
    pub(super) fn files(&self) -> impl Iterator<Item = PathBuf> {
        let contents = self.0.iter().filter(|(name, _)| is_content(*name));
        contents.filter_map(|(_, text)| text.strip_prefix('@')).map(PathBuf::from)
    }

    /// The folder that `--assets` names, which is no field of a request.
    pub(super) fn folder(&self) -> Option<&Path> {
        self.0.iter().find(|field| is_folder(field)).map(|(_, text)| Path::new(text))
    }

    /// The fields of the request body.
    pub(super) fn values(&self) -> Result<BTreeMap<String, Box<RawValue>>> {
        let fields = self.0.iter().filter(|field| !is_folder(field));
        fields.map(|(name, text)| Ok((name.to_string(), Self::value(*name, text)?))).collect()
    }

    fn value(name: FieldName, text: &str) -> Result<Box<RawValue>> {
        let content = match text.strip_prefix('@').filter(|_| is_content(name)) {
            Some(path) => template::read(path.as_ref())?,
            None => text.to_owned(),
        };
        let number = |text: &str| serde_json::from_str::<Number>(text.trim()).ok().map(Value::Number);
        let or_text = |value: Option<Value>| value.unwrap_or_else(|| text.into());
        let value = match name.spec().kind {
            // Unparsed, because numbers are inserted into a template as they are spelled.
            FieldKind::Variables
            | FieldKind::Data
            | FieldKind::Metadata
            | FieldKind::Attachments
            | FieldKind::Assets
            | FieldKind::Protection => {
                return serde_json::from_str(&content)
                    .with_context(|| format!("--{} must be JSON", option(name)));
            }
            FieldKind::Boolean => Value::Bool(text == "true"),
            FieldKind::Margin if text.starts_with('{') => or_text(serde_json::from_str(text).ok()),
            FieldKind::Standard => match text.split_once(',') {
                Some((first, second)) => Value::from(vec![first.trim(), second.trim()]),
                None => text.into(),
            },
            FieldKind::Texts { .. } => text.split(',').map(str::trim).collect(),
            FieldKind::Number { .. } | FieldKind::Length | FieldKind::Margin => or_text(number(text)),
            FieldKind::Clip => {
                let numbers: Option<Vec<_>> = text.split(',').map(number).collect();
                let members = ["x", "y", "width", "height"].map(str::to_owned);
                let numbers = numbers.filter(|numbers| numbers.len() == members.len());
                or_text(numbers.map(|numbers| members.into_iter().zip(numbers).collect()))
            }
            FieldKind::Text { .. } | FieldKind::Choice(_) => content.into(),
        };
        Ok(to_raw_value(&value)?)
    }
}

/// A description in the words of the command line: options instead of fields, no status codes, and not what a response
/// says in its headers.
fn help(description: &str) -> String {
    let sentences = description.split_inclusive(". ").filter(|sentence| !sentence.contains("`x-page-"));
    let text: String = sentences.collect();
    let words = text.split('`').enumerate().map(|(index, part)| {
        let (field, value) = part.split_once(": ").map_or((part, ""), |(field, value)| (field, value));
        match Fields::names().find(|name| index % 2 == 1 && name.as_str() == field) {
            Some(name) if value.is_empty() => format!("--{}", option(name)),
            Some(name) => format!("--{}={value}", option(name)),
            None => part.to_owned(),
        }
    });
    let text: String = words.collect();
    let text = text.replace("What makes the request a 422", "What makes the command fail");
    text.replace("a 422", "an error").trim_end().trim_end_matches('.').to_owned()
}

/// The name of a field in kebab-case.
fn option(name: FieldName) -> String {
    let mut option = String::new();
    for character in name.as_str().chars() {
        if character.is_ascii_uppercase() {
            option.push('-');
        }
        option.push(character.to_ascii_lowercase());
    }
    option
}

/// Whether the value of `--assets` is neither JSON nor the name of a file.
fn is_folder((name, text): &(FieldName, String)) -> bool {
    *name == FieldName::Assets && !text.trim_start().starts_with(['{', '@'])
}

/// Whether the value is rather in a file than in an argument.
fn is_content(name: FieldName) -> bool {
    use FieldName::{
        Assets, Attachments, Css, Data, FooterFirstHtml, FooterHtml, HeaderFirstHtml, HeaderHtml, InvoiceXml,
        Metadata, Protection, Variables,
    };
    matches!(
        name,
        HeaderHtml
            | FooterHtml
            | HeaderFirstHtml
            | FooterFirstHtml
            | Css
            | Variables
            | Data
            | Metadata
            | Attachments
            | Assets
            | InvoiceXml
            | Protection
    )
}

impl Args for Fields {
    fn augment_args(command: Command) -> Command {
        command.args(Self::names().map(Self::argument))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Fields {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut fields = Self::default();
        fields.update_from_arg_matches(matches)?;
        Ok(fields)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for name in Self::names() {
            if let Some(text) = matches.get_one::<String>(name.as_str()) {
                self.0.push((name, text.clone()));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn helps_have_the_words_of_the_command_line() {
        for name in Fields::names() {
            let help = help(name.spec().description);
            assert!(
                !help.contains("422") && !help.contains('`') && !help.contains("x-page-"),
                "{name}: {help}"
            );
            let words = help.split(|c: char| !c.is_alphanumeric());
            let field = words.into_iter().find(|word| {
                word.contains(char::is_uppercase) && Fields::names().any(|it| it.as_str() == *word)
            });
            assert_eq!(field, None, "{name}: {help}");
        }
        assert_eq!(help("Excludes `javaScript: false`."), "Excludes --java-script=false");
    }
}
