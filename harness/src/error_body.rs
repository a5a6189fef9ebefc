//! The body of an error of the public API.

use anyhow::{Context as _, Result, ensure};
use platen_shared::reason::ErrorCode;
use serde::Deserialize;

/// The codes whose field the message names.
const WITH_FIELD: &[ErrorCode] = &[
    ErrorCode::UnknownField,
    ErrorCode::RepeatedField,
    ErrorCode::MissingField,
    ErrorCode::InvalidField,
    ErrorCode::ConflictingFields,
];

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErrorBody {
    pub error: String,
    /// The code; only a 401 has none.
    pub code: Option<String>,
    pub field: Option<String>,
}

impl ErrorBody {
    /// Reads the body of an answer, and checks that the code belongs to the status, and the field to the code and the
    /// message.
    pub fn read(status: u16, body: &[u8]) -> Result<Self> {
        let text = String::from_utf8_lossy(body);
        let this: Self = serde_json::from_slice(body).with_context(|| format!("not an error: {text:?}"))?;
        if status == 401 {
            ensure!(text == r#"{"error":"Invalid API key"}"#, "the body of a 401 is {text}");
            return Ok(this);
        }
        let name = this.code.as_deref().with_context(|| format!("without a code: {text}"))?;
        let code = ErrorCode::ALL.iter().find(|code| code.as_str() == name);
        let code = *code.with_context(|| format!("an undocumented code: {text}"))?;
        ensure!(code.status() == status, "{status} with the code of a {}: {text}", code.status());
        if WITH_FIELD.contains(&code) {
            let field = this.field.as_deref().with_context(|| format!("without a field: {text}"))?;
            // Without the parts that cannot be shown.
            let shown = field.chars().take(20).collect::<String>();
            ensure!(this.error.contains(&shown), "the message does not name the field: {text}");
        }
        Ok(this)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_fields_are_checked() {
        let read = |status, body: &str| ErrorBody::read(status, body.as_bytes());
        let valid = r#"{"error":"\"width\" must be 1","code":"invalid_field","field":"width"}"#;
        assert_eq!(read(400, valid).unwrap().field.unwrap(), "width");
        read(401, r#"{"error":"Invalid API key"}"#).unwrap();
        for (status, body) in [
            (422, valid),
            (401, r#"{"error":"Invalid API key","code":"invalid_key"}"#),
            (401, r#"{"error": "Invalid API key"}"#),
            (400, r#"{"error":"x"}"#),
            (400, r#"{"error":"x","code":"other"}"#),
            (400, r#"{"error":"x","code":"invalid_json","extra":1}"#),
            (400, r#"{"error":"\"height\" must be 1","code":"invalid_field","field":"width"}"#),
            (400, r#"{"error":"\"width\" must be 1","code":"invalid_field"}"#),
            (400, "x"),
        ] {
            read(status, body).unwrap_err();
        }
    }
}
