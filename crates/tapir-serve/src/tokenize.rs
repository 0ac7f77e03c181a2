//! `/v1/tokenize`: the words of a text, as a model wants them.

use std::sync::Arc;

use axum::Json;
use axum::extract::State as Shared;
use axum::extract::rejection::JsonRejection;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::error::{ErrorBody, Guarded, Posted, Refusal};
use crate::object::Object;
use crate::state::State;

/// A text, and for which model.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TokenizeRequest {
    /// Which model; the default without it.
    #[schema(example = "snips")]
    model: Option<String>,
    #[schema(example = "What's playing?")]
    text: String,
}

/// The words of a text.
#[derive(Serialize, ToSchema)]
pub(crate) struct TokenizeResponse {
    #[schema(example = json!(["what", "s", "playing"]))]
    words: Vec<String>,
}

/// The words of a text, as a model wants them
#[utoipa::path(post, path = "/v1/tokenize", tag = "texts", security((), ("bearer" = [])), request_body = TokenizeRequest, responses(
    (status = 200, description = "Its words", body = TokenizeResponse),
    (status = 404, description = "No such model", body = ErrorBody),
    Guarded,
    Posted,
))]
pub(crate) async fn tokenize(
    Shared(state): Shared<Arc<State>>,
    request: Result<Json<Object<TokenizeRequest>>, JsonRejection>,
) -> Result<Json<TokenizeResponse>, Refusal> {
    let Json(Object(request)) = request.map_err(|error| Refusal::new(error.status(), error.body_text()))?;
    let served = state.models.get(request.model.as_deref())?;
    let words = served.model.config().tokenizer.words(&request.text);
    Ok(Json(TokenizeResponse { words }))
}
