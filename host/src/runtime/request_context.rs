//! What the host keeps of a request while a component handles it.

use platen_farm::telemetry::Context;

use crate::db::Flow;

use super::disconnect::ClientDisconnect;

#[derive(Clone, Default)]
pub(crate) struct RequestContext {
    pub(crate) client_disconnect: ClientDisconnect,
    /// In whose turn its statements run.
    pub(crate) flow: Flow,
    /// The span of the request, of which statements and requests to farms are parts.
    pub(crate) trace: Option<Context>,
}
