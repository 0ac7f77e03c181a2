//! `/v1/tag`: whole texts, one or many, or a stream of them.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State as Shared};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use serde::{Deserialize, Serialize};
use tapir::Label;
use tapir::protocol::{Operation, Words};
use tokio::sync::mpsc::{channel, unbounded_channel};
use tokio::time::timeout;
use tokio_util::codec::{FramedRead, LinesCodec, LinesCodecError};
use tokio_util::io::StreamReader;
use tokio_util::task::AbortOnDropHandle;
use utoipa::ToSchema;

use crate::body::{media_type, read_json};
use crate::clients::Peer;
use crate::error::{ApiError, ErrorBody, Guarded, Posted};
use crate::models::Served;
use crate::object::Object;
use crate::state::State;
use crate::stream::check_threshold;
use crate::worker::{NewSession, Permits, check_words};

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
    /// What the text is about, if the model knows intents and there is a word.
    #[serde(skip_serializing_if = "Option::is_none")]
    intent: Option<TaggedIntent>,
}

/// What a text is about.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TaggedIntent {
    #[schema(example = "PlayMusic")]
    label: String,
    /// The model's probability for it.
    probability: f32,
    /// The probability that the text is one of those that the model is for; absent if it did not
    /// learn what is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    in_domain: Option<f32>,
    /// True if that is below 0.5: then the labels mean nothing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    outside: bool,
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
/// JSON: one text or many, answered at once. NDJSON (`application/x-ndjson`): a line for each text,
/// each answered by a line as soon as it is computed, in order, for as many lines as the client
/// likes; a line that cannot be read is answered by `{"error": …}`.
#[utoipa::path(post, path = "/v1/tag", tag = "texts", security((), ("bearer" = [])),
    request_body(content((TagRequest = "application/json"), (String = "application/x-ndjson"))), responses(
    (status = 200, description = "The labels", content((TagResponse = "application/json"), (String = "application/x-ndjson"))),
    (status = 404, description = "No such model", body = ErrorBody),
    Guarded,
    Posted,
    (status = 500, description = "A fault of the server", body = ErrorBody),
    (status = 503, description = "All sessions are taken, or the server is stopping", body = ErrorBody),
))]
pub(crate) async fn tag(
    Shared(state): Shared<Arc<State>>,
    Extension(peer): Extension<Peer>,
    request: Request,
) -> Result<Response, ApiError> {
    if is_lines(request.headers()) {
        return Ok(lines(state, peer, request.into_body()));
    }
    let texts = read_json(&state, &peer, request, Texts::new).await?;
    Ok(Json(texts.label(&state, &peer).await?).into_response())
}

/// Is the body NDJSON, which may go on for ever?
pub(crate) fn is_lines(headers: &HeaderMap) -> bool {
    media_type(headers).is_some_and(|kind| kind.eq_ignore_ascii_case("application/x-ndjson"))
}

/// The texts of a request, split into words and counted.
struct Texts {
    served: Arc<Served>,
    threshold: Option<f32>,
    /// The words of each text.
    words: Vec<Vec<String>>,
}

impl Texts {
    fn new(state: &State, request: TagRequest) -> Result<Self, ApiError> {
        let TagRequest { model, threshold, text, tokens, inputs } = request;
        let threshold = check_threshold(threshold)?;
        let served = state.models.get(model.as_deref())?;
        let inputs = match (text, tokens, inputs) {
            (None, None, Some(inputs)) => inputs,
            (text, tokens, None) => vec![Object(Input { text, tokens })],
            _ => {
                return Err(ApiError::bad(
                    "give `text`, `tokens` or `inputs`, and only one of them",
                ));
            }
        };
        let limits = &state.settings.limits;
        let too_large = |reason| ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, reason);
        let limit = limits.texts;
        if inputs.len() > limit {
            let texts = inputs.len();
            return Err(too_large(format!(
                "{texts} texts are more than {limit}; send fewer, or lines of NDJSON"
            )));
        }
        let tokenizer = served.model.config().tokenizer;
        let words = |Object(input): Object<Input>| {
            let words = match (input.text, input.tokens) {
                (Some(text), None) => tokenizer.words(&text),
                (None, Some(tokens)) => tokens,
                _ => {
                    return Err(ApiError::bad("an input has `text` or `tokens`; give one of them"));
                }
            };
            check_words(words.len(), limits.words)
                .map_err(|error| ApiError::bad(error.to_string()))?;
            Ok(words)
        };
        let texts = inputs.into_iter().map(words).collect::<Result<Vec<_>, _>>()?;
        let (all, limit) = (texts.iter().map(Vec::len).sum::<usize>(), limits.words_per_client);
        if all > limit {
            return Err(too_large(format!(
                "{all} words are more than {limit}; send fewer, or lines of NDJSON"
            )));
        }
        Ok(Self { served, threshold, words: texts })
    }

    /// Labels all texts, some of them at the same time.
    async fn label(self, state: &State, peer: &Peer) -> Result<TagResponse, ApiError> {
        let Self { served, threshold, words } = self;
        let labelled = words.into_iter().map(|words| label(state, peer, &served, threshold, words));
        let results = stream::iter(labelled).buffered(AT_ONCE).try_collect().await?;
        Ok(TagResponse { model: served.name.clone(), results })
    }
}

/// Labels one text in a session of its own, so that it is computed in one batch with the streams.
async fn label(
    state: &State,
    peer: &Peer,
    served: &Arc<Served>,
    threshold: Option<f32>,
    words: Vec<String>,
) -> Result<Tagged, ApiError> {
    let (sender, mut answers) = unbounded_channel();
    let queued = peer.client.queue_words(words.len(), &state.settings.limits).await;
    let opened = state.workers.open(NewSession {
        served: served.clone(),
        name: None,
        threshold,
        settled: None,
        provisional: false,
        answers: Box::new(move |answer| drop(sender.send(answer))),
        flow: peer.flow(),
        permit: state.open_session(&peer.client)?,
    });
    let session = opened.map_err(|error| ApiError::bad(error.to_string()))?;
    session.ask(
        Operation::Update(Words::as_they_are(words.clone())),
        Permits { words: queued, in_flight: None },
    );
    session.ask(Operation::Finish, Permits::default());
    // The edits of both answers give the label of every word: a session may forget its first ones.
    let mut labels: Vec<Label> = Vec::with_capacity(words.len());
    loop {
        let gone = || ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "the server is stopping");
        let answer = answers.recv().await.ok_or_else(gone)?;
        let response = answer.response;
        if answer.ended.is_some() {
            let reason = response.error.unwrap_or_default();
            return Err(ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, reason));
        }
        if let Some(error) = response.error {
            return Err(ApiError::bad(error));
        }
        if let Some(update) = &response.update {
            update.apply(&mut labels);
        }
        let intent = response.update.and_then(|update| update.intent);
        if response.labels.is_some() {
            let span = |span: tapir::Span| TaggedSpan {
                label: span.label.to_string(),
                text: words[span.start..span.end].join(" "),
                start: span.start,
                end: span.end,
            };
            let spans = tapir::spans(&labels, served.model.config().scheme);
            let spans = spans.into_iter().map(span).collect();
            let labels = labels.iter().map(ToString::to_string).collect();
            let intent = intent.map(|intent| TaggedIntent {
                label: intent.label.to_string(),
                probability: intent.probability,
                in_domain: intent.in_domain,
                outside: intent.is_outside(),
            });
            return Ok(Tagged { words, labels, spans, intent });
        }
    }
}

/// Answers lines by lines. Every line is computed by a task of its own, so that its session is
/// given back when its answer is made, whether the client reads it or not; the next line is read
/// when there is room for its answer. A client that does not read is not read from, and in the end
/// cut off.
fn lines(state: Arc<State>, peer: Peer, body: Body) -> Response {
    let (sender, receiver) = channel(AT_ONCE);
    let patience = Duration::from_secs(state.settings.limits.write_seconds);
    let task = AbortOnDropHandle::new(tokio::spawn(async move {
        let lines = read_lines(body, &state);
        let answers = lines.map(|line| {
            let (state, peer) = (state.clone(), peer.clone());
            AbortOnDropHandle::new(tokio::spawn(answer_line(state, peer, line)))
        });
        let mut answers = std::pin::pin!(answers.buffered(AT_ONCE));
        while let Some(answer) = answers.next().await {
            let failed = |_| Bytes::from_static(b"{\"error\":\"internal error\"}\n");
            let answer = answer.unwrap_or_else(failed);
            if !matches!(timeout(patience, sender.send(answer)).await, Ok(Ok(()))) {
                return;
            }
        }
    }));
    // The task ends with the body: at the latest when the connection does.
    let answers = stream::unfold((receiver, task), |(mut receiver, task)| async {
        receiver.recv().await.map(|answer: Bytes| (Ok::<_, Infallible>(answer), (receiver, task)))
    });
    ([(header::CONTENT_TYPE, "application/x-ndjson")], Body::from_stream(answers)).into_response()
}

async fn answer_line(state: Arc<State>, peer: Peer, line: Result<String, ApiError>) -> Bytes {
    let answered = match line {
        Ok(line) if line.trim().is_empty() => return Bytes::new(),
        Ok(line) => label_line(&state, &peer, &line).await,
        Err(refusal) => Err(refusal),
    };
    let text = match answered {
        Ok(response) => serde_json::to_string(&response),
        Err(refusal) => serde_json::to_string(&serde_json::json!({ "error": refusal.reason })),
    };
    Bytes::from(text.unwrap_or_default() + "\n")
}

async fn label_line(state: &State, peer: &Peer, line: &str) -> Result<TagResponse, ApiError> {
    peer.client.count_message(line.len(), &state.settings.limits).await;
    let Object(request) =
        serde_json::from_str(line).map_err(|error| ApiError::bad(error.to_string()))?;
    Texts::new(state, request)?.label(state, peer).await
}

/// The lines of a body, to its end, a line that is too long, or a client that is silent too long.
fn read_lines(body: Body, state: &State) -> impl Stream<Item = Result<String, ApiError>> + use<> {
    let limit = state.settings.limits.message_bytes;
    let idle = Duration::from_secs(state.settings.limits.idle_seconds);
    let reader = StreamReader::new(body.into_data_stream().map_err(std::io::Error::other));
    let lines = FramedRead::new(reader, LinesCodec::new_with_max_length(limit));
    let stopping = state.stopping.clone();
    stream::unfold(Some((lines, stopping)), move |state| async move {
        let (mut lines, stopping) = state?;
        let refuse = |reason: String| Some((Err(ApiError::bad(reason)), None));
        let next = tokio::select! {
            next = timeout(idle, lines.next()) => next,
            () = stopping.cancelled() => return refuse("the server is stopping; the rest is not read".into()),
        };
        match next {
            Err(_) => {
                refuse(format!("no line for {} seconds; the rest is not read", idle.as_secs()))
            }
            Ok(None) => None,
            Ok(Some(Ok(line))) => Some((Ok(line), Some((lines, stopping)))),
            Ok(Some(Err(LinesCodecError::MaxLineLengthExceeded))) => {
                refuse(format!("a line longer than {limit} bytes; the rest is not read"))
            }
            Ok(Some(Err(LinesCodecError::Io(error)))) => {
                refuse(format!("{error}; the rest is not read"))
            }
        }
    })
}
