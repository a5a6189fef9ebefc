//! The two events that are not parsed as their generated types: `Network.requestWillBeSent` and
//! `Network.loadingFailed`.
//!
//! Both decide which requests a job waits for. Without the first a picture is taken too early, without the
//! second a job waits until its deadline, and neither can be replaced by an assumption. The generated
//! types fail on values that the farm does not read: enums that Chromium extends (`CorsError`,
//! `BlockedReason`, the initiator's type, `referrerPolicy`) and mandatory fields that another version does
//! not send (`charset` of a redirect's response). So only the fields that are read are parsed here, borrowed
//! from the event.

use std::borrow::Cow;

use chromiumoxide_cdp::cdp::browser_protocol::network::ResourceType;
use serde::{Deserialize, Deserializer};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RequestWillBeSent<'a> {
    pub(super) request_id: &'a str,
    #[serde(borrow)]
    pub(super) request: Request<'a>,
    pub(super) frame_id: Option<&'a str>,
    pub(super) loader_id: &'a str,
    /// `None` for a type that is newer than the generated ones.
    #[serde(rename = "type", default, deserialize_with = "known_resource_type")]
    pub(super) resource_type: Option<ResourceType>,
}

#[derive(Deserialize)]
pub(super) struct Request<'a> {
    #[serde(borrow)]
    pub(super) url: Cow<'a, str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LoadingFailed<'a> {
    pub(super) request_id: &'a str,
    pub(super) error_text: &'a str,
    #[serde(rename = "canceled", default)]
    pub(super) cancelled: bool,
}

impl RequestWillBeSent<'_> {
    /// Whether the request loads an origin.
    pub(super) fn loads_origin(&self) -> bool {
        !["data:", "blob:", "about:"].iter().any(|scheme| self.request.url.starts_with(scheme))
    }
}

fn known_resource_type<'de, D: Deserializer<'de>>(field: D) -> Result<Option<ResourceType>, D::Error> {
    Ok(<&str>::deserialize(field)?.parse().ok())
}
