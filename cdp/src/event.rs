//! One event.

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
};

use bytes::Bytes;
use chromiumoxide_types::MethodType;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::CdpError;

/// One event, not parsed yet.
#[derive(Debug)]
pub struct Event {
    pub(crate) method: String,
    /// JSON.
    pub(crate) params: Bytes,
    /// The number of this message among all messages of the browser, comparable with
    /// [`Reply::sequence`](crate::Reply::sequence).
    pub sequence: u64,
    /// The session of the worker that sent the event; `None` if the page sent it.
    pub worker: Option<String>,
}

/// Events that could not be parsed, each reported once.
static REPORTED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

impl Event {
    /// Whether this is an `E`.
    #[must_use]
    pub fn is<E: MethodType>(&self) -> bool {
        E::method_id() == self.method
    }

    /// Its name, for events that have no generated type.
    #[must_use]
    pub fn method(&self) -> &str {
        &self.method
    }

    /// Parses the event as an `E`, its generated type. The type fails on enum values that a later Chromium
    /// adds and on mandatory fields that another version does not send, so the caller must decide what an
    /// event means that cannot be parsed. The first failure of each event is logged.
    ///
    /// # Errors
    /// [`CdpError::Decode`].
    pub fn parse<E: MethodType + DeserializeOwned>(&self) -> Result<E, CdpError> {
        debug_assert!(self.is::<E>(), "{} is parsed as {}", self.method, E::method_id());
        serde_json::from_slice(&self.params).map_err(|source| {
            let method = self.method.clone();
            if REPORTED.lock().unwrap_or_else(PoisonError::into_inner).insert(method.clone()) {
                tracing::debug!(method, error = %source, "cannot decode an event of this browser");
            }
            CdpError::Decode { method, source }
        })
    }

    /// The parameters without a type, for events that [`parse`](Self::parse) cannot parse; null if there are
    /// none.
    #[must_use]
    pub fn fields(&self) -> Value {
        serde_json::from_slice(&self.params).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use chromiumoxide_cdp::cdp::browser_protocol::page::{DialogType, EventJavascriptDialogOpening};

    use super::*;

    fn dialog(kind: &str) -> Event {
        let params = format!(
            r#"{{"url":"","frameId":"F","message":"","type":"{kind}","hasBrowserHandler":false,"new":[1]}}"#
        );
        let method = EventJavascriptDialogOpening::IDENTIFIER.to_owned();
        Event { method, params: params.into(), sequence: 0, worker: None }
    }

    #[test]
    fn an_unknown_field_is_ignored_and_an_unknown_enum_value_is_an_error() {
        let known: EventJavascriptDialogOpening = dialog("alert").parse().unwrap();
        assert_eq!(known.r#type, DialogType::Alert);
        let unknown = dialog("newType");
        assert!(matches!(unknown.parse::<EventJavascriptDialogOpening>(), Err(CdpError::Decode { .. })));
        assert_eq!(unknown.fields()["type"], "newType");
    }
}
