//! Long lists in pages.

use crate::format::number;

/// Rows of one page.
pub(crate) const PAGE_ROWS: u64 = 50;

/// Which page of a list is shown. Pages count from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Paging {
    pub(crate) page: u64,
    /// Number of rows of all pages.
    pub(crate) rows: u64,
    /// The address of the list without the page, with its other parameters.
    base: String,
}

impl Paging {
    /// The page of this number, as the query has it, or the nearest one that exists. `parameters` with an empty value are left out.
    pub(crate) fn new(number: Option<&str>, rows: u64, path: &str, parameters: &[(&str, &str)]) -> Self {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(parameters.iter().filter(|(_, value)| !value.is_empty()));
        let query = query.finish();
        let separator = if query.is_empty() { "" } else { "&" };
        let mut paging = Self { page: 1, rows, base: format!("{path}?{query}{separator}page=") };
        let number = number.and_then(|number| number.parse().ok()).unwrap_or(1);
        paging.page = u64::clamp(number, 1, paging.pages());
        paging
    }

    /// The rows of this page, of all rows.
    pub(crate) fn slice_of<T>(&self, rows: Vec<T>) -> Vec<T> {
        let before = usize::try_from(self.offset()).unwrap_or(usize::MAX);
        let of_page = usize::try_from(PAGE_ROWS).unwrap_or(usize::MAX);
        rows.into_iter().skip(before).take(of_page).collect()
    }

    pub(crate) fn pages(&self) -> u64 {
        self.rows.div_ceil(PAGE_ROWS).max(1)
    }

    /// Number of rows before this page.
    pub(crate) fn offset(&self) -> u64 {
        (self.page - 1) * PAGE_ROWS
    }

    /// The positions of the first and the last row of the page, from 1, and the number of rows.
    pub(crate) fn range(&self) -> String {
        let last = (self.offset() + PAGE_ROWS).min(self.rows);
        let first = last.min(self.offset() + 1);
        format!("{}–{} of {}", number(&first), number(&last), number(&self.rows))
    }

    /// The addresses of the page before and the page after this one.
    pub(crate) fn neighbours(&self) -> (Option<String>, Option<String>) {
        let address = |page: u64| format!("{}{page}", self.base);
        let before = (self.page > 1).then(|| address(self.page - 1));
        let after = (self.page < self.pages()).then(|| address(self.page + 1));
        (before, after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_have_neighbours_and_bounds() {
        let of = |number: &str, rows| Paging::new(Some(number), rows, "/t", &[("q", "a&b"), ("x", "")]);
        let paging = of("2", 120);
        assert_eq!((paging.pages(), paging.offset(), &*paging.range()), (3, 50, "51–100 of 120"));
        let (before, after) = paging.neighbours();
        assert_eq!(before.as_deref(), Some("/t?q=a%26b&page=1"));
        assert_eq!(after.as_deref(), Some("/t?q=a%26b&page=3"));
        assert_eq!(
            (of("99", 120).page, of("0", 120).page, of("-1", 120).page, of("x", 120).page),
            (3, 1, 1, 1)
        );
        let empty = of("2", 0);
        assert_eq!((empty.page, &*empty.range()), (1, "0–0 of 0"));
        assert_eq!(empty.neighbours(), (None, None));
        assert_eq!(Paging::new(None, 51, "/t", &[]).neighbours().1.as_deref(), Some("/t?page=2"));
    }
}
