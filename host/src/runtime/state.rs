//! What a component instance carries with it, and the limits it runs within.
//!
//! Invariant: one instance answers up to 16 requests at once, so nothing of a single request
//! stands here but the table that tells whose hang-up belongs to which task.

use std::{collections::HashMap, sync::Arc};

use tokio_util::sync::CancellationToken;
use wasmtime::{
    ResourceLimiter, StoreLimits, StoreLimitsBuilder,
    component::{GuestTaskId, ResourceTable},
};
use wasmtime_wasi::{WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpCtxView, WasiHttpView};

use super::{Grants, client};

/// Told when a request's client is gone before its answer is complete.
pub(crate) type HangUp = CancellationToken;

/// The data of one instance's store.
pub(crate) struct State {
    wasi: WasiCtx,
    http: WasiHttpCtx,
    pub(super) hooks: client::Hooks,
    pub(super) table: ResourceTable,
    pub(super) limits: StoreLimits,
    pub(super) grants: Arc<Grants>,
    /// The hang-up of each request's task. An instance answers a bounded number of requests, so
    /// entries are left to be dropped with it.
    hang_ups: HashMap<GuestTaskId, HangUp>,
    /// Ticks of guest code since the last request began.
    pub(super) busy_ticks: u32,
}

impl State {
    pub(super) fn new(grants: Arc<Grants>, client: client::Client, memory_bytes: usize) -> Self {
        let mut wasi = WasiCtxBuilder::new();
        // Both outputs, so that the server's own standard output holds what scripts read there.
        wasi.stdout(wasmtime_wasi::cli::stderr()).stderr(wasmtime_wasi::cli::stderr());
        wasi.allow_tcp(false).allow_udp(false).allow_ip_name_lookup(false);
        Self {
            wasi: wasi.build(),
            http: WasiHttpCtx::new(),
            hooks: client::Hooks::new(client, Arc::clone(&grants)),
            table: ResourceTable::new(),
            limits: StoreLimitsBuilder::new()
                .memory_size(memory_bytes)
                .memories(MEMORIES)
                .tables(TABLES)
                .table_elements(TABLE_ELEMENTS)
                .instances(INSTANCES)
                .build(),
            grants,
            hang_ups: HashMap::new(),
            busy_ticks: 0,
        }
    }

    /// A request's task begins.
    pub(super) fn begin(&mut self, task: GuestTaskId, hang_up: HangUp) {
        self.hang_ups.insert(task, hang_up);
        self.busy_ticks = 0;
    }

    /// The hang-up of the request whose task this is.
    pub(super) fn hang_up_of(&self, task: Option<GuestTaskId>) -> HangUp {
        task.and_then(|task| self.hang_ups.get(&task)).cloned().unwrap_or_default()
    }

    pub(super) fn limiter(&mut self) -> &mut dyn ResourceLimiter {
        &mut self.limits
    }
}

// A component is a handful of core modules: the language's own and its adapters.
const MEMORIES: usize = 16;
const TABLES: usize = 64;
const TABLE_ELEMENTS: usize = 100_000;
const INSTANCES: usize = 64;

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

impl WasiHttpView for State {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        WasiHttpCtxView { hooks: &mut self.hooks, table: &mut self.table, ctx: &mut self.http }
    }
}
