//! `wasi:http/client` for components: determines for which client a request is made before it is sent.

use wasmtime::component::{Accessor, HasData, Resource};
use wasmtime_wasi::TrappableError;
use wasmtime_wasi_http::{
    WasiHttp, WasiHttpCtxView, WasiHttpView as _,
    p3::{
        Request, Response,
        bindings::http::{client::HostWithStore, types::ErrorCode},
    },
};

use super::state::State;

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
                use wasmtime::AsContextMut as _;
                let mut context = access.as_context_mut();
                // The last one is the task of the export that handles the incoming request.
                let task = context.async_call_stack()?.last();
                let state = context.data_mut();
                let request = state.request_of(task);
                state.hooks.client_disconnect = request.client_disconnect;
                state.hooks.trace = request.trace;
                Ok(())
            })
            .map_err(TrappableError::trap)?;
        // Runs up to the hook before any other task of this store runs.
        <WasiHttp as HostWithStore<State>>::send(&store.with_getter::<WasiHttp>(State::http), request).await
    }
}
