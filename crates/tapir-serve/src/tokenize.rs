//! `/v1/tokenize`: the words of a text, as a model wants them.

use std::sync::Arc;

use axum::extract::{Request, State as Shared};
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::body::read_json;
use crate::clients::Peer;
use crate::error::{ApiError, ErrorBody, Guarded, Posted};
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
    Extension(peer): Extension<Peer>,
    request: Request,
) -> Result<Json<TokenizeResponse>, ApiError> {
    read_json(&state, &peer, request, |state, request: TokenizeRequest| {
        let served = state.models.get(request.model.as_deref())?;
        let words = served.model.config().tokenizer.words(&request.text);
        Ok(Json(TokenizeResponse { words }))
    })
    .await
}
