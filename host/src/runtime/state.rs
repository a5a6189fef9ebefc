//! The state and the limits of a component instance.
//!
//! Invariant: an instance handles up to 16 requests at once, so the only state of a single request here is
//! its [`RequestContext`], by the request's task.

use std::{collections::HashMap, sync::Arc};

use platen_shared::wire;
use wasmtime::{
    CallHook, ResourceLimiter, StoreLimits, StoreLimitsBuilder,
    component::{GuestTaskId, ResourceTable},
};
use wasmtime_wasi::{WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpCtxView, WasiHttpView};

use super::{
    client::Client, component_log::ComponentLog, grants::Grants, hooks::Hooks,
    request_context::RequestContext,
};

/// The data of one instance's store.
pub(crate) struct State {
    wasi: WasiCtx,
    http: WasiHttpCtx,
    pub(super) hooks: Hooks,
    pub(super) table: ResourceTable,
    pub(super) limits: StoreLimits,
    pub(super) grants: Arc<Grants>,
    /// By the task of the request. An instance handles a bounded number of requests, so entries are
    /// dropped with it.
    requests: HashMap<GuestTaskId, RequestContext>,
    /// Ticks that have passed while guest code ran without returning to the host.
    pub(super) busy_ticks: u32,
    /// Calls of guest code that have not returned.
    guest_calls: u32,
}

impl State {
    pub(super) fn new(grants: Arc<Grants>, client: Client, memory_bytes: usize) -> Self {
        let mut wasi = WasiCtxBuilder::new();
        wasi.stdout(ComponentLog::new(Arc::clone(&grants))).stderr(ComponentLog::new(Arc::clone(&grants)));
        wasi.env(wire::QUEUES_STATEMENTS, "1");
        wasi.allow_tcp(false).allow_udp(false).allow_ip_name_lookup(false);
        Self {
            wasi: wasi.build(),
            http: WasiHttpCtx::new(),
            hooks: Hooks::new(client, Arc::clone(&grants)),
            table: ResourceTable::new(),
            limits: StoreLimitsBuilder::new()
                .memory_size(memory_bytes)
                .memories(MAX_MEMORIES)
                .tables(MAX_TABLES)
                .table_elements(MAX_TABLE_ELEMENTS)
                .instances(MAX_INSTANCES)
                .build(),
            grants,
            requests: HashMap::new(),
            busy_ticks: 0,
            guest_calls: 0,
        }
    }

    pub(super) fn begin_request(&mut self, task: GuestTaskId, request: RequestContext) {
        self.requests.insert(task, request);
    }

    pub(super) fn on_call(&mut self, call: CallHook) {
        match call {
            CallHook::CallingWasm => self.guest_calls += 1,
            CallHook::ReturningFromWasm => {
                self.guest_calls = self.guest_calls.saturating_sub(1);
                // Not after calls within a call, such as for memory.
                if self.guest_calls == 0 {
                    self.busy_ticks = 0;
                }
            }
            CallHook::CallingHost | CallHook::ReturningFromHost => {}
        }
    }

    /// That of the request whose task this is; for other tasks one that is never cancelled.
    pub(super) fn request_of(&self, task: Option<GuestTaskId>) -> RequestContext {
        task.and_then(|task| self.requests.get(&task)).cloned().unwrap_or_default()
    }

    pub(super) fn limiter(&mut self) -> &mut dyn ResourceLimiter {
        &mut self.limits
    }
}

// A component consists of a few core modules: that of the program and its adapters.
const MAX_MEMORIES: usize = 16;
const MAX_TABLES: usize = 64;
const MAX_TABLE_ELEMENTS: usize = 100_000;
const MAX_INSTANCES: usize = 64;

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
