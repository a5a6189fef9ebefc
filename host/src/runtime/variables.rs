//! `spin:variables` for components.
//!
//! Invariant: a component can read only the variables that the manifest gives it.

use secrecy::ExposeSecret as _;
use wasmtime::component::{Accessor, HasData};

use super::{
    bindings::spin::variables::variables::{Error, Host, HostWithStore},
    state::State,
};

/// The interface uses the whole state of the store.
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
