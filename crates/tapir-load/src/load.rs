//! A load generator: many streams at a given rate, or as fast as they are answered.
//!
//! Every stream is a WebSocket of its own that says one sentence after the other, word by word. Latency is counted from the
//! moment a word was due, not from when it was sent, so that a server that makes its clients wait cannot hide it.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use serde::{Deserialize, Serialize};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use crate::{Error, Percentiles};

/// What is asked of a server.
#[derive(Clone, Debug)]
pub struct Load {
    /// Where it is.
    pub address: SocketAddr,
    /// Streams at once.
    pub streams: usize,
    /// Words a second and stream; none for the next as soon as one is answered.
    pub rate: Option<f64>,
    /// How long to measure, after a second of warming up.
    pub seconds: f64,
    /// What the streams say.
    pub sentences: Arc<Vec<Vec<String>>>,
}

/// What a server did.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Measured {
    /// Streams at once.
    pub streams: usize,
    /// Words that were to be said a second; none if as many as possible.
    pub offered: Option<f64>,
    /// Words that were answered a second.
    pub held: f64,
    /// Streams and messages that failed.
    pub errors: usize,
    /// What the first failure was.
    pub error: Option<String>,
    /// Milliseconds from when a word was due to the first answer.
    pub first: Percentiles,
    /// Milliseconds from when a word was due to the last answer.
    pub last: Percentiles,
    /// Share of words at which the policy revised.
    pub revised: f64,
}

/// What one stream saw.
#[derive(Default)]
struct Seen {
    first: Vec<f64>,
    last: Vec<f64>,
    words: usize,
    revised: usize,
    errors: usize,
    error: Option<String>,
}

/// The most that the 99th percentile of a first answer may take, milliseconds.
const PROMISE: f64 = 50.0;
/// A rate is held if so much of it was answered.
const HELD: f64 = 0.98;

impl Measured {
    /// Was the rate held: nearly all words answered, none failed, and first answers soon?
    pub fn is_held(&self) -> bool {
        let offered = self.offered.unwrap_or(0.0);
        self.errors == 0 && self.held >= HELD * offered && self.first.p99 <= PROMISE
    }
}

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// Streams that connect at the same time: more would only fill the server's queue of connections.
const CONNECTING: usize = 64;
/// A stream that is not answered so long has failed.
const PATIENCE: Duration = Duration::from_secs(20);

impl Load {
    /// Connects all streams, lets them speak, and gives what they saw.
    pub async fn run(&self) -> Result<Measured, Error> {
        // Made once: the generator shares the machine with the server.
        let message =
            |word: &String| Utf8Bytes::from(serde_json::json!({ "push": word }).to_string());
        let sentences = self.sentences.iter().filter(|sentence| !sentence.is_empty());
        let sentences: Vec<Vec<Utf8Bytes>> =
            sentences.map(|words| words.iter().map(message).collect()).collect();
        if sentences.is_empty() {
            return Err(Error::NoSentence);
        }
        let sentences = Arc::new(sentences);
        let doors = Arc::new(Semaphore::new(CONNECTING));
        let mut connecting = JoinSet::new();
        for index in 0..self.streams {
            let (doors, url) = (doors.clone(), format!("ws://{}/v1/stream", self.address));
            connecting.spawn(async move {
                let _door = doors.acquire_owned().await;
                // Answers are short; the default buffer of 128 KiB, cleared at every read, took half of the generator's time.
                let config =
                    WebSocketConfig::default().read_buffer_size(4 << 10).write_buffer_size(4 << 10);
                let connecting =
                    tokio_tungstenite::connect_async_with_config(url, Some(config), true);
                let connected = timeout(PATIENCE, connecting).await;
                let failed = |cause| Error::Connect { index, cause };
                match connected {
                    Ok(Ok((socket, _))) => Ok((index, socket)),
                    Ok(Err(error)) => Err(failed(error.to_string())),
                    Err(_) => Err(failed(format!("no answer for {} seconds", PATIENCE.as_secs()))),
                }
            });
        }
        let mut sockets = Vec::with_capacity(self.streams);
        while let Some(joined) = connecting.join_next().await {
            sockets.push(joined.map_err(|error| Error::Generator(error.to_string()))??);
        }

        let start = Instant::now();
        let from = start + Duration::from_secs(1);
        let until = from + Duration::from_secs_f64(self.seconds);
        let mut speaking = JoinSet::new();
        for (index, socket) in sockets {
            let interval = self.rate.map(|rate| Duration::from_secs_f64(1.0 / rate));
            // Streams do not speak in step.
            let phase = interval.unwrap_or_default().mul_f64(index as f64 / self.streams as f64);
            let speaker = Speaker { sentences: sentences.clone(), index, interval, from, until };
            speaking.spawn(speaker.speak(socket, start + phase));
        }
        let mut all = Seen::default();
        while let Some(joined) = speaking.join_next().await {
            let seen = joined.map_err(|error| Error::Generator(error.to_string()))?;
            all.first.extend(seen.first);
            all.last.extend(seen.last);
            all.words += seen.words;
            all.revised += seen.revised;
            all.errors += seen.errors;
            all.error = all.error.or(seen.error);
        }
        Ok(Measured {
            streams: self.streams,
            offered: self.rate.map(|rate| rate * self.streams as f64),
            held: all.words as f64 / self.seconds,
            errors: all.errors,
            error: all.error,
            revised: all.revised as f64 / all.words.max(1) as f64,
            first: Percentiles::of(all.first),
            last: Percentiles::of(all.last),
        })
    }
}

/// One stream's side.
struct Speaker {
    sentences: Arc<Vec<Vec<Utf8Bytes>>>,
    index: usize,
    interval: Option<Duration>,
    from: Instant,
    until: Instant,
}

/// A message that is not answered yet: when it was due, and whether it was a word.
struct Sent {
    due: Instant,
    word: bool,
    answered: bool,
}

impl Speaker {
    async fn speak(self, socket: Socket, mut due: Instant) -> Seen {
        let (mut sink, mut source) = socket.split();
        let mut seen = Seen::default();
        let mut sent: VecDeque<Sent> = VecDeque::new();
        // Streams start at different sentences, and at different words of them: in step, all would be at the end of
        // theirs at the same time.
        let sentence = self.index % self.sentences.len();
        let mut at =
            (sentence, self.index / self.sentences.len() * 3 % self.sentences[sentence].len());
        loop {
            let now = Instant::now();
            if now >= self.until && sent.is_empty() {
                break;
            }
            let may_speak = now < self.until
                && match self.interval {
                    Some(_) => sent.len() < 8,
                    None => sent.is_empty(),
                };
            let waited = sent.front().map_or(self.until, |head| head.due + PATIENCE);
            let next = if self.interval.is_none() { now } else { due };
            let result = tokio::select! {
                biased;
                answer = source.next(), if !sent.is_empty() => self.hear(answer, &mut sent, &mut seen),
                () = sleep_until(next), if may_speak => {
                    let spoken = self.say(&mut sink, &mut at, next, &mut sent).await;
                    due += self.interval.unwrap_or_default();
                    spoken
                }
                () = sleep_until(waited), if !may_speak => {
                    if sent.is_empty() { Ok(()) } else { Err(format!("no answer for {} seconds", PATIENCE.as_secs())) }
                }
            };
            if let Err(error) = result {
                seen.errors += 1;
                seen.error.get_or_insert(error);
                return seen;
            }
        }
        leave(sink, source).await;
        seen
    }

    /// Says the next word; after the last one of a sentence, that it is finished and a new one begins.
    async fn say(
        &self,
        sink: &mut SplitSink<Socket, Message>,
        at: &mut (usize, usize),
        due: Instant,
        sent: &mut VecDeque<Sent>,
    ) -> Result<(), String> {
        let failed = |error: tokio_tungstenite::tungstenite::Error| error.to_string();
        let sentence = &self.sentences[at.0];
        sink.feed(Message::Text(sentence[at.1].clone())).await.map_err(failed)?;
        sent.push_back(Sent { due, word: true, answered: false });
        at.1 += 1;
        if at.1 == sentence.len() {
            *at = ((at.0 + 1) % self.sentences.len(), 0);
            for message in [r#"{"finish":true}"#, r#"{"reset":true}"#] {
                sink.feed(Message::text(message)).await.map_err(failed)?;
                sent.push_back(Sent { due, word: false, answered: false });
            }
        }
        sink.flush().await.map_err(failed)
    }

    fn hear(
        &self,
        answer: Option<Result<Message, tokio_tungstenite::tungstenite::Error>>,
        sent: &mut VecDeque<Sent>,
        seen: &mut Seen,
    ) -> Result<(), String> {
        let text = match answer {
            None => return Err("the server closed the stream".to_owned()),
            Some(Err(error)) => return Err(error.to_string()),
            Some(Ok(Message::Text(text))) => text,
            Some(Ok(Message::Close(frame))) => {
                return Err(format!("the server closed the stream: {frame:?}"));
            }
            Some(Ok(_)) => return Ok(()),
        };
        // The answers are looked at and not parsed: the generator shares the machine with the server.
        if text.contains("\"error\":") {
            return Err(text.to_string());
        }
        let provisional = text.contains("\"provisional\":true");
        let Some(head) = sent.front_mut() else {
            return Err(format!("an answer to nothing: {text}"));
        };
        let counts = head.word && head.due >= self.from && head.due < self.until;
        let milliseconds = head.due.elapsed().as_secs_f64() * 1e3;
        if counts && !head.answered {
            seen.first.push(milliseconds);
        }
        head.answered = true;
        if !provisional {
            if counts {
                seen.last.push(milliseconds);
                seen.words += 1;
                seen.revised += usize::from(text.contains("\"REVISE\""));
            }
            sent.pop_front();
        }
        Ok(())
    }
}

async fn leave(mut sink: SplitSink<Socket, Message>, mut source: SplitStream<Socket>) {
    let _ = timeout(PATIENCE, async {
        let _ = sink.send(Message::Close(None)).await;
        while let Some(Ok(_)) = source.next().await {}
    })
    .await;
}
