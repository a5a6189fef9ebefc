//! The spare pages of one browser, which no account has used.

use crate::page::Page;

#[derive(Debug)]
pub(super) struct SparePages<P = Page> {
    pages: Vec<P>,
    /// Pages that are being opened.
    opening: usize,
}

impl<P> Default for SparePages<P> {
    fn default() -> Self {
        Self { pages: Vec::new(), opening: 0 }
    }
}

impl<P> SparePages<P> {
    pub(super) fn take(&mut self) -> Option<P> {
        self.pages.pop()
    }

    pub(super) fn len(&self) -> usize {
        self.pages.len()
    }

    /// Pages to open now, so that there will be `wanted`. The caller reports each of them with [`SparePages::opened`].
    #[must_use]
    pub(super) fn missing(&mut self, wanted: usize) -> usize {
        let missing = wanted.saturating_sub(self.pages.len() + self.opening);
        self.opening += missing;
        missing
    }

    /// Adds a page; `None` if it could not be opened.
    pub(super) fn opened(&mut self, page: Option<P>) {
        self.opening -= 1;
        self.pages.extend(page);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_missing_spare_is_opened_once() {
        let mut pages = SparePages::default();
        assert_eq!((pages.missing(2), pages.missing(2)), (2, 0));
        pages.opened(Some(1));
        pages.opened(None);
        assert_eq!(pages.missing(2), 1);
        assert_eq!((pages.take(), pages.take()), (Some(1), None));
    }
}
