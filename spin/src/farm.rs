//! The farm that components call.
//!
//! Invariant: no type here implements `Debug` for the token, and an error names a variable, with its value only where that is an
//! address.

use platen_shared::farm_address::{FarmAddress, InvalidFarmAddress};
use spin_sdk::wasip3::http::types::{Fields, HeaderError, Method, Request, RequestOptions, Scheme};

use crate::{
    body::{Headers, OutgoingBody, Transfer},
    platform::{Unreadable, variable},
};

/// The farm, and the token that it accepts.
pub struct Farm {
    address: FarmAddress,
    token: String,
}

/// An invalid setting of the farm.
#[derive(Debug, thiserror::Error)]
pub enum InvalidFarm {
    /// A variable that the platform does not provide.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    /// The address.
    #[error("the Spin variable farm_url is invalid: {0}")]
    Url(#[from] InvalidFarmAddress),
    /// The token.
    #[error("the Spin variable farm_token must not be empty")]
    Token,
}

impl Farm {
    /// The farm of the variables `farm_url` and `farm_token`.
    ///
    /// # Errors
    /// [`InvalidFarm`].
    pub async fn read() -> Result<Self, InvalidFarm> {
        let (address, token) = (variable("farm_url").await?.parse()?, variable("farm_token").await?);
        if token.is_empty() { Err(InvalidFarm::Token) } else { Ok(Self { address, token }) }
    }

    /// A POST request with a JSON body, and the transfer of the body. `path` is below the farm's address.
    ///
    /// # Errors
    /// If the platform refuses one of the headers.
    pub fn post(
        &self,
        path: &str,
        mut headers: Headers,
        body: Vec<u8>,
        options: RequestOptions,
    ) -> Result<(Request, Transfer), HeaderError> {
        headers.extend([
            ("authorization".to_owned(), format!("Bearer {}", self.token).into_bytes()),
            ("content-type".to_owned(), b"application/json".to_vec()),
            ("content-length".to_owned(), body.len().to_string().into_bytes()),
        ]);
        let headers = Fields::from_list(&headers)?;
        let OutgoingBody { contents, trailers, transfer } = OutgoingBody::new(body);
        let (request, _sent) = Request::new(headers, Some(contents), trailers, Some(options));
        let FarmAddress { https, authority, path: prefix } = &self.address;
        let scheme = if *https { Scheme::Https } else { Scheme::Http };
        let set = request
            .set_method(&Method::Post)
            .and_then(|()| request.set_scheme(Some(&scheme)))
            .and_then(|()| request.set_authority(Some(authority)))
            .and_then(|()| request.set_path_with_query(Some(&format!("{prefix}{path}"))));
        debug_assert!(set.is_ok(), "the parts of farm_url were checked when it was parsed");
        Ok((request, transfer))
    }
}
