//! The confirmation that a page shows after an action. The address carries only a code, so no other text can
//! be injected.

/// The text of a code; `None` for an unknown code.
pub(crate) fn text(code: &str) -> Option<&'static str> {
    Some(match code {
        "signed-out" => "You are signed out.",
        "password-changed" => "Password changed. Your other sessions are signed out.",
        "session-ended" => "Session signed out.",
        "sessions-ended" => "Other sessions signed out.",
        "key-disabled" => "API key disabled. Requests with it are refused.",
        "key-enabled" => "API key enabled.",
        "key-renamed" => "API key renamed.",
        "key-expiry-changed" => "Expiry of the API key changed.",
        "key-deleted" => "API key deleted.",
        "template-created" => "Template created.",
        "template-saved" => "Template saved. The previous version is kept.",
        "template-duplicated" => "Template duplicated. You are editing the copy.",
        "template-deleted" => "Template deleted, including its versions.",
        "version-restored" => "Version restored. The content it replaces is kept as a version.",
        "retention-changed" => "Retention changed.",
        "account-created" => "Account created. Invite its first member below.",
        "account-renamed" => "Account renamed.",
        "quota-changed" => "Quota changed.",
        "limits-changed" => "Limits changed.",
        "account-disabled" => "Account disabled. Its API keys are refused.",
        "account-enabled" => "Account enabled.",
        "account-switched" => "This is now your current account.",
        "role-changed" => "Role changed.",
        "invite-revoked" => "Invite revoked. Its link no longer works.",
        "user-removed" => "User removed and signed out.",
        _ => return None,
    })
}
