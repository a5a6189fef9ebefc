//! Lists as CSV files, which are read and sent in steps.

use platen_shared::log_line::{LogLevel, LogLine};
use platen_spin::{body::BodyWriter, platform};
use platen_statements::CurrentUser;

use crate::router::{
    REQUEST_TIMEOUT,
    context::{Context, Store},
    page_error::{PageError, PageResult},
    response::PageResponse,
};

/// Rows of one statement of an export; about 300 KB.
const EXPORT_ROWS: u32 = 1_000;

/// A list of rows that a user may read.
pub(super) trait List: Sized + 'static {
    type Row;
    /// The path of the file below `/dashboard/`, for the log.
    const SECTION: &'static str;
    const FILE_NAME: &'static str;
    /// The first line of the file.
    const HEADER: &'static str;

    /// Rows, at most `max`, after this one, or the first ones.
    async fn rows(
        &self,
        store: &Store,
        user: &CurrentUser,
        last: Option<&Self::Row>,
        max: u32,
    ) -> Result<Vec<Self::Row>, PageError>;

    fn line(row: &Self::Row) -> String;
}

pub(super) async fn export<L: List>(context: &Context<'_>, list: L) -> PageResult {
    let user = context.current_user()?.clone();
    // Before the response begins, so that an error has its own.
    let first = list.rows(&context.store, &user, None, EXPORT_ROWS).await?;
    let (store, request_id) = (context.store_again(), context.head.request_id.clone());
    let export = Export { list, store, user, request_id };
    let write = move |body| export.write(first, body);
    Ok(PageResponse::written_download("text/csv; charset=utf-8", L::FILE_NAME, write))
}

/// An export that is being sent. It has what it needs of its request, which has been answered.
struct Export<L> {
    list: L,
    store: Store,
    user: CurrentUser,
    request_id: String,
}

impl<L: List> Export<L> {
    /// Writes the first rows and all others; whether the export is complete.
    async fn write(self, mut rows: Vec<L::Row>, mut body: BodyWriter) -> bool {
        let mut lines = L::HEADER.to_owned();
        loop {
            for row in &rows {
                lines.push_str(&L::line(row));
            }
            if !body.write(std::mem::take(&mut lines).into_bytes()).await {
                return false;
            }
            let Some(last) = rows.get(EXPORT_ROWS as usize - 1) else { return true };
            let next = self.list.rows(&self.store, &self.user, Some(last), EXPORT_ROWS);
            rows = match platform::timeout(REQUEST_TIMEOUT, next).await {
                Some(Ok(next)) => next,
                Some(Err(error)) => return self.failed(&error.cause().unwrap_or_else(|| error.to_string())),
                None => return self.failed("the database did not answer in time"),
            };
        }
    }

    fn failed(&self, cause: &str) -> bool {
        platform::log(&LogLine {
            level: LogLevel::Warn,
            message: "an export was aborted".to_owned(),
            request_id: Some(self.request_id.clone()),
            section: Some(L::SECTION.to_owned()),
            cause: Some(cause.to_owned()),
            ..LogLine::default()
        });
        false
    }
}
