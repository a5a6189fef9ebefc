//! Names that users can take for each other.
//!
//! Invariant: of two programs that give names at the same time, each has compared its name with that of the other: a
//! name is stored only if all names of its scope are among those that it was compared with.

use platen_shared::name::{self, Look, Name};

/// Why a name was not given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameRefusal {
    /// Another account has exactly this name.
    #[error("another account has this name. Choose a different one")]
    Taken,
    /// Another record has a name that looks the same, which is given here.
    #[error("this name looks like “{}”. Choose one that users can tell from it", name::shown(.0))]
    LooksLike(String),
}

/// The names of a scope.
pub(crate) struct Known(Vec<String>);

impl Known {
    pub(crate) fn new(rows: Vec<(String,)>) -> Self {
        Self(rows.into_iter().map(|(name,)| name).collect())
    }

    pub(crate) fn contains(&self, name: &Name) -> bool {
        self.0.iter().any(|known| known == name.as_str())
    }

    /// Another name that looks like this one.
    pub(crate) fn look_alike(self, name: &Name) -> Option<String> {
        let look = Look::of(name.as_str());
        self.0.into_iter().find(|known| known != name.as_str() && Look::of(known).resembles(&look))
    }

    /// For a statement that runs only if there are no other names by now: a JSON array.
    pub(crate) fn json(&self) -> String {
        serde_json::json!(self.0).to_string()
    }
}
