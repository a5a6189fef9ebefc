//! `spin:variables` for components.
//!
//! Invariant: a component can read only the variables that the manifest gives it.

use secrecy::ExposeSecret as _;
use wasmtime::component::{Accessor, HasSelf};

use super::{
    bindings::spin::variables::variables::{Error, Host, HostWithStore},
    state::State,
};

impl Host for State {}

impl HostWithStore<State> for HasSelf<State> {
    async fn get(accessor: &Accessor<State, Self>, name: String) -> wasmtime::Result<Result<String, Error>> {
        Ok(accessor.with(|mut access| match access.get().grants.variables.get(&name) {
            Some(value) => Ok(value.expose_secret().to_owned()),
            None => Err(Error::Undefined(name)),
        }))
    }
}
