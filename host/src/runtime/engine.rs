//! The WebAssembly engine, and how long guest code may run.

use std::{
    mem,
    path::Path,
    sync::mpsc::{SyncSender, sync_channel},
    thread,
    time::Duration,
};

use anyhow::Result;
use tokio::runtime::{Builder, Handle};
use wasmtime::{Cache, CacheConfig, Config, Engine, Store, UpdateDeadline};

use super::state::State;

/// How long guest code runs before it yields to other tasks, so that no guest occupies a thread of the server.
const TICK_INTERVAL: Duration = Duration::from_millis(5);
/// Computing time without returning to the host. Parsing the largest body takes about a second.
const COMPUTE_TIMEOUT: Duration = Duration::from_secs(15);

/// The engine. Its epoch advances only while guest code runs: an idle server uses no CPU time for it.
#[derive(Clone)]
pub(super) struct GuestEngine {
    pub(super) engine: Engine,
    /// Has a message if a tick is due.
    ticks: SyncSender<()>,
    /// The threads of guests. The system divides the cores between them and those of the server and its farm, which a guest that
    /// computes would otherwise stop at each of their many short steps.
    pub(super) threads: Handle,
}

impl GuestEngine {
    /// Starts the engine with its cache of compiled components.
    pub(super) fn start(cache: &Path) -> Result<Self> {
        let mut cache_config = CacheConfig::new();
        cache_config.with_directory(cache);
        let cache = Cache::new(cache_config)
            .map_err(|error| failed(error, "cannot use the directory for compiled components"))?;
        let mut config = Config::new();
        config.wasm_component_model_async(true).epoch_interruption(true).cache(Some(cache));
        // Instances are allocated on demand: one serves up to 128 requests, so the cost is small, and a pool
        // reserves address space that small machines and containers may not have.
        let engine =
            Engine::new(&config).map_err(|error| failed(error, "cannot start the WebAssembly engine"))?;
        let (ticks, due) = sync_channel(1);
        let threads = Builder::new_multi_thread().thread_name("guest").enable_all().build()?;
        let guest_engine = Self { engine: engine.clone(), ticks, threads: threads.handle().clone() };
        // Not dropped, as that of the server.
        mem::forget(threads);
        // A thread and not a task, because guests may occupy every thread of the async runtime.
        thread::Builder::new().name("epoch".to_owned()).spawn(move || {
            for () in due {
                thread::sleep(TICK_INTERVAL);
                engine.increment_epoch();
            }
        })?;
        Ok(guest_engine)
    }

    /// A store whose guest code yields at every tick, and fails if it computes for too long.
    pub(super) fn store(&self, state: State) -> Store<State> {
        let mut store = Store::new(&self.engine, state);
        store.limiter(|state| &mut state.limits);
        let engine = self.clone();
        store.call_hook(move |mut context, call| {
            engine.guest_runs();
            context.data_mut().on_call(call);
            Ok(())
        });
        store.set_epoch_deadline(1);
        let engine = self.clone();
        store.epoch_deadline_callback(move |mut context| {
            engine.guest_runs();
            let state = context.data_mut();
            state.busy_ticks += 1;
            if TICK_INTERVAL * state.busy_ticks > COMPUTE_TIMEOUT {
                wasmtime::bail!("the component computed for more than {COMPUTE_TIMEOUT:?}");
            }
            Ok(UpdateDeadline::Yield(1))
        });
        store
    }

    /// Another tick follows, so that the guest code that runs now reaches its deadline.
    fn guest_runs(&self) {
        // Fails if a tick is due already.
        let _ = self.ticks.try_send(());
    }
}

/// What failed, with the error of Wasmtime as its cause.
pub(super) fn failed(error: wasmtime::Error, what: impl Into<String>) -> anyhow::Error {
    anyhow::Error::from_boxed(error.into()).context(what.into())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use prometheus_client::registry::Registry;
    use wasmtime::{Instance, Module};

    use super::*;
    use crate::{
        db::StatementMetrics,
        metrics::Metrics,
        runtime::{OwnFarm, client::Client},
    };

    /// `(module (func (export "run") (loop (br 0))))`
    const ENDLESS: &[u8] =
        b"\0asm\x01\0\0\0\x01\x04\x01\x60\0\0\x03\x02\x01\0\x07\x07\x01\x03run\0\0\x0a\x09\x01\x07\0\x03\x40\x0c\0\x0b\x0b";

    #[tokio::test]
    async fn guest_code_that_does_not_return_yields_to_other_tasks() {
        let cache = tempfile::tempdir().unwrap();
        let engine = GuestEngine::start(cache.path()).unwrap();
        let metrics = Metrics::register(&mut Registry::default(), &StatementMetrics::default());
        let client = Client::new(OwnFarm::default(), Arc::new(metrics));
        let mut store = engine.store(State::new(Arc::default(), client, 0));
        let module = Module::new(&engine.engine, ENDLESS).unwrap();
        let instance = Instance::new_async(&mut store, &module, &[]).await.unwrap();
        let run = instance.get_typed_func::<(), ()>(&mut store, "run").unwrap();
        // This runtime has one thread.
        tokio::time::timeout(TICK_INTERVAL * 10, run.call_async(&mut store, ())).await.unwrap_err();
    }
}
