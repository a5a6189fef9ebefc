//! The WebAssembly engine and its cache of compiled components.
//!
//! Invariant: guest code is interrupted every [`TICK_INTERVAL`], so that no guest occupies a thread of the
//! server.

use std::{path::Path, sync::Weak, thread, time::Duration};

use wasmtime::{Cache, CacheConfig, Config};

use super::error::LoadError;

/// How long guest code runs before it yields to other tasks.
pub(super) const TICK_INTERVAL: Duration = Duration::from_millis(25);

/// The engine; a cheap handle.
#[derive(Clone)]
pub(crate) struct Engine {
    engine: wasmtime::Engine,
    // The ticker ends when the last handle is dropped.
    _alive: std::sync::Arc<()>,
}

impl Engine {
    /// Starts the engine. Compiled components are cached in `cache`, an absolute path that only this user
    /// may write to, because its files are run as native code.
    pub(crate) fn start(cache: &Path) -> Result<Self, LoadError> {
        let mut cache_config = CacheConfig::new();
        cache_config.with_directory(cache);
        let cache = Cache::new(cache_config).map_err(LoadError::Cache)?;
        let mut config = Config::new();
        config.wasm_component_model_async(true).epoch_interruption(true).cache(Some(cache));
        // Instances are allocated on demand: one serves up to 128 requests, so the cost is small, and a pool
        // reserves address space that small machines and containers may not have.
        let engine = wasmtime::Engine::new(&config).map_err(LoadError::Engine)?;
        let alive = std::sync::Arc::new(());
        tick(engine.weak(), std::sync::Arc::downgrade(&alive));
        Ok(Self { engine, _alive: alive })
    }

    pub(super) fn get(&self) -> &wasmtime::Engine {
        &self.engine
    }
}

/// A thread and not a task, because guests may occupy every thread of the async runtime.
fn tick(engine: wasmtime::EngineWeak, alive: Weak<()>) {
    thread::spawn(move || {
        while alive.strong_count() > 0 {
            thread::sleep(TICK_INTERVAL);
            let Some(engine) = engine.upgrade() else { return };
            engine.increment_epoch();
        }
    });
}
