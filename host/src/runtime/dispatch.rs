//! Hands requests to instances of a component, by Wasmtime's own `ProxyHandler`.
//!
//! Invariant: every bound on an instance stands here with its reason. Left to others: how many
//! requests there are at once (`ProxyHandler` takes any number; [`crate::server`] bounds them).

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use tokio::time::{Sleep, sleep};
use wasmtime::{
    Store, StoreContextMut, UpdateDeadline,
    component::{Component, GuestTaskId, Linker},
};
use wasmtime_wasi_http::{
    WasiBody, WasiHttp, WasiHttpView as _,
    handler::{
        ExpirationError, HandlerState, Instance, ProxyHandler, ProxyPre, ShouldAccept, WorkerExpiration,
        WorkerState, WorkerStatus,
    },
    p3::bindings::{ServicePre, http},
};

use super::{
    Engine, Grants, LoadError, bindings,
    client::{Client, Outgoing},
    engine::TICK,
    sqlite::Sqlite,
    state::{HangUp, State},
    variables::Variables,
};
use crate::{manifest, metrics::Metrics};

/// As in Spin, so that a component behaves the same on both: static data lives that long.
const REQUESTS_PER_INSTANCE: usize = 128;
const REQUESTS_AT_ONCE: usize = 16;
/// 16 bodies of up to 1 MiB with several copies of each fit many times over.
const SMALL_MEMORY: usize = 256 * 1024 * 1024;
/// A body of 32 MiB, its growth by doubling, its decoded text and the job made of it.
const LARGE_MEMORY: usize = 512 * 1024 * 1024;
/// A burst makes an instance for nearly every request, and requests go to idle instances in turn:
/// were they kept for long, steady traffic would keep them all. As in Spin.
const KEPT_IDLE: Duration = Duration::from_secs(1);
/// Receiving the body may take two minutes and rendering half of one. Past this, no answer comes.
const ANSWER_WITHIN: Duration = Duration::from_mins(3);
/// A file of any size to a slow client; what stalls is ended by its connection much earlier.
const FINISH_WITHIN: Duration = Duration::from_hours(1);
/// Guest code computing this long since its instance's last request began is a runaway: parsing
/// the largest body takes about a second.
const COMPUTE_WITHIN: Duration = Duration::from_secs(15);

/// Which instances a request goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Shares an instance with up to 15 others: its body is small.
    Shared,
    /// Has an instance of its own, whose memory is given back when it is done.
    Alone,
}

/// Why a component gave no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ComponentError {
    /// It took too long.
    #[error("the component did not answer in time")]
    Late,
    /// It trapped, or its instance could not be made, or it returned an error.
    #[error("the component failed")]
    Failed(#[source] wasmtime::Error),
}

/// A component, ready to answer; a cheap handle.
#[derive(Clone)]
pub(crate) struct Handler {
    shared: ProxyHandler<Instances>,
    alone: ProxyHandler<Instances>,
}

impl Handler {
    pub(super) fn load(
        engine: &Engine,
        component: &manifest::Component,
        grants: Grants,
        client: &Client,
        metrics: &Arc<Metrics>,
    ) -> Result<Self, LoadError> {
        let (id, path) = (grants.id.clone(), component.source.clone());
        if !path.is_file() {
            return Err(LoadError::NotBuilt { component: id, path, build: component.build_command() });
        }
        let prepare = || {
            let linker = linker(engine.get())?;
            let compiled = Component::from_file(engine.get(), &path)?;
            ServicePre::new(linker.instantiate_pre(&compiled)?)
        };
        let pre = prepare().map_err(|source| LoadError::NotAComponent {
            component: id,
            path: path.clone(),
            source,
        })?;
        let grants = Arc::new(grants);
        let instances = |memory_bytes, at_once, in_all| {
            ProxyHandler::new(Instances {
                engine: engine.clone(),
                pre: ProxyPre::P3(pre.clone()),
                grants: Arc::clone(&grants),
                client: client.clone(),
                metrics: Arc::clone(metrics),
                memory_bytes,
                at_once,
                in_all,
            })
        };
        Ok(Self {
            shared: instances(SMALL_MEMORY, REQUESTS_AT_ONCE, REQUESTS_PER_INSTANCE),
            alone: instances(LARGE_MEMORY, 1, 1),
        })
    }

    /// Answers one request. The component goes on when this is dropped; `hang_up` ends what it
    /// does outside.
    pub(crate) async fn handle(
        &self,
        request: ::http::Request<WasiBody>,
        lane: Lane,
        hang_up: HangUp,
    ) -> Result<::http::Response<WasiBody>, ComponentError> {
        let handler = match lane {
            Lane::Shared => &self.shared,
            Lane::Alone => &self.alone,
        };
        handler.handle(hang_up, request).await.map_err(|error| {
            if error.is::<ExpirationError>() { ComponentError::Late } else { ComponentError::Failed(error) }
        })
    }
}

fn linker(engine: &wasmtime::Engine) -> wasmtime::Result<Linker<State>> {
    let mut linker = Linker::new(engine);
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    wasmtime_wasi::p3::add_to_linker(&mut linker)?;
    http::types::add_to_linker::<_, WasiHttp>(&mut linker, State::http)?;
    http::client::add_to_linker::<_, Outgoing>(&mut linker, State::http)?;
    bindings::spin::sqlite::sqlite::add_to_linker::<_, Sqlite>(&mut linker, |state| state)?;
    bindings::spin::variables::variables::add_to_linker::<_, Variables>(&mut linker, |state| state)?;
    Ok(linker)
}

/// Makes instances of one component.
struct Instances {
    engine: Engine,
    pre: ProxyPre<State>,
    grants: Arc<Grants>,
    client: Client,
    metrics: Arc<Metrics>,
    memory_bytes: usize,
    at_once: usize,
    in_all: usize,
}

impl HandlerState for Instances {
    type StoreData = State;
    type WorkerExpiration = Expiration;
    type WorkerState = Worker;

    async fn instantiate(&self) -> wasmtime::Result<Instance<State, Expiration, Worker>> {
        let state = State::new(Arc::clone(&self.grants), self.client.clone(), self.memory_bytes);
        let mut store = Store::new(self.engine.get(), state);
        store.limiter(State::limiter);
        store.set_epoch_deadline(1);
        store.epoch_deadline_callback(|mut context| {
            let state = context.data_mut();
            state.busy_ticks += 1;
            if TICK * state.busy_ticks > COMPUTE_WITHIN {
                wasmtime::bail!("the component computed for more than {COMPUTE_WITHIN:?} on end");
            }
            Ok(UpdateDeadline::Yield(1))
        });
        let proxy = self.pre.instantiate_async(&mut store).await?;
        self.metrics.instantiated();
        Ok(Instance {
            store,
            proxy,
            view: State::http,
            expiration: Expiration(Box::pin(sleep(KEPT_IDLE))),
            state: Worker { component: Arc::clone(&self.grants), at_once: self.at_once, in_all: self.in_all },
        })
    }
}

/// When an instance is given up.
struct Expiration(Pin<Box<Sleep>>);

impl WorkerExpiration for Expiration {
    fn poll(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        status: WorkerStatus,
        start: Instant,
    ) -> Poll<()> {
        let patience = match status {
            WorkerStatus::Idle => KEPT_IDLE,
            // Each request has its own time; this ends an instance that keeps it from counting.
            WorkerStatus::Requests => ANSWER_WITHIN * 2,
            WorkerStatus::PostReturn => FINISH_WITHIN,
        };
        let deadline = (start + patience).into();
        if self.0.deadline() != deadline {
            self.0.as_mut().reset(deadline);
        }
        self.0.as_mut().poll(context)
    }
}

/// What one instance accepts.
struct Worker {
    component: Arc<Grants>,
    at_once: usize,
    in_all: usize,
}

impl WorkerState for Worker {
    type StoreData = State;
    type RequestData = HangUp;

    fn should_accept_request(&self, at_once: usize, in_all: usize) -> ShouldAccept {
        if in_all >= self.in_all {
            ShouldAccept::Never
        } else if at_once >= self.at_once {
            ShouldAccept::No
        } else {
            ShouldAccept::Yes
        }
    }

    fn on_request_start(
        &self,
        mut store: StoreContextMut<'_, State>,
        hang_up: HangUp,
        task: GuestTaskId,
    ) -> Pin<Box<dyn Future<Output = ()> + Send + Sync>> {
        store.data_mut().begin(task, hang_up);
        Box::pin(sleep(ANSWER_WITHIN))
    }

    fn drop(&self, _: Store<State>, result: wasmtime::Result<()>) {
        if let Err(error) = result {
            tracing::error!(
                component = self.component.id,
                error = format!("{error:?}"),
                "an instance failed"
            );
        }
    }
}
