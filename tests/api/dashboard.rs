//! The dashboard: in a real browser the way people use it, and over HTTP the way attackers do.

mod access;
mod attacks;
mod entry;
mod hostile;
mod journey;
mod log;
mod looks;
mod operator;
mod password_hashes;
mod support;

use platen_tests::case::Case;

pub(crate) fn cases() -> Vec<Case> {
    [
        journey::cases(),
        operator::cases(),
        entry::cases(),
        password_hashes::cases(),
        access::cases(),
        attacks::cases(),
        hostile::cases(),
        log::cases(),
        looks::cases(),
    ]
    .concat()
}
