//! Generated from `wit/`: what `spin:sqlite` and `spin:variables` ask of a host.

#![allow(missing_docs, unreachable_pub, clippy::pedantic, reason = "generated code")]

wasmtime::component::bindgen!({
    path: "wit",
    world: "platen:host/imports",
    imports: { default: async | store | trappable },
    with: { "spin:sqlite/sqlite.connection": super::sqlite::Open },
});
