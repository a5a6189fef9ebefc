//! What is read of Chromium's events, borrowed from their text.

use std::{borrow::Cow, collections::HashMap};

use chromiumoxide_cdp::cdp::browser_protocol::target::SessionId;
use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
pub(super) struct Sent<'a> {
    #[serde(rename = "requestId")]
    pub(super) id: &'a str,
    #[serde(borrow)]
    pub(super) request: SentRequest<'a>,
    #[serde(rename = "frameId")]
    pub(super) frame: Option<&'a str>,
    #[serde(rename = "loaderId")]
    pub(super) loader: &'a str,
    #[serde(rename = "type")]
    pub(super) kind: Option<&'a str>,
}

#[derive(Deserialize)]
pub(super) struct SentRequest<'a> {
    #[serde(borrow)]
    pub(super) url: Cow<'a, str>,
}

#[derive(Deserialize)]
pub(super) struct Received<'a> {
    #[serde(rename = "type")]
    pub(super) kind: Option<&'a str>,
    #[serde(borrow)]
    pub(super) response: Response<'a>,
}

#[derive(Deserialize)]
pub(super) struct Response<'a> {
    #[serde(rename = "mimeType", borrow)]
    pub(super) mime_type: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) url: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) headers: HashMap<Cow<'a, str>, &'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct Finished<'a> {
    #[serde(rename = "requestId")]
    pub(super) id: &'a str,
}

#[derive(Deserialize)]
pub(super) struct Failed<'a> {
    #[serde(rename = "requestId")]
    pub(super) id: &'a str,
    #[serde(rename = "errorText")]
    pub(super) error: &'a str,
    #[serde(rename = "canceled", default)]
    pub(super) cancelled: bool,
}

#[derive(Deserialize)]
pub(super) struct AttachedSession {
    #[serde(rename = "sessionId")]
    pub(super) id: SessionId,
}

#[derive(Deserialize)]
pub(super) struct Lifecycle<'a> {
    #[serde(rename = "frameId")]
    pub(super) frame: &'a str,
    pub(super) name: &'a str,
}

#[derive(Deserialize)]
pub(super) struct Dialog<'a> {
    #[serde(rename = "type")]
    pub(super) kind: &'a str,
}
