//! The WebAssembly engine and its cache of compiled components.
//!
//! Invariant: guest code is interrupted every [`TICK_INTERVAL`], so that no guest occupies a thread of the
//! server.

use std::{path::Path, thread, time::Duration};

use anyhow::Result;
use wasmtime::{Cache, CacheConfig, Config, Engine};

use super::error::failed;

/// How long guest code runs before it yields to other tasks.
pub(super) const TICK_INTERVAL: Duration = Duration::from_millis(25);

/// Starts the engine. Compiled components are cached in `cache`, an absolute path that only this user may
/// write to, because its files are run as native code.
pub(crate) fn start_engine(cache: &Path) -> Result<Engine> {
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
    let weak = engine.weak();
    // A thread and not a task, because guests may occupy every thread of the async runtime. It ends when the
    // engine is dropped.
    thread::spawn(move || {
        while let Some(engine) = weak.upgrade() {
            engine.increment_epoch();
            drop(engine);
            thread::sleep(TICK_INTERVAL);
        }
    });
    Ok(engine)
}
