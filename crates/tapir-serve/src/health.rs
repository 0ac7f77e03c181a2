//! `/healthz` and `/readyz`: is it alive, and does it take new streams?

use std::sync::Arc;

use axum::extract::State as Shared;
use axum::http::StatusCode;

use crate::error::{ApiError, ErrorBody};
use crate::state::State;

/// The server is alive
#[utoipa::path(get, path = "/healthz", tag = "operation", responses(
    (status = 200, description = "It is", body = String, content_type = "text/plain"),
))]
pub(crate) async fn alive() -> &'static str {
    "ok\n"
}

/// The server takes new streams
#[utoipa::path(get, path = "/readyz", tag = "operation", responses(
    (status = 200, description = "It does", body = String, content_type = "text/plain"),
    (status = 503, description = "It is stopping", body = ErrorBody),
))]
pub(crate) async fn ready(Shared(state): Shared<Arc<State>>) -> Result<&'static str, ApiError> {
    if state.stopping.is_cancelled() {
        return Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "the server is stopping"));
    }
    Ok("ok\n")
}
