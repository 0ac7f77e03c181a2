//! What can go wrong: starting a server, and answering a request.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::{IntoResponses, ToSchema};

/// Why a server cannot start or go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Settings that cannot work.
    #[error("{0}")]
    Settings(String),
    /// A model could not be loaded.
    #[error("model `{name}`: {cause}")]
    Model {
        /// Its name in the settings.
        name: String,
        /// Why.
        cause: tapir::Error,
    },
    /// The address could not be listened on.
    #[error(
        "cannot listen on {address}: {cause}; choose another address or port: --listen, `listen`"
    )]
    Listen {
        /// The address.
        address: std::net::SocketAddr,
        /// What the operating system said.
        cause: std::io::Error,
    },
    /// Certificate or key cannot be used.
    #[error("{certificate} and {key}: {cause}", certificate = tls.certificate.display(), key = tls.key.display())]
    Tls {
        /// The files.
        tls: crate::Tls,
        /// What is wrong with them.
        cause: std::io::Error,
    },
    /// A model worker could not be started.
    #[error("cannot start model worker {index} of {count}: {cause}; set fewer `workers`")]
    Worker {
        /// Which one, from 0.
        index: usize,
        /// How many were asked for.
        count: usize,
        /// What the operating system said.
        cause: std::io::Error,
    },
}

/// What a request is refused with: a status, and what to do about it.
#[derive(Debug)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    pub(crate) reason: String,
}

/// The body of every answer that is not a success.
#[derive(Serialize, ToSchema)]
pub(crate) struct ErrorBody {
    /// What was wrong and what to do.
    error: String,
}

/// How an address for those with a token may refuse.
#[derive(IntoResponses)]
#[allow(dead_code, reason = "for the description alone")]
pub(crate) enum Guarded {
    /// A bearer token is needed
    #[response(status = 401)]
    Unauthorized(#[to_schema] ErrorBody),
    /// The host, or the page's origin, is not allowed
    #[response(status = 403)]
    Forbidden(#[to_schema] ErrorBody),
    /// The request did not arrive in time
    #[response(status = 408)]
    Late(#[to_schema] ErrorBody),
    /// Too many requests per second, or too many sessions
    #[response(status = 429)]
    TooMany(#[to_schema] ErrorBody),
}

/// How an address that takes JSON may refuse.
#[derive(IntoResponses)]
#[allow(dead_code, reason = "for the description alone")]
pub(crate) enum Posted {
    /// Not JSON, or not what is expected
    #[response(status = 400)]
    Bad(#[to_schema] ErrorBody),
    /// The body is too large
    #[response(status = 413)]
    Large(#[to_schema] ErrorBody),
    /// Another media type than is expected
    #[response(status = 415)]
    Media(#[to_schema] ErrorBody),
    /// A field is missing, unknown or of another type
    #[response(status = 422)]
    Fields(#[to_schema] ErrorBody),
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, reason: impl Into<String>) -> Self {
        Self { status, reason: reason.into() }
    }

    pub(crate) fn bad(reason: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, reason)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(ErrorBody { error: self.reason })).into_response();
        let header = match self.status {
            StatusCode::UNAUTHORIZED => Some((header::WWW_AUTHENTICATE, "Bearer")),
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                Some((header::RETRY_AFTER, "1"))
            }
            _ => None,
        };
        if let Some((name, value)) = header {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        response
    }
}
