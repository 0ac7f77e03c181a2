//! The body of a request: a JSON object that has arrived in time.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, StatusCode, header};
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::clients::Peer;
use crate::error::ApiError;
use crate::object::Object;
use crate::state::State;

/// Longer bodies are worked on beside the sockets: it takes longer than a message may wait.
const SHORT: usize = 16 << 10;

/// Reads a JSON object, counted against the client's rate, and makes something of it.
pub(crate) async fn read_json<T, R>(
    state: &Arc<State>,
    peer: &Peer,
    request: Request,
    make: impl FnOnce(&State, T) -> Result<R, ApiError> + Send + 'static,
) -> Result<R, ApiError>
where
    T: DeserializeOwned + 'static,
    R: Send + 'static,
{
    let kind = media_type(request.headers()).unwrap_or_default().to_ascii_lowercase();
    if kind != "application/json" && !(kind.starts_with("application/") && kind.ends_with("+json"))
    {
        let reason = "expected JSON, with the header `content-type: application/json`";
        return Err(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, reason));
    }
    let patience = Duration::from_secs(state.settings.limits.body_seconds);
    let arrived = timeout(patience, Bytes::from_request(request, &())).await.map_err(|_| {
        let reason = format!("the body was not complete after {} seconds", patience.as_secs());
        ApiError::new(StatusCode::REQUEST_TIMEOUT, reason)
    })?;
    let bytes = arrived.map_err(|error| ApiError::new(error.status(), error.body_text()))?;
    peer.client.count_body(bytes.len(), &state.settings.limits)?;
    let short = bytes.len() <= SHORT;
    let state = state.clone();
    let parse = move || {
        let Json(Object(value)) = Json::<Object<T>>::from_bytes(&bytes)
            .map_err(|error| ApiError::new(error.status(), error.body_text()))?;
        make(&state, value)
    };
    if short {
        return parse();
    }
    tokio::task::spawn_blocking(parse)
        .await
        .unwrap_or_else(|_| Err(ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal error")))
}

/// What a body is said to be, without its parameters.
pub(crate) fn media_type(headers: &HeaderMap) -> Option<&str> {
    let kind = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    kind.split(';').next().map(str::trim)
}
