//! `spin:variables` for components.
//!
//! Invariant: a component sees the variables the manifest gives it, and no others.

use secrecy::ExposeSecret as _;
use wasmtime::component::{Accessor, HasData};

use super::{
    bindings::spin::variables::variables::{Error, Host, HostWithStore},
    state::State,
};

/// Marks this interface's part of the store: all of it.
pub(super) struct Variables;

impl HasData for Variables {
    type Data<'a> = &'a mut State;
}

impl Host for State {}

impl HostWithStore<State> for Variables {
    async fn get(accessor: &Accessor<State, Self>, name: String) -> wasmtime::Result<Result<String, Error>> {
        Ok(accessor.with(|mut access| match access.get().grants.variables.get(&name) {
            Some(value) => Ok(value.expose_secret().to_owned()),
            None => Err(Error::Undefined(name)),
        }))
    }
}
