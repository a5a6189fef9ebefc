//! The audit log, and its CSV export.

use platen_statements::{
    CurrentUser,
    audit::{AuditEntry, AuditFilter},
};

use super::export::{self, List};
use crate::{
    filter::{AUDIT_FIELDS, FilterForm},
    pages::{
        Section,
        operator::{AUDIT_CSV_HEADER, AuditLogPage, audit_csv_line},
    },
    router::{
        context::{Context, Store, last_of_full_page},
        page_error::{PageError, PageResult},
    },
};

/// Entries on one page.
const PAGE_ROWS: u32 = 100;

pub(crate) async fn page(context: &Context<'_>) -> PageResult {
    let query = &context.head.query;
    let form = FilterForm::of(query, AUDIT_FIELDS);
    let before = query.get("before").and_then(|text| text.parse().ok());
    let mut entries = context.operator()?.log(&form.entries(), before, PAGE_ROWS + 1).await?;
    let next = last_of_full_page(&mut entries, PAGE_ROWS).map(|last| last.id);
    let layout = context.layout("Audit log", Section::Operator);
    context.page(&AuditLogPage { layout, form, entries, next })
}

pub(crate) async fn export(context: &Context<'_>) -> PageResult {
    context.operator()?;
    export::export(context, Log(FilterForm::of(&context.head.query, AUDIT_FIELDS).entries())).await
}

struct Log(AuditFilter);

impl List for Log {
    type Row = AuditEntry;
    const SECTION: &'static str = "operator";
    const FILE_NAME: &'static str = "platen-audit-log.csv";
    const HEADER: &'static str = AUDIT_CSV_HEADER;

    async fn rows(
        &self,
        store: &Store,
        user: &CurrentUser,
        last: Option<&AuditEntry>,
        max: u32,
    ) -> Result<Vec<AuditEntry>, PageError> {
        let operator = store.operator(user).ok_or(PageError::NotFound)?;
        Ok(operator.log(&self.0, last.map(|last| last.id), max).await?)
    }

    fn line(row: &AuditEntry) -> String {
        audit_csv_line(row)
    }
}
