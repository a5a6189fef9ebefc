//! The WebAssembly engine and its cache of compiled components.
//!
//! Invariant: guest code is interrupted every [`TICK`], so that no guest keeps a thread of the
//! server to itself.

use std::{path::Path, sync::Weak, thread, time::Duration};

use wasmtime::{Cache, CacheConfig, Config};

use super::LoadError;

/// How long guest code runs before it lets others go on.
pub(super) const TICK: Duration = Duration::from_millis(25);

/// The engine; a cheap handle.
#[derive(Clone)]
pub(crate) struct Engine {
    engine: wasmtime::Engine,
    // The ticker lives as long as this does.
    _alive: std::sync::Arc<()>,
}

impl Engine {
    /// Starts the engine; compiled components are kept in `cache`, an absolute path that only
    /// this user may write, since what lies there is run as native code.
    pub(crate) fn start(cache: &Path) -> Result<Self, LoadError> {
        let mut kept = CacheConfig::new();
        kept.with_directory(cache);
        let kept = Cache::new(kept).map_err(LoadError::Cache)?;
        let mut config = Config::new();
        config.wasm_component_model_async(true).epoch_interruption(true).cache(Some(kept));
        // Instances are made on demand, not in a pool: one is made for every 128 requests, so
        // its cost does not show, and a pool would reserve address space that small machines
        // and containers do not grant.
        let engine = wasmtime::Engine::new(&config).map_err(LoadError::Engine)?;
        let alive = std::sync::Arc::new(());
        tick(engine.weak(), std::sync::Arc::downgrade(&alive));
        Ok(Self { engine, _alive: alive })
    }

    pub(super) fn get(&self) -> &wasmtime::Engine {
        &self.engine
    }
}

/// A thread of its own: guests that keep every thread of the server busy are just what it is for.
fn tick(engine: wasmtime::EngineWeak, alive: Weak<()>) {
    thread::spawn(move || {
        while alive.strong_count() > 0 {
            thread::sleep(TICK);
            let Some(engine) = engine.upgrade() else { return };
            engine.increment_epoch();
        }
    });
}
