//! The store of a request. Pages show the records of its statements.

use platen_spin::database::{Database, DatabaseError};

use crate::throttle::{Subject, WINDOW_SECONDS};

/// The store of one request.
pub(crate) type Store = platen_statements::Store<Database>;
/// What the account of the current user owns.
pub(crate) type Account<'s> = platen_statements::AccountScope<'s, Database>;
/// What owners of the account of the current user may do.
pub(crate) type Owner<'s> = platen_statements::OwnerScope<'s, Database>;
/// The current user as an operator.
pub(crate) type Operator<'s> = platen_statements::Operator<'s, Database>;

/// Counts a sign-in attempt; returns the seconds to wait if there were too many.
pub(crate) async fn count_try(store: &Store, subject: &Subject) -> Result<Option<u64>, DatabaseError> {
    store.count_sign_in(&subject.hash, subject.allowed, WINDOW_SECONDS).await
}

/// After a successful sign-in: deletes the count of the e-mail address, and takes this attempt back for
/// the network address.
pub(crate) async fn forget_tries(
    store: &Store,
    email: &Subject,
    address: &Subject,
) -> Result<(), DatabaseError> {
    store.delete_sign_ins(&email.hash, WINDOW_SECONDS).await?;
    store.take_sign_in_back(&address.hash).await
}
