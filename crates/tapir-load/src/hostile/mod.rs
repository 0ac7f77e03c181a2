//! Clients that mean no good. Every kind comes from an address of its own, begins anew when the
//! server ends it, and counts what it did: one that never got to work would prove nothing.

mod deaf_lines;
mod deaf_stream;
mod flooder;
mod garbage;
mod half_request;
mod hoarder;
mod rereader;
mod silent;
mod slow_reader;
mod starver;
mod vanisher;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use serde::Serialize;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

use crate::connect::{Route, Socket};

/// Between two attempts, and two connections of a kind: loops stay bounded when a server refuses.
const PAUSE: Duration = Duration::from_millis(10);

/// How a client is hostile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Long sessions with a revision at every word, always as many words in flight as allowed.
    Starver,
    /// Connections that send a single byte.
    OneByte,
    /// Connections that send nothing.
    Silent,
    /// Heads of requests that never end, a byte a second.
    HalfHead,
    /// Bodies that are announced and never sent.
    HalfBody,
    /// Lines of NDJSON without end, of which no answer is read.
    DeafLines,
    /// As many connections and sessions as it gets, held for ever.
    Hoarder,
    /// What is not HTTP, not a frame, not UTF-8, not JSON, or ten megabytes of it.
    Garbage,
    /// Hypotheses over a WebSocket, of which no answer is read.
    DeafStream,
    /// Streams that are gone in the middle of a word.
    Vanisher,
    /// Long hypotheses that are read again from their first word on.
    Rereader,
    /// Requests as fast as they are answered, most of them wrong.
    Flooder,
    /// Long answers, read a byte a second.
    SlowReader,
}

/// Why a client has to begin anew.
type Ended = Result<(), Box<dyn std::error::Error + Send + Sync>>;

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 13] = [
        Self::Starver,
        Self::OneByte,
        Self::Silent,
        Self::HalfHead,
        Self::HalfBody,
        Self::DeafLines,
        Self::Hoarder,
        Self::Garbage,
        Self::DeafStream,
        Self::Vanisher,
        Self::Rereader,
        Self::Flooder,
        Self::SlowReader,
    ];

    /// Clients of the kind at once.
    fn clients(self) -> usize {
        match self {
            Self::OneByte | Self::Silent => 200,
            Self::HalfHead | Self::HalfBody => 20,
            Self::SlowReader => 8,
            Self::Starver | Self::DeafLines | Self::Hoarder | Self::DeafStream | Self::Flooder => 4,
            Self::Garbage | Self::Vanisher | Self::Rereader => 2,
        }
    }

    /// One life of a client, to its end.
    async fn live(self, attack: &Attack) -> Ended {
        match self {
            Self::Starver => starver::live(attack).await,
            Self::OneByte => silent::live(attack, b"P").await,
            Self::Silent => silent::live(attack, b"").await,
            Self::HalfHead => half_request::head(attack).await,
            Self::HalfBody => half_request::body(attack).await,
            Self::DeafLines => deaf_lines::live(attack).await,
            Self::Hoarder => hoarder::live(attack).await,
            Self::Garbage => garbage::live(attack).await,
            Self::DeafStream => deaf_stream::live(attack).await,
            Self::Vanisher => vanisher::live(attack).await,
            Self::Rereader => rereader::live(attack).await,
            Self::Flooder => flooder::live(attack).await,
            Self::SlowReader => slow_reader::live(attack).await,
        }
    }
}

/// What the clients of a kind did.
#[derive(Clone, Debug, Serialize)]
pub struct Attacked {
    /// How they were hostile.
    pub kind: Kind,
    /// Clients at once.
    pub clients: usize,
    /// Connections that were taken.
    pub connections: u64,
    /// Messages, lines, requests or bytes that were sent.
    pub messages: u64,
    /// Answers that were read.
    pub answers: u64,
    /// Answers that refuse, and connections that the server ended or did not take.
    pub refusals: u64,
}

impl Attacked {
    /// Did they get to work?
    pub fn got_to_work(&self) -> bool {
        self.connections > 0 && (self.messages > 0 || self.kind == Kind::Silent)
    }
}

/// All kinds at once, until they are dropped.
pub(crate) struct Hostile {
    clients: JoinSet<()>,
    tallies: Vec<(Kind, Arc<Tally>)>,
}

impl Hostile {
    /// Begins. Clients come from 127.0.3.1 and up, an address for each kind.
    pub(crate) fn start(server: SocketAddr) -> Self {
        let mut clients = JoinSet::new();
        let mut tallies = Vec::new();
        for (host, kind) in Kind::ALL.into_iter().enumerate() {
            let attack = Attack {
                route: Route::local(server, 3, host),
                tally: Arc::default(),
                door: Arc::new(Mutex::new(Instant::now())),
            };
            tallies.push((kind, attack.tally.clone()));
            for _ in 0..kind.clients() {
                let attack = attack.clone();
                clients.spawn(async move {
                    loop {
                        if kind.live(&attack).await.is_err() {
                            attack.tally.refused();
                        }
                        sleep(PAUSE).await;
                    }
                });
            }
        }
        Self { clients, tallies }
    }

    /// What was done so far.
    pub(crate) fn attacked(&self) -> Vec<Attacked> {
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let attacked = |(kind, tally): &(Kind, Arc<Tally>)| Attacked {
            kind: *kind,
            clients: kind.clients(),
            connections: get(&tally.connections),
            messages: get(&tally.messages),
            answers: get(&tally.answers),
            refusals: get(&tally.refusals),
        };
        self.tallies.iter().map(attacked).collect()
    }

    /// Ends all clients, wherever they are.
    pub(crate) async fn end(mut self) {
        self.clients.shutdown().await;
    }
}

#[derive(Default)]
struct Tally {
    connections: AtomicU64,
    messages: AtomicU64,
    answers: AtomicU64,
    refusals: AtomicU64,
}

impl Tally {
    fn sent(&self) {
        self.messages.fetch_add(1, Ordering::Relaxed);
    }

    fn answered(&self) {
        self.answers.fetch_add(1, Ordering::Relaxed);
    }

    fn refused(&self) {
        self.refusals.fetch_add(1, Ordering::Relaxed);
    }
}

/// What a client of a kind needs.
#[derive(Clone)]
struct Attack {
    route: Route,
    tally: Arc<Tally>,
    /// When the next connection of the kind may be made.
    door: Arc<Mutex<Instant>>,
}

impl Attack {
    async fn wait_for_door(&self) {
        let mut next = self.door.lock().await;
        sleep_until(*next).await;
        *next = Instant::now() + PAUSE;
    }

    async fn connect(&self) -> io::Result<TcpStream> {
        self.wait_for_door().await;
        let stream = self.route.connect().await?;
        self.tally.connections.fetch_add(1, Ordering::Relaxed);
        Ok(stream)
    }

    /// A connection with little room for what is not read.
    async fn connect_small(&self) -> io::Result<TcpStream> {
        self.wait_for_door().await;
        let stream = self.route.connect_small().await?;
        self.tally.connections.fetch_add(1, Ordering::Relaxed);
        Ok(stream)
    }

    async fn websocket(&self, query: &str) -> Result<Socket, String> {
        let stream = self.connect().await.map_err(|error| error.to_string())?;
        self.route.upgrade(stream, query).await
    }

    /// Waits, without end, for the last answer to a message; false if it refuses.
    async fn hear(&self, socket: &mut Socket) -> Result<bool, String> {
        loop {
            match socket.next().await {
                Some(Ok(Message::Text(text))) if text.contains("\"provisional\":true") => {}
                Some(Ok(Message::Text(text))) if text.contains("\"error\":") => {
                    self.tally.refused();
                    sleep(PAUSE).await;
                    return Ok(false);
                }
                Some(Ok(Message::Text(_))) => {
                    self.tally.answered();
                    return Ok(true);
                }
                Some(Ok(Message::Close(_))) | None => return Err("the stream was closed".into()),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error.to_string()),
            }
        }
    }
}

/// Reads until the server ends the connection.
async fn until_closed(stream: &mut TcpStream) -> io::Error {
    let mut answer = [0; 1024];
    loop {
        match stream.read(&mut answer).await {
            Ok(0) => return io::ErrorKind::UnexpectedEof.into(),
            Ok(_) => {}
            Err(error) => return error,
        }
    }
}

/// The message of a word.
fn push(index: usize) -> String {
    serde_json::json!({ "push": WORDS[index % WORDS.len()] }).to_string()
}

/// The message of a hypothesis of so many words.
fn hypothesis(first: &str, words: usize) -> Utf8Bytes {
    let rest = WORDS.iter().copied().cycle().take(words - 1);
    let words: Vec<&str> = std::iter::once(first).chain(rest).collect();
    serde_json::json!({ "update": words }).to_string().into()
}

/// What hostile clients say: words that a policy finds hard enough.
const WORDS: [&str; 12] = [
    "add", "step", "to", "me", "to", "the", "fifty", "clasicos", "playlist", "by", "miles", "davis",
];
