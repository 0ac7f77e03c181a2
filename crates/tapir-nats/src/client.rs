//! A client of a cell: sends a session's messages, and reads its answers, each once and in order.
//!
//! Answers come by a plain subscription, which is cheap and may lose some when a node dies. Each
//! names the one before it; what is missing is read from the stream.

use std::collections::VecDeque;
use std::error::Error as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_nats::Subscriber;
use async_nats::header::HeaderMap;
use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::context::PublishError;
use async_nats::jetstream::message::PublishMessage;
use bytes::Bytes;
use futures_util::StreamExt;
use tapir::protocol::{Request, Response};
use tokio::time::{Instant, sleep, timeout};

use crate::cell::Cell;
use crate::direct::{self, Query};
use crate::life::{Options, read_answer_headers};
use crate::worker::random_name;
use crate::{Connection, Error, Name};

/// How long a message is offered to the broker: longer than it elects a leader.
const PATIENCE: Duration = Duration::from_secs(30);
/// After so long without an answer that is due, the stream is asked for it.
const SILENCE: Duration = Duration::from_secs(1);
/// Answers that are read at once.
const BATCH: usize = 200;

/// A client of a cell.
#[derive(Clone)]
pub struct Client {
    cell: Arc<Cell>,
}

impl Client {
    /// Connects to a cell that a worker has made.
    pub async fn connect(connection: &Connection, cell: &str) -> Result<Self, Error> {
        let link = connection.link("tapir client").await?;
        Ok(Self { cell: Cell::join(&link, cell).await? })
    }

    /// Of a cell that is open.
    pub(crate) fn of(cell: Arc<Cell>) -> Self {
        Self { cell }
    }

    /// Begins a session, or goes on with one, and listens to its answers from now on.
    pub async fn session(&self, name: &str, options: &Options) -> Result<(Sender, Answers), Error> {
        let name = Name::new(name)?;
        let subject = self.cell.names.output(name.as_str());
        let subscribed = self.cell.client.subscribe(subject).await;
        let subscriber = subscribed.map_err(|error| Error::jetstream("subscribe", error))?;
        // The last answer is read when the subscription is known: none falls between.
        let flushed = self.cell.client.flush().await;
        flushed.map_err(|error| Error::jetstream("subscribe", error))?;
        let last = self.cell.last_answer(&name).await?.map_or(0, |answer| answer.sequence);
        let wanted = Arc::new(AtomicU64::new(0));
        let sender = Sender {
            cell: self.cell.clone(),
            subject: self.cell.names.input(name.as_str()),
            headers: options.headers(),
            id: random_name(),
            sent: 0,
            wanted: wanted.clone(),
        };
        let (cell, queue) = (self.cell.clone(), VecDeque::new());
        let answers = Answers { cell, name, subscriber, last, queue, wanted, answered: 0 };
        Ok((sender, answers))
    }
}

/// Sends the messages of a session.
pub struct Sender {
    cell: Arc<Cell>,
    subject: String,
    headers: HeaderMap,
    /// With a number behind it, the id of a message: a repeated one is taken once.
    id: String,
    sent: u64,
    wanted: Arc<AtomicU64>,
}

impl Sender {
    /// Sends a message and waits until it is kept; gives its sequence, which its answers name.
    pub async fn send(&mut self, request: &Request) -> Result<u64, Error> {
        let payload = serde_json::to_vec(request).unwrap_or_default();
        self.send_bytes(payload.into()).await
    }

    /// The same for what may not be a message at all.
    pub async fn send_bytes(&mut self, payload: Bytes) -> Result<u64, Error> {
        self.sent += 1;
        let id = format!("{}.{}", self.id, self.sent);
        let deadline = Instant::now() + PATIENCE;
        let mut pause = Duration::from_millis(20);
        loop {
            let message = PublishMessage::build()
                .payload(payload.clone())
                .headers(self.headers.clone())
                .message_id(&id);
            let sent = match self.cell.context.send_publish(self.subject.clone(), message).await {
                Ok(acknowledgement) => acknowledgement.await,
                Err(error) => Err(error),
            };
            match sent {
                Ok(acknowledgement) => {
                    self.wanted.fetch_max(acknowledgement.sequence, Ordering::Relaxed);
                    return Ok(acknowledgement.sequence);
                }
                Err(error) => match refusal(&error) {
                    Some(refused) => return Err(refused),
                    None if Instant::now() > deadline => {
                        return Err(Error::jetstream("send a message", error));
                    }
                    None => {}
                },
            }
            sleep(pause).await;
            pause = (2 * pause).min(Duration::from_secs(1));
        }
    }
}

/// Why the broker will never take a message, if it said so.
fn refusal(error: &PublishError) -> Option<Error> {
    /// The message is too long for the stream.
    const TOO_LONG: ErrorCode = ErrorCode(10054);
    let cause = error.source()?.downcast_ref::<async_nats::jetstream::Error>()?;
    match cause.error_code() {
        TOO_LONG => Some(Error::Refused("it is too long; send words one by one".into())),
        ErrorCode::STREAM_STORE_FAILED => Some(Error::Full(cause.to_string())),
        _ => None,
    }
}

/// An answer of a session.
#[derive(Clone, Debug, PartialEq)]
pub struct Answered {
    /// The sequence of the message that it answers.
    pub input: u64,
    /// The last answer to it; another follows a provisional one.
    pub last: bool,
    /// The answer.
    pub response: Response,
}

/// The answers of a session.
pub struct Answers {
    cell: Arc<Cell>,
    name: Name,
    subscriber: Subscriber,
    /// The sequence of the newest answer that was given, or waits in `queue`.
    last: u64,
    queue: VecDeque<Answered>,
    /// The newest message that was sent, and the newest that was answered.
    wanted: Arc<AtomicU64>,
    answered: u64,
}

impl Answers {
    /// The next answer, whenever it comes.
    pub async fn next(&mut self) -> Result<Answered, Error> {
        loop {
            if let Some(answer) = self.queue.pop_front() {
                return Ok(answer);
            }
            match timeout(SILENCE, self.subscriber.next()).await {
                Ok(Some(message)) => {
                    let headers = message.headers.unwrap_or_default();
                    let number = |name: &str| headers.get(name)?.as_str().parse::<u64>().ok();
                    let Some(sequence) = number("Nats-Sequence") else { continue };
                    let before = number("Nats-Last-Sequence").unwrap_or(u64::MAX);
                    if sequence <= self.last {
                        continue;
                    }
                    if before <= self.last {
                        self.take(sequence, &headers, &message.payload)?;
                    } else {
                        self.repair().await?;
                    }
                }
                Ok(None) => return Err(Error::jetstream("listen", "the connection was closed")),
                Err(_) if self.answered < self.wanted.load(Ordering::Relaxed) => {
                    // A node that is just starting may refuse: there will be another silence.
                    let _ = self.repair().await;
                }
                Err(_) => {}
            }
        }
    }

    fn take(&mut self, sequence: u64, headers: &HeaderMap, payload: &[u8]) -> Result<(), Error> {
        let wrong = |cause| Error::Answer { session: self.name.to_string(), cause };
        let (position, _) = read_answer_headers(headers).map_err(wrong)?;
        let response = serde_json::from_slice(payload).map_err(|error| wrong(error.to_string()))?;
        self.last = sequence;
        if position.last {
            self.answered = self.answered.max(position.input);
        }
        self.queue.push_back(Answered { input: position.input, last: position.last, response });
        Ok(())
    }

    /// Reads what was missed from the stream.
    async fn repair(&mut self) -> Result<(), Error> {
        let next_by_subj = self.cell.names.answers(self.name.as_str());
        let query = Query::From { seq: self.last + 1, next_by_subj, batch: BATCH };
        let stream = self.cell.names.answer_stream();
        for kept in direct::get(&self.cell.client, &stream, &query).await? {
            self.take(kept.sequence, &kept.headers, &kept.payload)?;
        }
        Ok(())
    }
}
