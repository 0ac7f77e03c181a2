//! `/v1/stream`: the messages of `tapir stream` over a WebSocket.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, WebSocketUpgrade, close_code};
use axum::extract::{Query, State as Shared};
use axum::response::Response as HttpResponse;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use serde::Deserialize;
use tapir::Tokenizer;
use tapir::protocol::{Operation, Request, Response};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_tungstenite::tungstenite;
use utoipa::IntoParams;

use crate::access::PROTOCOL;
use crate::clients::{Peer, Permit};
use crate::error::{ApiError, ErrorBody, Guarded};
use crate::metrics::Counted;
use crate::models::Served;
use crate::state::State;
use crate::worker::{Answer, Handle, NewSession, Permits, check_words};

/// How the sessions of a stream are run.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct StreamQuery {
    /// Which model; the default without it.
    model: Option<String>,
    /// Revise when the policy value reaches this, 0 to 1; the model's own without it.
    #[param(minimum = 0, maximum = 1)]
    threshold: Option<f64>,
    /// Answer before a revision is made, and again after it; `false` gives one answer per message.
    #[serde(default = "yes")]
    provisional: bool,
    /// Take words as they are, instead of giving them to the model's tokenizer.
    #[serde(default)]
    pretokenized: bool,
}

fn yes() -> bool {
    true
}

/// A threshold that a client gave.
pub(crate) fn check_threshold(threshold: Option<f64>) -> Result<Option<f32>, ApiError> {
    match threshold {
        Some(given) if !(0.0..=1.0).contains(&given) => {
            Err(ApiError::bad(format!("`threshold` is {given}, expected 0 to 1")))
        }
        threshold => Ok(threshold.map(|given| given as f32)),
    }
}

/// A stream of words over a WebSocket
///
/// One JSON message a frame, as docs/protocol.md describes them; each is answered by one update, or
/// by two if the policy asks for a revision: the first pass's, with `"provisional": true`, and the
/// revision's. Several sessions may share a connection: they are told apart by `"session"`. A
/// browser gives its token as the protocol `bearer.TOKEN`, beside `tapir.v1`.
#[utoipa::path(get, path = "/v1/stream", tag = "streams", params(StreamQuery), security((), ("bearer" = [])), responses(
    (status = 101, description = "The stream begins"),
    (status = 400, description = "Not a WebSocket, or a parameter is wrong", body = ErrorBody),
    (status = 404, description = "No such model", body = ErrorBody),
    Guarded,
    (status = 503, description = "All connections are taken, or the server is stopping", body = ErrorBody),
))]
pub(crate) async fn open(
    Shared(state): Shared<Arc<State>>,
    Extension(peer): Extension<Peer>,
    Extension(permit): Extension<Arc<Permit>>,
    query: Result<Query<StreamQuery>, axum::extract::rejection::QueryRejection>,
    upgrade: Result<WebSocketUpgrade, axum::extract::ws::rejection::WebSocketUpgradeRejection>,
) -> Result<HttpResponse, ApiError> {
    let Query(query) = query.map_err(|error| ApiError::bad(error.body_text()))?;
    let threshold = check_threshold(query.threshold)?;
    let served = state.models.get(query.model.as_deref())?;
    let upgrade =
        upgrade.map_err(|error| ApiError::bad(format!("a WebSocket is expected here: {error}")))?;
    state.check_running()?;
    let bytes = state.settings.limits.message_bytes;
    let upgrade = upgrade
        .protocols([PROTOCOL])
        .max_message_size(bytes)
        .max_frame_size(bytes)
        // Answers are written as soon as there is no further one to write with them.
        .write_buffer_size(4 << 10)
        .max_write_buffer_size(1 << 20)
        .read_buffer_size(4 << 10);
    Ok(upgrade.on_upgrade(move |socket| {
        let provisional = query.provisional;
        let tokenizer = if query.pretokenized {
            Tokenizer::Whitespace
        } else {
            served.model.config().tokenizer
        };
        let connection = Connection {
            state: state.clone(),
            peer,
            served,
            threshold,
            provisional,
            tokenizer,
            _permit: permit,
        };
        state.track(connection.run(socket))
    }))
}

struct Connection {
    state: Arc<State>,
    peer: Peer,
    served: Arc<Served>,
    threshold: Option<f32>,
    provisional: bool,
    tokenizer: Tokenizer,
    _permit: Arc<Permit>,
}

/// Why a stream ends, as the client is told.
struct End(u16, String);

impl Connection {
    async fn run(self, socket: WebSocket) {
        let _counted = Counted::in_gauge(&self.state.metrics.connections);
        let (sink, source) = socket.split();
        let (answers, receiver) = unbounded_channel();
        let (ended, endings) = unbounded_channel();
        let idle = Duration::from_secs(self.state.settings.limits.idle_seconds);
        let patience = Duration::from_secs(self.state.settings.limits.write_seconds);
        let mut writer = tokio::spawn(write(sink, receiver, ended, patience));
        let in_flight = Arc::new(Semaphore::new(self.state.settings.limits.in_flight));
        let mut reader = Reader {
            sessions: HashMap::new(),
            answers,
            endings,
            in_flight: in_flight.clone(),
            pace: Pace::new(self.state.settings.limits.messages_per_second),
            connection: &self,
        };
        let end = tokio::select! {
            end = reader.read(source, idle) => end,
            () = self.state.stopping.cancelled() => Some(End(close_code::AWAY, "the server is stopping".into())),
            // The client has not read for too long, or has gone.
            _ = &mut writer => return,
        };
        if let Some(End(code, reason)) = end {
            // The words in hand are answered first: all permits are back when the last answer is
            // written.
            let grace = Duration::from_secs(self.state.settings.grace_seconds);
            let all = self.state.settings.limits.in_flight as u32;
            let _ = timeout(grace, in_flight.acquire_many(all)).await;
            let frame = CloseFrame { code, reason: Utf8Bytes::from(reason) };
            let _ = reader.answers.send(Out::Close(frame));
        }
        let Reader { sessions, answers, .. } = reader;
        drop((sessions, answers));
        // The writer ends by itself after a closing frame, or when the workers have let the
        // sessions go.
        if timeout(Duration::from_secs(5), &mut writer).await.is_err() {
            writer.abort();
        }
    }
}

/// A session that ended by itself: its name, and its number, since the name may have a new session.
type Ending = (Option<String>, u64);

/// What is written.
enum Out {
    Answer(Box<Answer>),
    Close(CloseFrame),
}

/// Writes until it is told to close, or the client has not read for too long.
async fn write(
    mut sink: SplitSink<WebSocket, Message>,
    mut answers: UnboundedReceiver<Out>,
    ended: UnboundedSender<Ending>,
    patience: Duration,
) {
    while let Some(out) = answers.recv().await {
        let written = match out {
            Out::Answer(answer) => {
                if let Some(id) = answer.ended {
                    let _ = ended.send((answer.response.session.clone(), id));
                }
                let text = serde_json::to_string(&answer.response).unwrap_or_default();
                let last = answers.is_empty();
                timeout(patience, async {
                    sink.feed(Message::text(text)).await?;
                    if last { sink.flush().await } else { Ok(()) }
                })
                .await
            }
            Out::Close(frame) => {
                let _ = timeout(patience, sink.send(Message::Close(Some(frame)))).await;
                return;
            }
        };
        if !matches!(written, Ok(Ok(()))) {
            return;
        }
    }
    // The client has said that it leaves: so do we.
    let _ = timeout(patience, sink.close()).await;
}

struct Reader<'a> {
    sessions: HashMap<Option<String>, Handle>,
    answers: UnboundedSender<Out>,
    endings: UnboundedReceiver<Ending>,
    in_flight: Arc<Semaphore>,
    pace: Pace,
    connection: &'a Connection,
}

impl Reader<'_> {
    /// Reads until the client leaves (none) or has to.
    async fn read(&mut self, mut source: SplitStream<WebSocket>, idle: Duration) -> Option<End> {
        loop {
            let permit = self.in_flight.clone().acquire_owned().await.ok()?;
            self.pace.wait().await;
            let message = match timeout(idle, source.next()).await {
                Err(_) => {
                    let reason = format!("no message for {} seconds", idle.as_secs());
                    return Some(End(close_code::POLICY, reason));
                }
                Ok(None) => return None,
                Ok(Some(Err(error))) => {
                    return refuse(error, self.connection.state.settings.limits.message_bytes);
                }
                Ok(Some(Ok(message))) => message,
            };
            while let Ok((name, id)) = self.endings.try_recv() {
                if self.sessions.get(&name).is_some_and(|handle| handle.id() == id) {
                    self.sessions.remove(&name);
                }
            }
            let Connection { state, peer, .. } = self.connection;
            let bytes = match &message {
                Message::Text(text) => text.len(),
                Message::Binary(data) | Message::Ping(data) | Message::Pong(data) => data.len(),
                Message::Close(_) => 0,
            };
            peer.client.count_message(bytes, &state.settings.limits).await;
            match message {
                Message::Text(text) => self.message(text.as_str(), permit).await,
                Message::Binary(_) => {
                    let reason = "messages are text frames with JSON in them";
                    self.send(Response::refusal(reason), permit);
                }
                Message::Close(_) => return None,
                Message::Ping(_) | Message::Pong(_) => {}
            }
        }
    }

    async fn message(&mut self, text: &str, permit: OwnedSemaphorePermit) {
        if self.connection.state.settings.log_words {
            // Quoted: words cannot end a line of the log and begin another.
            tracing::info!(words = ?text, "received");
        }
        let request = match Request::parse(text) {
            Ok(request) => request,
            Err(error) => return self.send(Response::refusal(error.to_string()), permit),
        };
        let session = request.session.clone();
        let operation =
            request.operation(self.connection.tokenizer).map_err(|error| error.to_string());
        let asked = match operation {
            Ok(operation) => self.ask(session.clone(), operation, permit).await,
            Err(error) => Err((error, permit)),
        };
        if let Err((error, permit)) = asked {
            self.send(Response { session, ..Response::refusal(error) }, permit);
        }
    }

    /// Passes an operation to the worker of its session, which begins with the first one.
    async fn ask(
        &mut self,
        session: Option<String>,
        operation: Operation,
        in_flight: OwnedSemaphorePermit,
    ) -> Result<(), (String, OwnedSemaphorePermit)> {
        let Connection { state, peer, served, threshold, provisional, .. } = self.connection;
        let limits = &state.settings.limits;
        let words = match &operation {
            Operation::Push(words) | Operation::Update(words) => words.words().len(),
            _ => 0,
        };
        if let Err(error) = check_words(words, limits.words) {
            return Err((error.to_string(), in_flight));
        }
        let words = if words > 0 { peer.client.queue_words(words, limits).await } else { None };
        let permits = |in_flight| Permits { in_flight: Some(in_flight), words };
        if operation == Operation::Close {
            match self.sessions.remove(&session) {
                Some(handle) => handle.close(permits(in_flight)),
                None => self.send(Response { session, ..Response::default() }, in_flight),
            }
            return Ok(());
        }
        if let Some(handle) = self.sessions.get(&session) {
            handle.ask(operation, permits(in_flight));
            return Ok(());
        }
        let limit = limits.sessions_per_connection;
        if self.sessions.len() >= limit {
            let reason =
                format!("there are {limit} sessions on this connection already; close one first");
            return Err((reason, in_flight));
        }
        let permit = match state.open_session(&peer.client) {
            Ok(permit) => permit,
            Err(refusal) => return Err((refusal.reason, in_flight)),
        };
        let opened = state.workers.open(NewSession {
            served: served.clone(),
            name: session.clone(),
            threshold: *threshold,
            settled: None,
            provisional: *provisional,
            answers: Box::new({
                let answers = self.answers.clone();
                // A client that has gone needs no answer.
                move |answer| drop(answers.send(Out::Answer(Box::new(answer))))
            }),
            flow: peer.flow(),
            permit,
        });
        let handle = match opened {
            Ok(handle) => handle,
            Err(error) => return Err((error.to_string(), in_flight)),
        };
        handle.ask(operation, permits(in_flight));
        self.sessions.insert(session, handle);
        Ok(())
    }

    fn send(&self, response: Response, permit: OwnedSemaphorePermit) {
        let _ = self.answers.send(Out::Answer(Box::new(Answer::new(response, Some(permit)))));
    }
}

/// What a client is told whose frames cannot be read; nothing if it has gone.
fn refuse(error: axum::Error, limit: usize) -> Option<End> {
    match *error.into_inner().downcast::<tungstenite::Error>().ok()? {
        tungstenite::Error::Capacity(_) => {
            let reason = format!("a message longer than {limit} bytes; send words one by one");
            Some(End(close_code::SIZE, reason))
        }
        tungstenite::Error::Protocol(_) | tungstenite::Error::Utf8(_) => {
            Some(End(close_code::PROTOCOL, "not a WebSocket frame of text".into()))
        }
        _ => None,
    }
}

/// So many messages a second, a second's worth at once.
struct Pace {
    interval: Duration,
    next: Instant,
}

impl Pace {
    fn new(per_second: u32) -> Self {
        Self { interval: Duration::from_secs(1) / per_second, next: Self::second_ago() }
    }

    fn second_ago() -> Instant {
        let now = Instant::now();
        now.checked_sub(Duration::from_secs(1)).unwrap_or(now)
    }

    async fn wait(&mut self) {
        self.next = self.next.max(Self::second_ago()) + self.interval;
        if self.next > Instant::now() {
            sleep_until(self.next).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_second_of_messages_passes_at_once_and_no_more() {
        let mut pace = Pace::new(10);
        let start = Instant::now();
        for _ in 0..30 {
            pace.wait().await;
        }
        let taken = start.elapsed().as_secs_f64();
        assert!((1.9..2.2).contains(&taken), "30 messages at 10 a second took {taken} s");
    }
}
