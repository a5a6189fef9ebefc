//! What ids, names and addresses have in common: a text that is read and displayed unchanged.

/// Adds `as_str` and `Display` to a type that holds a text.
macro_rules! text {
    ($name:ident) => {
        impl $name {
            /// The text as it is stored.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}
pub(crate) use text;
