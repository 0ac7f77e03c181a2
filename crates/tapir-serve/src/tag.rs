//! `/v1/tag`: whole texts, one or many, or a stream of them.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, Request, State as Shared};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use serde::{Deserialize, Serialize};
use tapir::protocol::Operation;
use tokio::sync::mpsc::unbounded_channel;
use tokio_util::codec::{FramedRead, LinesCodec, LinesCodecError};
use tokio_util::io::StreamReader;
use utoipa::ToSchema;

use crate::error::{ErrorBody, Guarded, Posted, Refusal};
use crate::object::Object;
use crate::state::State;
use crate::stream::check_threshold;
use crate::worker::Opening;

/// Texts of one request that are computed at the same time.
const AT_ONCE: usize = 16;

/// A text, or its words.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// A text, which is split into words as the model's corpus was.
    text: Option<String>,
    /// Or its words.
    tokens: Option<Vec<String>>,
}

/// One text (`text` or `tokens`) or many (`inputs`).
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "text": "play some jazz by miles davis" }))]
pub(crate) struct TagRequest {
    /// Which model; the default without it.
    model: Option<String>,
    /// Revise when the policy value reaches this, 0 to 1; the model's own without it.
    #[schema(minimum = 0, maximum = 1)]
    threshold: Option<f64>,
    /// A text, which is split into words as the model's corpus was.
    text: Option<String>,
    /// Or its words.
    tokens: Option<Vec<String>>,
    /// Or many texts.
    #[schema(value_type = Option<Vec<Input>>)]
    inputs: Option<Vec<Object<Input>>>,
}

/// A labelled stretch of words.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TaggedSpan {
    #[schema(example = "artist")]
    label: String,
    /// Its first word.
    start: usize,
    /// One past its last word.
    end: usize,
    #[schema(example = "miles davis")]
    text: String,
}

/// A text with its labels.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Tagged {
    words: Vec<String>,
    /// A label for each word.
    labels: Vec<String>,
    /// The labelled stretches; every word is one where labels are of single words.
    spans: Vec<TaggedSpan>,
}

/// The labels of all texts, in their order.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TagResponse {
    /// The model's name.
    model: String,
    results: Vec<Tagged>,
}

/// Label texts
///
/// JSON: one text or many, answered at once. NDJSON (`application/x-ndjson`): a line for each text, each answered by a
/// line as soon as it is computed, in order, for as many lines as the client likes; a line that cannot be read is answered
/// by `{"error": …}`.
#[utoipa::path(post, path = "/v1/tag", tag = "texts", security((), ("bearer" = [])),
    request_body(content((TagRequest = "application/json"), (String = "application/x-ndjson"))), responses(
    (status = 200, description = "The labels", content((TagResponse = "application/json"), (String = "application/x-ndjson"))),
    (status = 404, description = "No such model", body = ErrorBody),
    Guarded,
    Posted,
    (status = 500, description = "A fault of the server", body = ErrorBody),
    (status = 503, description = "All sessions are taken, or the server is stopping", body = ErrorBody),
))]
pub(crate) async fn tag(Shared(state): Shared<Arc<State>>, request: Request) -> Result<Response, Refusal> {
    if is_lines(request.headers()) {
        return Ok(lines(state, request.into_body()));
    }
    let request = Json::<Object<TagRequest>>::from_request(request, &()).await;
    let Json(Object(request)) = request.map_err(|error| Refusal::new(error.status(), error.body_text()))?;
    Ok(Json(answer(&state, request).await?).into_response())
}

/// Is the body NDJSON, which may go on for ever?
pub(crate) fn is_lines(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next()).map(str::trim);
    kind.is_some_and(|kind| kind.eq_ignore_ascii_case("application/x-ndjson"))
}

/// Labels all texts of a request.
async fn answer(state: &Arc<State>, request: TagRequest) -> Result<TagResponse, Refusal> {
    let TagRequest { model, threshold, text, tokens, inputs } = request;
    let threshold = check_threshold(threshold)?;
    let served = state.models.get(model.as_deref())?;
    let inputs = match (text, tokens, inputs) {
        (None, None, Some(inputs)) => inputs,
        (text, tokens, None) => vec![Object(Input { text, tokens })],
        _ => return Err(Refusal::bad("give `text`, `tokens` or `inputs`, and only one of them")),
    };
    let limit = state.settings.limits.texts;
    if inputs.len() > limit {
        let reason = format!("{} texts are more than {limit}; send fewer, or lines of NDJSON", inputs.len());
        return Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, reason));
    }
    let tokenizer = served.model.config().tokenizer;
    let words = |Object(input): Object<Input>| match (input.text, input.tokens) {
        (Some(text), None) => Ok(tokenizer.words(&text)),
        (None, Some(tokens)) => Ok(tokens),
        _ => Err(Refusal::bad("an input has `text` or `tokens`; give one of them")),
    };
    let inputs = inputs.into_iter().map(words).collect::<Result<Vec<_>, _>>()?;
    let results = stream::iter(inputs.into_iter().map(|words| label(state, &served, threshold, words)));
    let results = results.buffered(AT_ONCE).try_collect().await?;
    Ok(TagResponse { model: served.name.clone(), results })
}

/// Labels one text in a session of its own, so that it is computed in one batch with the streams.
async fn label(
    state: &State,
    served: &Arc<crate::models::Served>,
    threshold: Option<f32>,
    words: Vec<String>,
) -> Result<Tagged, Refusal> {
    let (sender, mut answers) = unbounded_channel();
    let session = state.workers.open(Opening {
        served: served.clone(),
        name: None,
        threshold,
        provisional: false,
        answers: Box::new(move |answer| drop(sender.send(answer))),
        place: state.open_session()?,
    });
    session.ask(Operation::Update(words.clone()), None);
    session.ask(Operation::Finish, None);
    loop {
        let gone = || Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "the server is stopping");
        let answer = answers.recv().await.ok_or_else(gone)?;
        if answer.closed {
            let reason = answer.response.error.unwrap_or_default();
            return Err(Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, reason));
        }
        if let Some(error) = answer.response.error {
            return Err(Refusal::bad(error));
        }
        if let (Some(labels), Some(spans)) = (answer.response.labels, answer.response.spans) {
            let labels = labels.iter().map(ToString::to_string).collect();
            let span = |span: tapir::Span| TaggedSpan {
                label: span.label.to_string(),
                text: words[span.start..span.end].join(" "),
                start: span.start,
                end: span.end,
            };
            let spans = spans.into_iter().map(span).collect();
            return Ok(Tagged { words, labels, spans });
        }
    }
}

/// Answers lines by lines. The next line is read when there is room to compute it: a client that does not read is not
/// read from.
fn lines(state: Arc<State>, body: Body) -> Response {
    let answers = read_lines(body, &state)
        .map(move |line| {
            let state = state.clone();
            async move {
                let answered = match line {
                    Ok(line) if line.trim().is_empty() => return Bytes::new(),
                    Ok(line) => answer_line(&state, &line).await,
                    Err(refusal) => Err(refusal),
                };
                let text = match answered {
                    Ok(response) => serde_json::to_string(&response),
                    Err(refusal) => serde_json::to_string(&serde_json::json!({ "error": refusal.reason })),
                };
                Bytes::from(text.unwrap_or_default() + "\n")
            }
        })
        .buffered(AT_ONCE)
        .map(Ok::<_, Infallible>);
    ([(header::CONTENT_TYPE, "application/x-ndjson")], Body::from_stream(answers)).into_response()
}

async fn answer_line(state: &Arc<State>, line: &str) -> Result<TagResponse, Refusal> {
    let Object(request) = serde_json::from_str(line).map_err(|error| Refusal::bad(error.to_string()))?;
    answer(state, request).await
}

/// The lines of a body, to its end, a line that is too long, or a client that is silent too long.
fn read_lines(body: Body, state: &State) -> impl Stream<Item = Result<String, Refusal>> + use<> {
    let limit = state.settings.limits.message_bytes;
    let idle = Duration::from_secs(state.settings.limits.idle_seconds);
    let reader = StreamReader::new(body.into_data_stream().map_err(std::io::Error::other));
    let lines = FramedRead::new(reader, LinesCodec::new_with_max_length(limit));
    let stopping = state.stopping.clone();
    stream::unfold(Some((lines, stopping)), move |state| async move {
        let (mut lines, stopping) = state?;
        let refuse = |reason: String| Some((Err(Refusal::bad(reason)), None));
        let next = tokio::select! {
            next = tokio::time::timeout(idle, lines.next()) => next,
            () = stopping.cancelled() => return refuse("the server is stopping; the rest is not read".into()),
        };
        match next {
            Err(_) => refuse(format!("no line for {} seconds; the rest is not read", idle.as_secs())),
            Ok(None) => None,
            Ok(Some(Ok(line))) => Some((Ok(line), Some((lines, stopping)))),
            Ok(Some(Err(LinesCodecError::MaxLineLengthExceeded))) => {
                refuse(format!("a line longer than {limit} bytes; the rest is not read"))
            }
            Ok(Some(Err(LinesCodecError::Io(error)))) => refuse(format!("{error}; the rest is not read")),
        }
    })
}
