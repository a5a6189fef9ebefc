//! The state and the limits of a component instance, and its imports `spin:variables` and `wasi:http/client`.
//!
//! Invariant: a component can read only its own variables. An instance handles up to 16 requests at once, so the only state
//! of a single request here is its [`RequestContext`], by the request's task.

use std::{collections::HashMap, sync::Arc};

use platen_shared::wire;
use secrecy::ExposeSecret as _;
use wasmtime::{
    AsContextMut as _, CallHook, StoreContextMut, StoreLimits, StoreLimitsBuilder,
    component::{Accessor, GuestTaskId, HasData, HasSelf, Resource, ResourceTable},
};
use wasmtime_wasi::{TrappableError, WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};
use wasmtime_wasi_http::{
    WasiHttp, WasiHttpCtx, WasiHttpCtxView, WasiHttpView,
    p3::{
        Request, Response,
        bindings::http::{client::HostWithStore, types::ErrorCode},
    },
};

use super::{
    Grants, RequestContext,
    bindings::spin::variables::variables::{self, Error as VariableError},
    client::Client,
    component_log::ComponentLog,
    hooks::Hooks,
};

/// The data of one instance's store.
pub(crate) struct State {
    wasi: WasiCtx,
    http: WasiHttpCtx,
    pub(super) hooks: Hooks,
    pub(super) table: ResourceTable,
    pub(super) limits: StoreLimits,
    pub(super) grants: Arc<Grants>,
    /// Requests by their tasks. An instance handles a bounded number of requests, so entries are
    /// dropped with it.
    pub(super) requests: HashMap<GuestTaskId, RequestContext>,
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
            limits: StoreLimitsBuilder::new().memory_size(memory_bytes).build(),
            grants,
            requests: HashMap::new(),
            busy_ticks: 0,
            guest_calls: 0,
        }
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

    /// The context of the request for which a guest calls the host; outside of requests one that is never cancelled.
    pub(super) fn request_of(mut context: StoreContextMut<'_, Self>) -> wasmtime::Result<RequestContext> {
        // The last one is the task of the export that handles the incoming request.
        let task = context.async_call_stack()?.last();
        Ok(task.and_then(|task| context.data().requests.get(&task)).cloned().unwrap_or_default())
    }
}

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

impl variables::Host for State {}

impl variables::HostWithStore<State> for HasSelf<State> {
    async fn get(
        accessor: &Accessor<State, Self>,
        name: String,
    ) -> wasmtime::Result<Result<String, VariableError>> {
        Ok(accessor.with(|mut access| match access.get().grants.variables.get(name.as_str()) {
            Some(value) => Ok(value.expose_secret().to_owned()),
            None => Err(VariableError::Undefined(name)),
        }))
    }
}

/// `wasi:http/client`, which determines for which client a request is made before it is sent.
pub(super) struct Outgoing;

impl HasData for Outgoing {
    type Data<'a> = WasiHttpCtxView<'a>;
}

impl HostWithStore<State> for Outgoing {
    async fn send(
        store: &Accessor<State, Self>,
        request: Resource<Request>,
    ) -> Result<Resource<Response>, TrappableError<ErrorCode>> {
        store
            .with(|mut access| -> wasmtime::Result<()> {
                let mut context = access.as_context_mut();
                let request = State::request_of(context.as_context_mut())?;
                let hooks = &mut context.data_mut().hooks;
                (hooks.client_disconnect, hooks.trace) = (request.client_disconnect, request.trace);
                Ok(())
            })
            .map_err(TrappableError::trap)?;
        // Runs up to the hook before any other task of this store runs.
        <WasiHttp as HostWithStore<State>>::send(&store.with_getter::<WasiHttp>(State::http), request).await
    }
}
