//! The kinds of values that fields of a request have.

/// The values of a field.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FieldKind {
    /// `true` or `false`.
    Boolean,
    /// A string.
    Text {
        /// Minimum number of characters.
        min_chars: usize,
        /// Maximum number of characters, or of bytes of UTF-8 if the description says so.
        max_chars: usize,
    },
    /// One of some strings.
    Choice(&'static [&'static str]),
    /// A number.
    Number {
        /// Minimum.
        min: f64,
        /// Maximum.
        max: f64,
        /// Only whole numbers.
        whole: bool,
    },
    /// A number of CSS pixels, or a string with a unit.
    Length,
    /// A length, or an object of four lengths.
    Margin,
    /// An object of four numbers.
    Clip,
    /// An object of strings and numbers.
    Variables,
    /// An object of any JSON.
    Data,
    /// An object of strings.
    Metadata,
    /// One of some strings, or an array of two.
    Standard,
    /// An array of objects of strings.
    Attachments,
    /// An object of strings and an array.
    Protection,
    /// An object of objects of strings, by path.
    Assets,
    /// An array of strings.
    Texts {
        /// Maximum number of strings.
        max: usize,
    },
}
