//! Generated from `wit/`: the imports `spin:sqlite` and `spin:variables` of a component.

#![allow(missing_docs, unreachable_pub, clippy::pedantic, reason = "generated code")]

wasmtime::component::bindgen!({
    path: "wit",
    world: "platen:host/imports",
    imports: { default: async | store | trappable },
    with: { "spin:sqlite/sqlite.connection": crate::db::Connection },
});
