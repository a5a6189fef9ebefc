//! What is decided about one connection.
//!
//! Invariant: one verdict for each reason; its name in logs and counters comes from a closed set.

use platen_shared::address;

/// Whether a connection is made, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Verdict {
    /// To a public address.
    Public,
    /// To an address or host that the operator allows.
    Operator,
    /// No: the address is not public.
    NotPublic(address::Verdict),
    /// No: the name can only mean this machine or network.
    LocalName,
    /// No: an address of this machine's own, where services may trust who comes from inside.
    OwnAddress,
    /// No: a port on which the farm itself listens.
    OwnPort,
    /// No: the operator denies the host.
    DeniedHost,
    /// No: the operator denies the address.
    DeniedAddress,
    /// No: not a port that pages may reach.
    Port,
    /// No: a page asked after its job.
    NoJob,
    /// No: the browser asked of its own accord.
    Browser,
    /// No: the job has asked for too many connections.
    TooMany,
    /// No: the job has sent and received too much.
    TooMuch,
    /// No: the job's time is up.
    TooLate,
    /// The name has no address.
    NotFound,
}

impl Verdict {
    /// Whether the connection is made.
    pub(crate) fn allows(self) -> bool {
        matches!(self, Self::Public | Self::Operator)
    }

    /// Whether it is refused for where it leads.
    pub(crate) fn denies_the_place(self) -> bool {
        match self {
            Self::NotPublic(_)
            | Self::LocalName
            | Self::OwnAddress
            | Self::OwnPort
            | Self::DeniedHost
            | Self::DeniedAddress
            | Self::Port => true,
            Self::Public
            | Self::Operator
            | Self::NoJob
            | Self::Browser
            | Self::TooMany
            | Self::TooMuch
            | Self::TooLate
            | Self::NotFound => false,
        }
    }

    /// Its name in logs and counters.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Operator => "operator",
            Self::NotPublic(reason) => reason.name(),
            Self::LocalName => "local_name",
            Self::OwnAddress => "own_address",
            Self::OwnPort => "own_port",
            Self::DeniedHost => "denied_host",
            Self::DeniedAddress => "denied_address",
            Self::Port => "port",
            Self::NoJob => "no_job",
            Self::Browser => "browser",
            Self::TooMany => "too_many",
            Self::TooMuch => "too_much",
            Self::TooLate => "too_late",
            Self::NotFound => "not_found",
        }
    }
}
