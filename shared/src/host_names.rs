//! Patterns of host names.

use std::str::FromStr;

use serde::{Deserialize, Serialize};
use url::Host;

/// A host name, or all names below one, such as `*.example.com`. Names are compared in ASCII (IDNA), in lower case and
/// without a dot at the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum HostNames {
    /// Exactly this name.
    Exact(String),
    /// All names below this one, but not the name itself.
    Below(String),
}

/// The text is no host name; an address is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "must be a host name such as \"ads.example\", or \"*.ads.example\" for all below it, without scheme, port or path"
)]
pub struct InvalidHostName;

impl HostNames {
    /// Whether a name is one of them. `name` is in ASCII and lower case.
    #[must_use]
    pub fn contain(&self, name: &str) -> bool {
        let name = name.strip_suffix('.').unwrap_or(name);
        match self {
            Self::Exact(host) => host == name,
            Self::Below(parent) => name.strip_suffix(&**parent).is_some_and(|head| head.ends_with('.')),
        }
    }
}

impl FromStr for HostNames {
    type Err = InvalidHostName;

    fn from_str(text: &str) -> Result<Self, InvalidHostName> {
        let (name, variant): (_, fn(String) -> Self) =
            text.strip_prefix("*.").map_or((text, Self::Exact), |parent| (parent, Self::Below));
        let Ok(Host::Domain(name)) = Host::parse(name) else { return Err(InvalidHostName) };
        let name = name.strip_suffix('.').unwrap_or(&name);
        if name.is_empty() || name.contains('*') {
            Err(InvalidHostName)
        } else {
            Ok(variant(name.to_owned()))
        }
    }
}

impl TryFrom<String> for HostNames {
    type Error = InvalidHostName;

    fn try_from(text: String) -> Result<Self, InvalidHostName> {
        text.parse()
    }
}

impl From<HostNames> for String {
    fn from(names: HostNames) -> Self {
        match names {
            HostNames::Exact(name) => name,
            HostNames::Below(parent) => format!("*.{parent}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_a_name_or_all_below_it() {
        let pattern = |text: &str| text.parse::<HostNames>();
        assert!(pattern("Intranet.Example.").unwrap().contain("intranet.example"));
        assert!(pattern("intranet.example").unwrap().contain("intranet.example."));
        assert!(!pattern("intranet.example").unwrap().contain("a.intranet.example"));
        let below = pattern("*.intranet.example").unwrap();
        assert!(below.contain("a.b.intranet.example"));
        assert!(!below.contain("intranet.example") && !below.contain("otherintranet.example"));
        assert!(pattern("*.bücher.example").unwrap().contain("a.xn--bcher-kva.example"));
        for text in [
            "",
            "*",
            "*.",
            ".",
            "a.*.b",
            "a b",
            "http://a.example",
            "a.example:80",
            "a.example/",
            "10.0.0.1",
            "0x7f.1",
            "[::1]",
            "::1",
            "*.10.0.0.1",
        ] {
            assert_eq!(pattern(text), Err(InvalidHostName), "{text:?}");
        }
    }
}
