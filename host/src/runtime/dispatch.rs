//! Dispatches requests to instances of a component, by Wasmtime's `ProxyHandler`, and limits the instances.
//!
//! `ProxyHandler` accepts any number of requests; [`crate::server`] limits them.

use std::{
    path::Path,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use anyhow::Result;
use platen_shared::wire;
use tokio::time::{Sleep, sleep, timeout};
use tokio_util::{
    sync::{CancellationToken, WaitForCancellationFutureOwned},
    task::{TaskTracker, task_tracker::TaskTrackerToken},
};
use wasmtime::{
    Engine, Store, StoreContextMut,
    component::{Component, GuestTaskId, HasSelf, Linker},
};
use wasmtime_wasi::{
    cli::{WasiCli, WasiCliView as _},
    p2::{
        self,
        bindings::{cli, random},
    },
    p3,
    random::{WasiRandom, WasiRandomView as _},
};
use wasmtime_wasi_http::{
    WasiBody, WasiHttp, WasiHttpView as _,
    handler::{
        ExpirationError, HandlerState, Instance, InstantiationError, ProxyHandler, ProxyPre, ShouldAccept,
        WorkerExpiration, WorkerState, WorkerStatus,
    },
    p3::bindings::{ServicePre, http},
};

use super::{
    ComponentError, Grants, RESPONSE_TIMEOUT, RequestContext, bindings,
    client::Client,
    engine::{GuestEngine, failed},
    key_value::KeyValueStore,
    state::{Outgoing, State},
};
use crate::metrics::Metrics;

/// The number of Spin, so that static data of a component is reused as often on both.
const MAX_REQUESTS_PER_INSTANCE: usize = 128;
const MAX_CONCURRENT_REQUESTS: usize = 16;
/// Far more than 16 bodies of up to 1 MiB with several copies of each.
const MAX_SHARED_MEMORY_BYTES: usize = 256 * 1024 * 1024;
/// A body of 32 MiB, its growth by doubling, its decoded text and the job made from it.
const MAX_DEDICATED_MEMORY_BYTES: usize = 512 * 1024 * 1024;
/// The time of Spin. A burst creates an instance for nearly every request, and requests go to idle instances in
/// turn, so with a long timeout steady traffic would keep all of them.
const IDLE_TIMEOUT: Duration = Duration::from_secs(1);

/// Whether requests share an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Isolation {
    /// An instance with up to 15 others, for small bodies.
    Shared,
    /// An instance for one request, whose memory is freed after it.
    Dedicated,
}

/// A component that handles requests; a cheap handle.
#[derive(Clone)]
pub(crate) struct Handler {
    shared: ProxyHandler<Instances>,
    dedicated: ProxyHandler<Instances>,
}

impl Handler {
    pub(super) fn load(
        engine: &GuestEngine,
        path: &Path,
        grants: Grants,
        client: &Client,
        drain: &InstanceDrain,
        metrics: &Arc<Metrics>,
    ) -> Result<Self> {
        let prepare = || {
            let linker = linker(&engine.engine)?;
            let compiled = Component::from_file(&engine.engine, path)?;
            ServicePre::new(linker.instantiate_pre(&compiled)?)
        };
        // Not a component, or not one for HTTP.
        let pre = prepare()
            .map_err(|error| failed(error, format!("the component {} cannot be run", path.display())))?;
        let grants = Arc::new(grants);
        let instances = |max_memory_bytes, max_concurrent, max_total| {
            ProxyHandler::new(Instances {
                engine: engine.clone(),
                pre: ProxyPre::P3(pre.clone()),
                grants: Arc::clone(&grants),
                client: client.clone(),
                metrics: Arc::clone(metrics),
                max_memory_bytes,
                max_concurrent,
                max_total,
                drain: drain.clone(),
            })
        };
        Ok(Self {
            shared: instances(MAX_SHARED_MEMORY_BYTES, MAX_CONCURRENT_REQUESTS, MAX_REQUESTS_PER_INSTANCE),
            dedicated: instances(MAX_DEDICATED_MEMORY_BYTES, 1, 1),
        })
    }

    /// The response to one request. Dropping this does not stop the component; the context's `client_disconnect` ends
    /// its outgoing requests.
    pub(crate) async fn handle(
        &self,
        request: ::http::Request<WasiBody>,
        isolation: Isolation,
        context: RequestContext,
    ) -> Result<::http::Response<WasiBody>, ComponentError> {
        let handler = match isolation {
            Isolation::Shared => &self.shared,
            Isolation::Dedicated => &self.dedicated,
        };
        let handler = handler.clone();
        let threads = handler.state().engine.threads.clone();
        let response = threads.spawn(async move { handler.handle(context, request).await });
        response.await.unwrap_or_else(|error| Err(wasmtime::Error::new(error))).map_err(|error| {
            if error.is::<ExpirationError>() {
                ComponentError::TimedOut
            } else if error.is::<InstantiationError<RequestContext>>() {
                ComponentError::NoInstance(error)
            } else {
                ComponentError::Failed(error)
            }
        })
    }
}

/// A linker with what components import, and not with files and sockets.
fn linker(engine: &Engine) -> wasmtime::Result<Linker<State>> {
    let mut linker = Linker::new(engine);
    p2::add_to_linker_proxy_interfaces_async(&mut linker)?;
    cli::environment::add_to_linker::<_, WasiCli>(&mut linker, State::cli)?;
    cli::exit::add_to_linker::<_, WasiCli>(&mut linker, State::cli)?;
    cli::terminal_input::add_to_linker::<_, WasiCli>(&mut linker, State::cli)?;
    cli::terminal_output::add_to_linker::<_, WasiCli>(&mut linker, State::cli)?;
    cli::terminal_stdin::add_to_linker::<_, WasiCli>(&mut linker, State::cli)?;
    cli::terminal_stdout::add_to_linker::<_, WasiCli>(&mut linker, State::cli)?;
    cli::terminal_stderr::add_to_linker::<_, WasiCli>(&mut linker, State::cli)?;
    random::insecure_seed::add_to_linker::<_, WasiRandom>(&mut linker, State::random)?;
    p3::cli::add_to_linker(&mut linker)?;
    p3::clocks::add_to_linker(&mut linker)?;
    p3::random::add_to_linker(&mut linker)?;
    http::types::add_to_linker::<_, WasiHttp>(&mut linker, State::http)?;
    http::client::add_to_linker::<_, Outgoing>(&mut linker, State::http)?;
    bindings::spin::sqlite::sqlite::add_to_linker::<_, HasSelf<State>>(&mut linker, |state| state)?;
    bindings::spin::variables::variables::add_to_linker::<_, HasSelf<State>>(&mut linker, |state| state)?;
    bindings::wasi::keyvalue::store::add_to_linker::<_, HasSelf<State>>(&mut linker, |state| state)?;
    bindings::wasi::keyvalue::atomics::add_to_linker::<_, HasSelf<State>>(&mut linker, |state| state)?;
    Ok(linker)
}

/// Creates the instances of one component.
struct Instances {
    engine: GuestEngine,
    pre: ProxyPre<State>,
    grants: Arc<Grants>,
    client: Client,
    metrics: Arc<Metrics>,
    max_memory_bytes: usize,
    max_concurrent: usize,
    max_total: usize,
    drain: InstanceDrain,
}

impl HandlerState for Instances {
    type StoreData = State;
    type WorkerExpiration = Expiration;
    type WorkerState = Worker;

    async fn instantiate(&self) -> wasmtime::Result<Instance<State, Expiration, Worker>> {
        let state = State::new(Arc::clone(&self.grants), self.client.clone(), self.max_memory_bytes);
        let mut store = self.engine.store(state);
        let proxy = self.pre.instantiate_async(&mut store).await?;
        self.metrics.instances.inc();
        Ok(Instance {
            store,
            proxy,
            view: State::http,
            expiration: Expiration {
                sleep: Box::pin(sleep(IDLE_TIMEOUT)),
                draining: Box::pin(self.drain.draining.clone().cancelled_owned()),
            },
            state: Worker {
                component: Arc::clone(&self.grants),
                max_concurrent: self.max_concurrent,
                max_total: self.max_total,
                _instance: self.drain.instances.token(),
            },
        })
    }
}

/// Which requests one instance accepts.
struct Worker {
    component: Arc<Grants>,
    max_concurrent: usize,
    max_total: usize,
    _instance: TaskTrackerToken,
}

impl WorkerState for Worker {
    type StoreData = State;
    type RequestData = RequestContext;

    fn should_accept_request(&self, concurrent: usize, total: usize) -> ShouldAccept {
        if total >= self.max_total {
            ShouldAccept::Never
        } else if concurrent >= self.max_concurrent {
            ShouldAccept::No
        } else {
            ShouldAccept::Yes
        }
    }

    fn on_request_start(
        &self,
        mut store: StoreContextMut<'_, State>,
        mut request: RequestContext,
        task: GuestTaskId,
    ) -> Pin<Box<dyn Future<Output = ()> + Send + Sync>> {
        let until_response = request.until_response.take();
        store.data_mut().requests.insert(task, request);
        // Dropped when the component has responded.
        Box::pin(async move {
            sleep(RESPONSE_TIMEOUT).await;
            drop(until_response);
        })
    }

    fn drop(&self, _: Store<State>, result: wasmtime::Result<()>) {
        if let Err(error) = result {
            tracing::error!(
                component = self.component.id,
                error = format!("{error:?}"),
                "a component instance failed"
            );
        }
    }
}

/// Waits for the work that instances of components do after their responses, such as writing rows of the attempt log; a
/// cheap handle.
#[derive(Clone, Default)]
pub(crate) struct InstanceDrain {
    instances: TaskTracker,
    draining: CancellationToken,
    /// The store of the API's component.
    pub(super) store: KeyValueStore,
}

impl InstanceDrain {
    /// Ends idle instances, and waits until the other ones are idle, which give back what they have claimed ahead.
    pub(crate) async fn drain(&self, max_time: Duration) {
        self.draining.cancel();
        self.store.set(wire::DRAINING, &[]);
        self.instances.close();
        if timeout(max_time, self.instances.wait()).await.is_err() {
            let instances = self.instances.len();
            tracing::warn!(
                instances,
                "component instances did not end in time; attempts may be missing in the log"
            );
        }
    }
}

/// When an instance ends.
struct Expiration {
    sleep: Pin<Box<Sleep>>,
    draining: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl WorkerExpiration for Expiration {
    fn poll(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        status: WorkerStatus,
        start: Instant,
    ) -> Poll<()> {
        // Polled in every state, because it wakes the instance.
        let is_draining = self.draining.as_mut().poll(context).is_ready();
        match status {
            WorkerStatus::Idle if is_draining => return Poll::Ready(()),
            WorkerStatus::Idle => {}
            // A request has a timeout of its own until its response, and then its connection ends it.
            WorkerStatus::Requests | WorkerStatus::PostReturn => return Poll::Pending,
        }
        let deadline = (start + IDLE_TIMEOUT).into();
        if self.sleep.deadline() != deadline {
            self.sleep.as_mut().reset(deadline);
        }
        self.sleep.as_mut().poll(context)
    }
}
