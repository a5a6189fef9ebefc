//! What is decided about one connection.
//!
//! Invariant: one verdict for each reason; its name in logs and counters comes from a closed set.

use platen_shared::{address, refusal::Refusal};

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
    /// No name server said what addresses the name has.
    NameServerFailed,
}

/// Why there is no connection, as far as the caller is informed of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    /// The address may not be reached.
    AddressDenied,
    /// The port may not be reached.
    PortDenied,
    /// The name has no address.
    NotFound,
    /// The name server failed.
    NameServer,
    /// The host refused the connection.
    Refused,
    /// Anything else.
    Other,
}

impl Failure {
    /// The refusal that the caller gets, about `host`.
    pub(super) fn refusal(self, host: &str) -> Refusal {
        let host = host.to_owned();
        match self {
            Self::AddressDenied => Refusal::AddressNotPublic { host },
            Self::PortDenied => Refusal::PortNotAllowed { host },
            Self::NotFound => Refusal::NameNotFound { host },
            Self::NameServer => Refusal::NameServerFailed,
            Self::Refused => Refusal::ConnectionRefused { host },
            Self::Other => Refusal::ConnectionFailed { host },
        }
    }
}

impl Verdict {
    /// Whether the connection is made.
    pub(crate) fn allows(self) -> bool {
        matches!(self, Self::Public | Self::Operator)
    }

    /// Why the connection was not made; `None` where it is made.
    pub(super) fn failure(self) -> Option<Failure> {
        match self {
            Self::Public | Self::Operator => None,
            Self::NotPublic(_)
            | Self::LocalName
            | Self::OwnAddress
            | Self::OwnPort
            | Self::DeniedHost
            | Self::DeniedAddress => Some(Failure::AddressDenied),
            Self::Port => Some(Failure::PortDenied),
            Self::NotFound => Some(Failure::NotFound),
            Self::NameServerFailed => Some(Failure::NameServer),
            Self::NoJob | Self::Browser | Self::TooMany | Self::TooMuch | Self::TooLate => {
                Some(Failure::Other)
            }
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
            Self::NameServerFailed => "name_server_failed",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One row for each verdict: its name, and the code that the caller gets.
    #[test]
    fn each_verdict_has_its_refusal() {
        for (verdict, name, code) in [
            (Verdict::Public, "public", None),
            (Verdict::Operator, "operator", None),
            (Verdict::NotPublic(address::Verdict::Private), "private", Some("address_not_public")),
            (Verdict::LocalName, "local_name", Some("address_not_public")),
            (Verdict::OwnAddress, "own_address", Some("address_not_public")),
            (Verdict::OwnPort, "own_port", Some("address_not_public")),
            (Verdict::DeniedHost, "denied_host", Some("address_not_public")),
            (Verdict::DeniedAddress, "denied_address", Some("address_not_public")),
            (Verdict::Port, "port", Some("port_not_allowed")),
            (Verdict::NotFound, "not_found", Some("name_not_found")),
            (Verdict::NameServerFailed, "name_server_failed", Some("name_server_failed")),
            (Verdict::NoJob, "no_job", Some("connection_failed")),
            (Verdict::Browser, "browser", Some("connection_failed")),
            (Verdict::TooMany, "too_many", Some("connection_failed")),
            (Verdict::TooMuch, "too_much", Some("connection_failed")),
            (Verdict::TooLate, "too_late", Some("connection_failed")),
        ] {
            let refusal = verdict.failure().map(|failure| failure.refusal("a.test"));
            assert_eq!((verdict.name(), refusal.as_ref().map(Refusal::code)), (name, code));
            assert_eq!(verdict.allows(), code.is_none());
        }
    }
}
