//! The confirmation a page shows after an action: the address carries its word, never its text.

/// The word's text; `None` for a word that is none of ours.
#[must_use]
pub fn text(word: &str) -> Option<&'static str> {
    Some(match word {
        "signed-out" => "You are signed out.",
        "password-changed" => "Your password is changed. Your other sessions are ended.",
        "session-ended" => "The session is ended.",
        "sessions-ended" => "All other sessions are ended.",
        "key-disabled" => "The key is disabled. Requests with it are refused from now on.",
        "key-enabled" => "The key is enabled.",
        "key-deleted" => "The key is deleted.",
        "template-created" => "The template is created.",
        "template-saved" => "The template is saved. The earlier version is kept.",
        "template-duplicated" => "This is the copy.",
        "template-deleted" => "The template and its versions are deleted.",
        "version-restored" => "The version is restored. What was there before is kept as a version.",
        "account-created" => "The account is created. Invite somebody to it.",
        "account-renamed" => "The account is renamed.",
        "quota-changed" => "The quota is changed.",
        "account-disabled" => "The account is disabled. Its keys are refused from now on.",
        "account-enabled" => "The account is enabled.",
        "account-joined" => "You are working in this account now.",
        "person-removed" => "The person is removed and signed out.",
        _ => return None,
    })
}
