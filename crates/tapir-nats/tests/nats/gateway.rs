//! `tapir serve` before a cell: clients do not notice.

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use tapir_nats::{Gateway, Worker};
use tapir_serve::{Server, Settings};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;

use crate::support::{MODEL, Nats, cell, worker};

/// Longer than anything takes on a machine that has other things to do.
const PATIENCE: Duration = Duration::from_mins(2);

const MESSAGES: [&str; 16] = [
    r#"{"push": "What's"}"#,
    r#"{"push": "..."}"#,
    r#"{"push": "Tomorrow."}"#,
    r#"{"revoke": 2}"#,
    r#"{"update": ["add", "step", "to", "me", "to", "the", "fifty", "clasicos", "playlist"]}"#,
    r#"{"threshold": 0.1}"#,
    r#"{"push": "please"}"#,
    r#"{"revoke": 99}"#,
    r#"{"finish": true}"#,
    r#"{"push": "late"}"#,
    r#"{"reset": true}"#,
    r#"{"push": "play", "finish": true}"#,
    r#"{"push": "play"}"#,
    "nonsense",
    r#"{"close": true}"#,
    r#"{"push": "again"}"#,
];

fn settings() -> Settings {
    Settings {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        models: [(MODEL.to_owned(), format!("embedded:{MODEL}"))].into(),
        workers: 1,
        ..Settings::default()
    }
}

/// All answers to a stream's messages, each sent when the one before is answered.
async fn stream(address: SocketAddr, parameters: &str) -> Vec<String> {
    let url = format!("ws://{address}/v1/stream{parameters}");
    let (mut socket, _) = tokio_tungstenite::connect_async(url).await.unwrap();
    let mut answers = Vec::new();
    for message in MESSAGES {
        socket.send(Message::text(message)).await.unwrap();
        loop {
            let answer = timeout(PATIENCE, socket.next()).await.unwrap().unwrap().unwrap();
            let answer = answer.into_text().unwrap().to_string();
            let is_last = !answer.contains(r#""provisional":true"#);
            answers.push(answer);
            if is_last {
                break;
            }
        }
    }
    socket.close(None).await.unwrap();
    answers
}

async fn tag(address: SocketAddr, body: &str) -> String {
    let mut socket = TcpStream::connect(address).await.unwrap();
    let length = body.len();
    let head = format!(
        "POST /v1/tag HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    timeout(PATIENCE, socket.read_to_string(&mut answer)).await.unwrap().unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    format!("{} {body}", head.lines().next().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_are_answered_as_by_a_server_of_its_own() {
    let Some(nats) = Nats::start(1) else { return };
    let connection = nats.connection().await;
    let worker = Worker::start(worker(connection.clone(), cell(1))).await.unwrap();
    let gateway = Gateway::connect(&connection, &cell(1)).await.unwrap();
    let before = Server::start_before(settings(), gateway).await.unwrap();
    let alone = Server::start(settings()).await.unwrap();
    for parameters in ["", "?provisional=false", "?threshold=0", "?pretokenized=true"] {
        let passed_on = stream(before.address(), parameters).await;
        assert_eq!(passed_on, stream(alone.address(), parameters).await, "{parameters}");
    }
    for body in [
        r#"{"text": "play some jazz by miles davis"}"#,
        r#"{"inputs": [{"text": "What's on?"}, {"tokens": ["book", "a", "table"]}]}"#,
        r#"{"tokens": ["play", ""]}"#,
        r#"{"text": "", "threshold": 0.2}"#,
    ] {
        assert_eq!(tag(before.address(), body).await, tag(alone.address(), body).await, "{body}");
    }
    // The one difference: a server reads a token with a space in it as one word, and a gateway cannot
    // pass it on.
    let body = r#"{"tokens": ["in", "new york"]}"#;
    let (refused, read) = (tag(before.address(), body).await, tag(alone.address(), body).await);
    assert!(refused.contains("400") && refused.contains("`new york`"), "{refused}");
    assert!(read.contains("200") && read.contains(r#"["in","new york"]"#), "{read}");
    // Streams that leave without a word leave nothing behind.
    for _ in 0..5 {
        let url = format!("ws://{}/v1/stream", before.address());
        let (mut socket, _) = tokio_tungstenite::connect_async(url).await.unwrap();
        socket.send(Message::text(r#"{"push": "gone"}"#)).await.unwrap();
        drop(socket);
    }
    let is_empty = async {
        while !worker.metrics().contains("tapir_sessions 0") {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(PATIENCE, is_empty).await.expect("sessions of clients that have gone are closed");
    before.stop().await;
    alone.stop().await;
    worker.stop().await;
}
