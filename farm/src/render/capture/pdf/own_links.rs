//! Links of a PDF to the address that only its job has: they lead nowhere, and would show the address.

use bytes::Bytes;

use crate::render::site::OWN_DOMAIN;

/// The beginning of the action of a link, as Chromium writes it.
const ACTION: &[u8] = b"/A <</Type /Action\n/S /URI\n/URI (";

/// The file without the actions of such links. They are overwritten with spaces, so that nothing else in the file moves.
pub(super) fn removed(file: Bytes) -> Bytes {
    let domain = format!(".{OWN_DOMAIN}/");
    let mut file = Vec::from(file);
    let mut at = 0;
    while let Some(begin) = find(&file[at..], ACTION).map(|begin| at + begin) {
        // An address has its `>` encoded.
        let Some(length) = find(&file[begin..], b">>").map(|length| length + 2) else { break };
        at = begin + length;
        if find(&file[begin..at], domain.as_bytes()).is_some() {
            file[begin..at].fill(b' ');
        }
    }
    file.into()
}

fn find(bytes: &[u8], sought: &[u8]) -> Option<usize> {
    bytes.windows(sought.len()).position(|window| window == sought)
}
