//! The size of the pool and its limits.

/// Configuration of a pool.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PoolConfig {
    /// Browsers that always run.
    pub(crate) browsers: usize,
    /// Jobs after which a browser is replaced.
    pub(crate) recycle_after: u32,
    /// Used pages that a browser keeps for their accounts.
    pub(crate) warm_pages: usize,
    /// Jobs after which a page is closed.
    pub(crate) page_jobs: u32,
}
