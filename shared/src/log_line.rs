//! A line of a component's log: one JSON object on its standard error, which `platen up` adds to its own log.

use serde::{Deserialize, Serialize};

/// How much a line matters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// Something was lost.
    Error,
    /// A request failed for another reason than the request itself.
    Warn,
    /// A request was answered.
    #[default]
    Info,
}

/// A line. No field has a key, a body, a header or a path of a caller.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LogLine {
    /// How much it matters.
    pub level: LogLevel,
    /// What happened.
    pub message: String,
    /// The `x-request-id` of the response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The endpoint of the API.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// The section of the dashboard.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub section: Option<String>,
    /// The id of the account.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// The status of the response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Time until the head of the response, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ms: Option<u64>,
    /// Time from sending the job to the head of the farm's response, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub farm_ms: Option<u64>,
    /// The `code` of the error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The message of the error, or a general one where that quotes the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Why a request failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// The number of attempts that the line is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<usize>,
    /// The number of attempts that this instance has lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts_in_all: Option<usize>,
}
