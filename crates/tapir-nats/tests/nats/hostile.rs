//! Clients of a gateway that misbehave, and publishers of garbage: as at a server of its own, and
//! nobody else notices.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_nats::header::HeaderMap;
use futures_util::{SinkExt, StreamExt};
use tapir::Model;
use tapir::protocol::{Request, Response};
use tapir_nats::{CellSettings, Client, Connection, Gateway, Options, Worker};
use tapir_serve::{Server, Settings};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::{Bytes, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use crate::support::{MODEL, Nats, cell, expected, message, utterance, worker};

/// Longer than anything takes on a machine that has other things to do.
const PATIENCE: Duration = Duration::from_mins(2);
/// Words of a session, and messages of one without a reset: few, so that both ends are reached.
const WORDS: usize = 40;
const MESSAGES: i64 = 60;

const SENTENCES: [&str; 3] = [
    "add step to me to the fifty clasicos playlist",
    "what's the weather going to be like in boston tomorrow at noon",
    "book a table for two at a restaurant in new york",
];

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

fn limited() -> CellSettings {
    CellSettings { words: WORDS, messages_per_session: MESSAGES, ..cell(1) }
}

fn settings() -> Settings {
    let mut settings = Settings {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        models: [(MODEL.to_owned(), format!("embedded:{MODEL}"))].into(),
        workers: 1,
        ..Settings::default()
    };
    settings.limits.words = WORDS;
    // Paces would only make this slow.
    settings.limits.messages_per_second = 1_000_000;
    settings.limits.messages_per_second_per_client = 1_000_000;
    settings.limits.requests_per_second = 1_000_000;
    settings
}

async fn connect(address: SocketAddr) -> Socket {
    let url = format!("ws://{address}/v1/stream");
    tokio_tungstenite::connect_async(url).await.unwrap().0
}

async fn next(socket: &mut Socket) -> Option<Message> {
    timeout(PATIENCE, socket.next()).await.expect("an answer in time")?.ok()
}

fn is_last(answer: &str) -> bool {
    !answer.contains(r#""provisional":true"#)
}

/// Everything that a client hears, until there is an answer to each message or the server closes
/// the stream. So many messages are on their way at most: a refusal of the connection itself may
/// overtake what a session has not answered yet.
async fn transcript(address: SocketAddr, messages: &[Message], in_flight: usize) -> Vec<String> {
    let mut socket = connect(address).await;
    let mut unsent = messages.iter();
    let (mut heard, mut waiting) = (Vec::new(), 0);
    loop {
        while waiting < in_flight
            && let Some(message) = unsent.next()
        {
            // A server that has closed the stream takes no more, and has said why.
            let _ = socket.send(message.clone()).await;
            waiting += 1;
        }
        if waiting == 0 {
            return heard;
        }
        match next(&mut socket).await {
            Some(Message::Text(text)) => {
                waiting -= usize::from(is_last(&text));
                heard.push(text.to_string());
            }
            Some(Message::Close(frame)) => {
                heard.push(format!("{frame:?}"));
                return heard;
            }
            Some(_) => {}
            None => return heard,
        }
    }
}

/// Sessions that behave, until they are told to stop; every answer is the library's.
struct Well {
    stop: Arc<AtomicBool>,
    tasks: Vec<JoinHandle<()>>,
}

impl Well {
    fn start<F: Future<Output = ()> + Send + 'static>(
        count: usize,
        talk: impl Fn(usize, Arc<AtomicBool>) -> F,
    ) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let tasks = (0..count).map(|index| tokio::spawn(talk(index, stop.clone()))).collect();
        Self { stop, tasks }
    }

    async fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        for task in self.tasks {
            timeout(PATIENCE, task).await.expect("nobody waits").unwrap();
        }
    }
}

/// A client of a gateway that behaves.
async fn talk_to_gateway(address: SocketAddr, index: usize, stop: Arc<AtomicBool>) {
    let messages = utterance(SENTENCES[index % SENTENCES.len()]);
    let model = Model::embedded_named(MODEL).unwrap();
    let library = expected(&model, &Options::default(), &messages);
    let mut socket = connect(address).await;
    loop {
        // Before the round, so that the last one begins when all others have been there.
        let is_over = stop.load(Ordering::Relaxed);
        for (message, library) in messages.iter().zip(&library) {
            let text = serde_json::to_string(message).unwrap();
            socket.send(Message::text(text)).await.unwrap();
            for expected in library {
                let Some(Message::Text(text)) = next(&mut socket).await else {
                    panic!("no answer to {message:?}");
                };
                assert_eq!(serde_json::from_str::<Response>(&text).unwrap(), *expected);
            }
        }
        if is_over {
            return;
        }
    }
}

fn texts(messages: &[&str]) -> Vec<Message> {
    messages.iter().map(|message| Message::text(*message)).collect()
}

/// What is answered by a gateway as by a server that computes.
fn scripts() -> Vec<(&'static str, Vec<Message>)> {
    let long_word = format!(r#"{{"push": "{}"}}"#, "x".repeat(60_000));
    let many_words = serde_json::json!({ "update": vec!["play"; WORDS + 1] }).to_string();
    let just_enough = serde_json::json!({ "update": vec!["play"; WORDS] }).to_string();
    let binary = || Message::binary(Bytes::from_static(b"\x00\xff{\"push\": \"play\"}"));
    vec![
        (
            "garbage between words",
            texts(&[
                r#"{"push": "play"}"#,
                "",
                "{",
                "[1, 2]",
                r#"{"pusch": "jazz"}"#,
                r#"{"push": 7}"#,
                r#"{"push": ""}"#,
                r#"{"push": "play", "finish": true}"#,
                r#"{"revoke": -1}"#,
                r#"{"threshold": 7}"#,
                r#"{"threshold": 1e999}"#,
                "\u{0}\u{1}",
                r#"{"push": "jazz"}"#,
                r#"{"finish": true}"#,
            ]),
        ),
        (
            "binary frames",
            [
                texts(&[r#"{"push": "play"}"#]),
                vec![binary(), binary()],
                texts(&[r#"{"push": "jazz"}"#]),
            ]
            .concat(),
        ),
        (
            "out of turn",
            texts(&[
                r#"{"revoke": 1}"#,
                r#"{"finish": true}"#,
                r#"{"finish": true}"#,
                r#"{"push": "late"}"#,
                r#"{"update": ["too", "late"]}"#,
                r#"{"reset": true}"#,
                r#"{"push": "play"}"#,
                r#"{"revoke": 2}"#,
                r#"{"revoke": 18446744073709551615}"#,
                r#"{"revoke": 1}"#,
                r#"{"push": "jazz"}"#,
            ]),
        ),
        (
            "everything twice",
            ["play", "play", "some", "some", "jazz", "jazz"]
                .iter()
                .map(|word| Message::text(format!(r#"{{"push": "{word}"}}"#)))
                .chain(texts(&[r#"{"finish": true}"#, r#"{"finish": true}"#]))
                .collect(),
        ),
        (
            "after a close",
            texts(&[
                r#"{"close": true}"#,
                r#"{"push": "play"}"#,
                r#"{"close": true}"#,
                r#"{"close": true}"#,
                r#"{"finish": true}"#,
                r#"{"push": "again"}"#,
                r#"{"close": true}"#,
                r#"{"revoke": 1}"#,
            ]),
        ),
        ("a long word", texts(&[r#"{"push": "play"}"#, &long_word, r#"{"push": "jazz"}"#])),
        (
            "too many words",
            texts(&[
                &many_words,
                &just_enough,
                r#"{"push": "play"}"#,
                r#"{"revoke": 1}"#,
                r#"{"push": "b"}"#,
            ]),
        ),
        (
            "too long a message",
            texts(&[r#"{"push": "play"}"#, &format!(r#"{{"push": "{}"}}"#, "x".repeat(70_000))]),
        ),
    ]
}

/// A client that goes in the middle: of its words, of a frame, of the upgrade.
async fn vanish(address: SocketAddr, round: usize) {
    let mut socket = connect(address).await;
    for word in SENTENCES[round % SENTENCES.len()].split(' ') {
        let text = serde_json::json!({ "session": "gone", "push": word }).to_string();
        socket.send(Message::text(text)).await.unwrap();
    }
    drop(socket);
    let upgrade = "GET /v1/stream HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\n\
                   upgrade: websocket\r\nsec-websocket-version: 13\r\n\
                   sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n";
    let mut half = TcpStream::connect(address).await.unwrap();
    half.write_all(&upgrade.as_bytes()[..40]).await.unwrap();
    let mut socket = TcpStream::connect(address).await.unwrap();
    socket.write_all(upgrade.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(socket.read_u8().await.unwrap());
    }
    let push = br#"{"push": "play"}"#;
    let mut frame = vec![0x81, 0x80 | push.len() as u8, 0, 0, 0, 0];
    frame.extend(push);
    // A whole one, half of one, and nothing, or bytes that are no frame.
    let end =
        if round.is_multiple_of(2) { &frame[..9] } else { b"\xff\xff\xff\xff\xff\xff\xff\xff\xff" };
    socket.write_all(&[&frame, end].concat()).await.unwrap();
}

async fn sessions_are_gone(worker: &Worker, address: SocketAddr) {
    let metrics = || async move {
        let mut socket = TcpStream::connect(address).await.unwrap();
        let request = "GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
        socket.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).await.unwrap();
        answer
    };
    let is_none = |metrics: &str| metrics.lines().any(|line| line == "tapir_sessions 0");
    let gone = async {
        loop {
            let gateway = metrics().await;
            let is_answered = gateway.lines().any(|line| line == "tapir_queue 0");
            if is_none(&worker.metrics()) && is_none(&gateway) && is_answered {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(PATIENCE, gone).await.expect("sessions of clients that have gone are closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_clients_of_a_gateway_are_answered_and_disturb_nobody() {
    let Some(nats) = Nats::start(1) else { return };
    let connection = nats.connection().await;
    let mut settings_of_worker = worker(connection.clone(), limited());
    // A session that is full cannot be closed: it is forgotten when it has been silent so long.
    settings_of_worker.idle = Duration::from_secs(1);
    let worker = Worker::start(settings_of_worker).await.unwrap();
    let gateway = Gateway::connect(&connection, &limited()).await.unwrap();
    let before = Server::start_before(settings(), gateway).await.unwrap();
    let alone = Server::start(settings()).await.unwrap();
    let address = before.address();
    let well = Well::start(4, |index, stop| talk_to_gateway(address, index, stop));

    for round in 0..4 {
        vanish(address, round).await;
        for (name, script) in scripts() {
            let passed_on = transcript(address, &script, 1).await;
            assert_eq!(passed_on, transcript(alone.address(), &script, 1).await, "{name}");
            vanish(address, round).await;
        }
    }
    messages_that_are_not_taken(address).await;
    full_sessions_end(address).await;

    well.end().await;
    sessions_are_gone(&worker, address).await;
    before.stop().await;
    alone.stop().await;
    worker.stop().await;
}

/// A message that just fits into a frame is, with the headers that it is passed on with, too long for
/// the broker. It is refused, in its turn, and the session goes on.
async fn messages_that_are_not_taken(address: SocketAddr) {
    let long = serde_json::json!({ "push": "x".repeat((64 << 10) - 40) }).to_string();
    let script = texts(&[r#"{"push": "play"}"#, &long, r#"{"push": "jazz"}"#]);
    let heard = transcript(address, &script, 3).await;
    let last: Vec<Response> = heard
        .iter()
        .filter(|text| is_last(text))
        .map(|text| serde_json::from_str(text).unwrap())
        .collect();
    assert!(last[1].error.as_ref().unwrap().contains("too long"), "{heard:?}");
    let steps = [&last[0], &last[2]].map(|answer| answer.update.as_ref().map(|update| update.step));
    assert_eq!(steps, [Some(1), Some(2)], "{heard:?}");
}

/// A session without a reset ends at the cell's limit, and says so. Whatever is on its way then is
/// answered, and the next message begins anew.
async fn full_sessions_end(address: SocketAddr) {
    let mut messages = Vec::new();
    for _ in 0..MESSAGES {
        messages.extend(texts(&[r#"{"push": "play"}"#, r#"{"revoke": 1}"#]));
    }
    let heard = transcript(address, &messages, 16).await;
    let errors: Vec<Option<String>> = heard
        .iter()
        .filter(|text| is_last(text))
        .map(|text| serde_json::from_str::<Response>(text).unwrap().error)
        .collect();
    assert_eq!(errors.len(), messages.len(), "each message has one last answer");
    let limit = MESSAGES as usize;
    assert!(errors[..limit].iter().all(Option::is_none), "{errors:?}");
    let told = errors[limit].as_ref().unwrap();
    assert!(told.contains("without a reset") && told.contains("start it anew"), "{told}");
    // Later ones met the old session, or began a new one, in which a word may be missing.
    assert!(errors[limit + 20..].iter().any(Option::is_none), "{errors:?}");

    let mut socket = connect(address).await;
    for _ in 0..3 * MESSAGES {
        for text in [r#"{"push": "play"}"#, r#"{"reset": true}"#] {
            socket.send(Message::text(text)).await.unwrap();
            loop {
                let Some(Message::Text(text)) = next(&mut socket).await else {
                    panic!("no answer")
                };
                assert!(!text.contains("error"), "a session that resets has no end: {text}");
                if is_last(&text) {
                    break;
                }
            }
        }
    }
}

/// A client over NATS that behaves.
async fn talk_to_cell(connection: Connection, index: usize, stop: Arc<AtomicBool>) {
    let messages = utterance(SENTENCES[index % SENTENCES.len()]);
    let model = Model::embedded_named(MODEL).unwrap();
    let library = expected(&model, &Options::default(), &messages);
    let client = Client::connect(&connection, "tapir").await.unwrap();
    let name = format!("well-{index}");
    let (mut sender, mut answers) = client.session(&name, &Options::default()).await.unwrap();
    loop {
        let is_over = stop.load(Ordering::Relaxed);
        for (message, library) in messages.iter().zip(&library) {
            let input = sender.send(message).await.unwrap();
            for (index, expected) in library.iter().enumerate() {
                let answer = timeout(PATIENCE, answers.next()).await.unwrap().unwrap();
                let is_last = index + 1 == library.len();
                assert_eq!((answer.input, answer.last), (input, is_last));
                assert_eq!(answer.response, *expected);
            }
        }
        if is_over {
            return;
        }
    }
}

/// Garbage on the subjects of inputs: in names, headers and payloads, by publishers that wait for
/// nothing, beside sessions that behave.
#[tokio::test(flavor = "multi_thread")]
async fn publishers_of_garbage_disturb_nobody() {
    let Some(nats) = Nats::start(1) else { return };
    let connection = nats.connection().await;
    let worker = Worker::start(worker(connection.clone(), cell(1))).await.unwrap();
    let well = Well::start(4, |index, stop| talk_to_cell(connection.clone(), index, stop));
    let raw = connection.connect("garbage").await.unwrap();
    let payloads: [&[u8]; 8] = [
        b"",
        b"\xff\xfe\x00",
        b"{",
        b"[]",
        b"null",
        br#"{"push": "play", "push": "jazz"}"#,
        br#"{"session": "well-0", "reset": true}"#,
        br#"{"revoke": 99999999999999999999}"#,
    ];
    let headers = [
        ("Tapir-Model", "nowhere"),
        ("Tapir-Threshold", "NaN"),
        ("Tapir-Threshold", "much"),
        ("Tapir-Provisional", "perhaps"),
        ("Tapir-Pretokenized", ""),
        ("Tapir-Input", "1"),
        ("Tapir-Life", "{}"),
        // What could remove or shadow messages of others, if the stream allowed it.
        ("Nats-Rollup", "all"),
        ("Nats-TTL", "1s"),
        ("Nats-Msg-Id", "the-same"),
    ];
    for round in 0..20 {
        // Names that are none, and the subjects behind those of clients.
        for subject in ["tapir.in.a$b", "tapir.in.ä", "tapir.in.0.well-0", "tapir.in"] {
            raw.publish(subject, r#"{"reset": true}"#.into()).await.unwrap();
        }
        let long = format!("tapir.in.{}", "n".repeat(65));
        raw.publish(long, r#"{"push": "play"}"#.into()).await.unwrap();
        for (index, payload) in payloads.iter().enumerate() {
            let subject = format!("tapir.in.garbage-{index}");
            raw.publish(subject, payload.to_vec().into()).await.unwrap();
        }
        for (index, (name, value)) in headers.iter().enumerate() {
            let mut map = HeaderMap::new();
            map.insert(*name, *value);
            let subject = format!("tapir.in.header-{index}-{round}");
            raw.publish_with_headers(subject, map, r#"{"push": "play"}"#.into()).await.unwrap();
        }
    }
    raw.flush().await.unwrap();

    // Garbage is answered as such, in the order in which it came, and has changed nothing.
    let client = Client::connect(&connection, "tapir").await.unwrap();
    for index in 0..payloads.len() {
        let name = format!("garbage-{index}");
        let (mut sender, mut answers) = client.session(&name, &Options::default()).await.unwrap();
        let messages: Vec<Request> =
            [r#"{"push": "play"}"#, r#"{"push": "jazz"}"#].map(message).into();
        let model = Model::embedded_named(MODEL).unwrap();
        let library = expected(&model, &Options::default(), &messages);
        for (message, library) in messages.iter().zip(library) {
            let input = sender.send(message).await.unwrap();
            let mut given = Vec::new();
            while given.len() < library.len() {
                let answer = timeout(PATIENCE, answers.next()).await.unwrap().unwrap();
                if answer.input == input {
                    given.push(answer.response);
                } else {
                    assert!(answer.response.error.is_some(), "{answer:?}");
                }
            }
            assert_eq!(given, library, "{name}");
        }
    }
    well.end().await;
    worker.stop().await;
}
