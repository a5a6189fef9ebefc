//! The two operations of the API.

use strum::IntoStaticStr;

/// An operation of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Endpoint {
    /// `POST /v1/render`.
    Render,
    /// `POST /v1/render/template`.
    Template,
}

impl Endpoint {
    /// The operation at a path, which must not include the query.
    #[must_use]
    pub fn of_path(path: &str) -> Option<Self> {
        [Self::Render, Self::Template].into_iter().find(|endpoint| endpoint.path() == path)
    }

    /// The path of the operation.
    #[must_use]
    pub const fn path(self) -> &'static str {
        match self {
            Self::Render => "/v1/render",
            Self::Template => "/v1/render/template",
        }
    }

    /// The name in log lines and in the table of attempts.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}
