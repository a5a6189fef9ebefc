//! Filters for documents: `number`, `date` and `sum`.

use std::sync::Arc;

use jiff::{Timestamp, Zoned, civil::Date, fmt::strtime, tz::TimeZone};
use minijinja::{
    Environment, Error, ErrorKind, State, Value,
    value::{Kwargs, Rest, ValueKind, from_args},
};

use crate::decimal::Decimal;

/// Maximum of `digits`.
const MAX_PLACES: u32 = 20;
/// Maximum length of separators and of a format, in bytes: the time of each is not counted as steps.
const MAX_FORMAT_BYTES: usize = 200;

/// The cost of a text that is read as a number, or of a double that is written and read.
const STEPS_PER_NUMBER: u64 = 10;
/// `%c` has two bytes and takes a microsecond.
const STEPS_PER_FORMAT_BYTE: u64 = 4;

/// Adds the filters. Times are shown in this zone.
pub(crate) fn add(environment: &mut Environment<'_>, zone: &TimeZone) {
    environment.add_filter("number", number);
    environment.add_filter("sum", sum);
    let zone = Arc::new(zone.clone());
    environment.add_filter(
        "date",
        move |state: &State<'_, '_>, value: &Value, format: Option<&str>, kwargs: Kwargs| {
            date(state, &zone, value, format, &kwargs)
        },
    );
}

fn error(message: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::InvalidOperation, message)
}

/// An error that names the expression of an undefined value, which only a conversion by `minijinja` knows.
fn check_defined(value: &Value) -> Result<(), Error> {
    if value.is_undefined() { f64::try_from(value.clone()).map(|_| ()) } else { Ok(()) }
}

/// The argument at its place, or by its name.
fn text<'k>(
    kwargs: &'k Kwargs,
    name: &'static str,
    given: Option<&'k str>,
) -> Result<Option<&'k str>, Error> {
    let text = match given {
        Some(text) => Some(text),
        None => kwargs.get::<Option<&str>>(name)?,
    };
    match text {
        Some(text) if text.len() > MAX_FORMAT_BYTES => {
            Err(error(format!("\"{name}\" has at most {MAX_FORMAT_BYTES} bytes")))
        }
        text => Ok(text),
    }
}

/// `{{ 1234.5 | number(2, group=".", decimal=",") }}`: `1.234,50`
#[expect(clippy::needless_pass_by_value, reason = "the type of a filter's arguments")]
fn number(
    state: &State<'_, '_>,
    value: &Value,
    arguments: Rest<Value>,
    kwargs: Kwargs,
) -> Result<String, Error> {
    let (digits, group, decimal) = from_args::<(Option<u32>, Option<&str>, Option<&str>)>(&arguments)?;
    let digits = match digits {
        Some(digits) => digits,
        None => kwargs.get::<Option<u32>>("digits")?.unwrap_or(0),
    };
    let group = text(&kwargs, "group", group)?.unwrap_or_default();
    let decimal = text(&kwargs, "decimal", decimal)?.unwrap_or(".");
    kwargs.assert_all_used()?;
    if digits > MAX_PLACES {
        return Err(error(format!("\"digits\" is at most {MAX_PLACES}")));
    }
    check_defined(value)?;
    state.consume_fuel(STEPS_PER_NUMBER)?;
    let formatted = Decimal::of(value).and_then(|number| number.format(digits, group, decimal));
    formatted.ok_or_else(|| not_a_number("number", value))
}

fn not_a_number(filter: &str, value: &Value) -> Error {
    match value.kind() {
        ValueKind::Number | ValueKind::String => {
            error(format!("{filter} needs a number of at most 38 digits, not {value:?}"))
        }
        kind => error(format!("{filter} needs a number, not {kind}")),
    }
}

/// `{{ items | sum("price") }}`, added as decimal numbers: 1.1 and 2.2 are 3.3.
#[expect(clippy::needless_pass_by_value, reason = "the type of a filter's arguments")]
fn sum(
    state: &State<'_, '_>,
    values: &Value,
    attribute: Option<&str>,
    kwargs: Kwargs,
) -> Result<Value, Error> {
    let attribute = match attribute {
        Some(attribute) => Some(attribute),
        None => kwargs.get::<Option<&str>>("attribute")?,
    };
    kwargs.assert_all_used()?;
    check_defined(values)?;
    let mut sum = Decimal::ZERO;
    for (index, item) in values.try_iter()?.enumerate() {
        state.consume_fuel(STEPS_PER_NUMBER)?;
        let value = match attribute {
            None => item,
            Some(path) => member(&item, path)?,
        };
        if value.is_undefined() {
            let path = attribute.unwrap_or_default();
            return Err(error(format!("`{path}` is undefined in the item at index {index}")));
        }
        let number = Decimal::of(&value).ok_or_else(|| not_a_number("sum", &value))?;
        sum = sum.add(number).ok_or_else(|| error("the sum has more than 38 digits"))?;
    }
    sum.into_value().ok_or_else(|| error("the sum has more than 38 digits"))
}

/// The member at a path of names with `.`.
fn member(item: &Value, path: &str) -> Result<Value, Error> {
    path.split('.').take(MAX_FORMAT_BYTES).try_fold(item.clone(), |value, name| {
        if value.is_undefined() { Ok(value) } else { value.get_attr(name) }
    })
}

/// `{{ paid_at | date("%d %B %Y") }}`: an RFC 3339 text, or seconds since 1970.
fn date(
    state: &State<'_, '_>,
    zone: &TimeZone,
    value: &Value,
    format: Option<&str>,
    kwargs: &Kwargs,
) -> Result<String, Error> {
    let format = text(kwargs, "format", format)?.unwrap_or("%Y-%m-%d");
    kwargs.assert_all_used()?;
    check_defined(value)?;
    state.consume_fuel(STEPS_PER_NUMBER + STEPS_PER_FORMAT_BYTE * format.len() as u64)?;
    let time = time(zone, value).ok_or_else(|| match value.kind() {
        ValueKind::Number | ValueKind::String => {
            error(format!("date needs an RFC 3339 text or seconds since 1970, not {value:?}"))
        }
        kind => error(format!("date needs an RFC 3339 text or seconds since 1970, not {kind}")),
    })?;
    strtime::format(format, &time).map_err(|cause| error(format!("date cannot use {format:?}: {cause}")))
}

fn time(zone: &TimeZone, value: &Value) -> Option<Zoned> {
    if let Some(text) = value.as_str() {
        // A day has no zone.
        if let Ok(day) = strtime::parse("%Y-%m-%d", text).and_then(|day| day.to_date()) {
            return Date::to_zoned(day, zone.clone()).ok();
        }
        return Some(text.parse::<Timestamp>().ok()?.to_zoned(zone.clone()));
    }
    if !value.is_number() {
        return None;
    }
    let seconds = f64::try_from(value.clone()).ok().filter(|seconds| seconds.abs() < 1e12)?;
    #[expect(clippy::cast_possible_truncation, reason = "fewer than 10^15")]
    let milliseconds = (seconds * 1000.0).round() as i64;
    Some(Timestamp::from_millisecond(milliseconds).ok()?.to_zoned(zone.clone()))
}
