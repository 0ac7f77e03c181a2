//! `/admin/reload`: read all models anew.

use std::sync::Arc;

use axum::extract::State as Shared;
use axum::http::{HeaderMap, StatusCode};

use crate::access::check_token;
use crate::error::{ApiError, ErrorBody};
use crate::state::State;

/// Read all models anew
///
/// Streams go on with the model they began with. If a model cannot be read, all stay as they were.
#[utoipa::path(post, path = "/admin/reload", tag = "operation", security(("admin" = [])), responses(
    (status = 200, description = "They were read", body = String, content_type = "text/plain"),
    (status = 401, description = "The administrator's token is needed", body = ErrorBody),
    (status = 403, description = "The page's origin is not allowed", body = ErrorBody),
    (status = 404, description = "The server has no administrator's token", body = ErrorBody),
    (status = 429, description = "Too many requests a second", body = ErrorBody),
    (status = 500, description = "A model cannot be read", body = ErrorBody),
))]
pub(crate) async fn reload(
    Shared(state): Shared<Arc<State>>,
    headers: HeaderMap,
) -> Result<&'static str, ApiError> {
    let Some(token) = &state.settings.admin_token else {
        return Err(ApiError::new(
            StatusCode::NOT_FOUND,
            "the server was started without an `admin_token`",
        ));
    };
    check_token(&headers, std::slice::from_ref(token))?;
    reload_models(&state).await?;
    Ok("reloaded\n")
}

/// Reads all models anew, on a thread where that may take time.
pub(crate) async fn reload_models(state: &Arc<State>) -> Result<(), ApiError> {
    let failed = |reason: String| {
        tracing::error!(reason, "the models were not read anew");
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, reason)
    };
    let models = state.clone();
    let reloaded = tokio::task::spawn_blocking(move || models.models.reload()).await;
    reloaded
        .map_err(|error| failed(error.to_string()))?
        .map_err(|error| failed(error.to_string()))?;
    tracing::info!("the models were read anew");
    Ok(())
}
