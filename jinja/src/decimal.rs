//! Decimal numbers, in which amounts are added and rounded as people do it.

use minijinja::{Value, value::ValueKind};

/// `digits` · 10^-`scale`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Decimal {
    digits: i128,
    scale: u32,
}

/// More places are dropped. A number is rounded to fewer, so they do not decide how.
const MAX_SCALE: usize = 30;

impl Decimal {
    pub(crate) const ZERO: Self = Self { digits: 0, scale: 0 };

    /// A number, or a text that is one in digits with at most one point; `None` if it is not, or has more than 38 digits.
    pub(crate) fn of(value: &Value) -> Option<Self> {
        match value.kind() {
            ValueKind::Number if value.is_integer() => {
                Some(Self { digits: value.clone().try_into().ok()?, scale: 0 })
            }
            // The shortest decimal number that is this double, without an exponent.
            ValueKind::Number => Self::parse(&f64::try_from(value.clone()).ok()?.to_string()),
            ValueKind::String => Self::parse(value.as_str()?),
            _ => None,
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
        let whole_digits = whole.strip_prefix('-').unwrap_or(whole);
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(whole_digits) || !is_number(part) {
            return None;
        }
        let kept = part.get(..MAX_SCALE).unwrap_or(part).trim_end_matches('0');
        let digits: i128 = format!("{whole_digits}{kept}").parse().ok()?;
        let digits = if whole.starts_with('-') { -digits } else { digits };
        Some(Self { digits, scale: u32::try_from(kept.len()).ok()? })
    }

    pub(crate) fn add(self, other: Self) -> Option<Self> {
        let scale = self.scale.max(other.scale);
        let digits = self.with_scale(scale)?.checked_add(other.with_scale(scale)?)?;
        Some(Self { digits, scale })
    }

    /// The digits for a scale that is not smaller.
    fn with_scale(self, scale: u32) -> Option<i128> {
        self.digits.checked_mul(10_i128.checked_pow(scale - self.scale)?)
    }

    /// The digits for a scale; of two equally near numbers the one that is farther from zero.
    fn rounded(self, scale: u32) -> Option<i128> {
        if scale >= self.scale {
            return self.with_scale(scale);
        }
        let unit = 10_i128.checked_pow(self.scale - scale)?;
        let (quotient, rest) = (self.digits / unit, self.digits % unit);
        let is_up = rest.unsigned_abs() >= unit.unsigned_abs() - rest.unsigned_abs();
        Some(if is_up { quotient + self.digits.signum() } else { quotient })
    }

    /// The number with this many places, a separator of thousands and a decimal sign; `None` if it has more than 38 digits.
    pub(crate) fn format(self, places: u32, group: &str, decimal: &str) -> Option<String> {
        let digits = self.rounded(places)?;
        let text = digits.unsigned_abs().to_string();
        let places = places as usize;
        let text = format!("{text:0>width$}", width = places + 1);
        let (whole, part) = text.split_at(text.len() - places);
        let mut formatted = if digits < 0 { "-".to_owned() } else { String::new() };
        for (at, digit) in whole.char_indices() {
            if at > 0 && (whole.len() - at).is_multiple_of(3) {
                formatted.push_str(group);
            }
            formatted.push(digit);
        }
        if places > 0 {
            formatted.push_str(decimal);
            formatted.push_str(part);
        }
        Some(formatted)
    }

    /// A number without places as it is, another one as the nearest double.
    pub(crate) fn into_value(self) -> Option<Value> {
        if self.scale == 0 {
            return Some(Value::from(self.digits));
        }
        self.format(self.scale, "", ".")?.parse::<f64>().ok().map(Value::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_half_away_from_zero() {
        for (value, places, expected) in [
            (Value::from(10.5), 2, "10.50"),
            (Value::from(1.005), 2, "1.01"),
            (Value::from(-1.005), 2, "-1.01"),
            (Value::from(2.5), 0, "3"),
            (Value::from(-2.5), 0, "-3"),
            (Value::from(-0.001), 2, "0.00"),
            (Value::from(0.05), 1, "0.1"),
            (Value::from(999.995), 2, "1.000,00"),
            (Value::from(1_234_567), 2, "1.234.567,00"),
            (Value::from("0.125"), 2, "0.13"),
            (Value::from("-0.125"), 2, "-0.13"),
            (Value::from("0.12499999999999999999999999999999999999999"), 2, "0.12"),
            (Value::from("0.1250000000000000000000000000000000000000"), 2, "0.13"),
            (Value::from("2.500"), 0, "3"),
            (Value::from("1234567890123456789012345.675"), 2, "1.234.567.890.123.456.789.012.345,68"),
            (Value::from(1e-300), 3, "0.000"),
            (Value::from(i128::MAX), 0, "170.141.183.460.469.231.731.687.303.715.884.105.727"),
        ] {
            let (group, decimal) = if expected.contains(',') || places == 0 { (".", ",") } else { ("", ".") };
            let formatted = Decimal::of(&value).unwrap().format(places, group, decimal).unwrap();
            assert_eq!(formatted, expected, "{value}");
        }
        for bad in ["", "-", "1.", ".5", "1,5", "1e3", "x", "+1", "1.2.3"] {
            assert_eq!(Decimal::of(&Value::from(bad)), None, "{bad}");
        }
        for bad in [Value::from(f64::NAN), Value::from(f64::INFINITY), Value::from(1e300), Value::from(true)]
        {
            assert_eq!(Decimal::of(&bad), None, "{bad}");
        }
    }

    #[test]
    fn amounts_are_added_as_written() {
        let sum = |values: &[f64]| {
            let add =
                |sum: Decimal, value: &f64| sum.add(Decimal::of(&Value::from(*value)).unwrap()).unwrap();
            values.iter().fold(Decimal::ZERO, add).into_value().unwrap().to_string()
        };
        assert_eq!(sum(&[1.1, 2.2]), "3.3");
        assert_eq!(sum(&[0.1; 10]), "1.0");
        assert_eq!(sum(&[1e16, 0.5, -1e16]), "0.5");
        assert_eq!(sum(&[]), "0");
    }
}
