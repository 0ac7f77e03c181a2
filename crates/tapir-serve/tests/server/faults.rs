//! Clients that misbehave and workers that panic: nothing hangs, nothing leaks, and nobody else
//! notices.

use std::time::Duration;

use futures_util::SinkExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;

use crate::support::{
    Client, SENTENCES, get, metric, post, raw, settings, start, to_the_end, until,
};

const UPGRADE: &str = "GET /v1/stream HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
                       sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n";

/// A stream that is open and well is answered as always.
async fn is_well(client: &mut Client) {
    client.ask(r#"{"reset": true}"#).await;
    for (i, word) in SENTENCES[0].split(' ').enumerate() {
        let answer = client.ask(&format!(r#"{{"push": "{word}"}}"#)).await;
        assert_eq!(answer.update.unwrap().step, i + 1);
    }
}

/// Waits until no connection, session or request is left. Each is given back by a task of its own,
/// in no order that others could rely on.
async fn until_empty(address: std::net::SocketAddr) {
    until("connections, sessions and queue are empty", || async {
        metric(address, "tapir_connections").await == 0
            && metric(address, "tapir_sessions").await == 0
            && metric(address, "tapir_queue").await == 0
    })
    .await;
}

/// A WebSocket up to its frames.
async fn upgraded(address: std::net::SocketAddr) -> TcpStream {
    let mut socket = TcpStream::connect(address).await.unwrap();
    socket.write_all(UPGRADE.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(socket.read_u8().await.unwrap());
    }
    assert!(head.starts_with(b"HTTP/1.1 101"));
    socket
}

/// A text frame as a client sends it, masked with zeros.
fn frame(text: &str) -> Vec<u8> {
    assert!(text.len() < 126);
    let mut frame = vec![0x81, 0x80 | text.len() as u8, 0, 0, 0, 0];
    frame.extend(text.bytes());
    frame
}

/// The code of a closing frame, if that is what the bytes begin with.
fn close_code(bytes: &[u8]) -> Option<u16> {
    match bytes {
        [0x88, _, high, low, ..] => Some(u16::from_be_bytes([*high, *low])),
        _ => None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_vanish_or_send_halves_cost_nothing() {
    let mut settings = settings();
    settings.limits.idle_seconds = 2;
    settings.limits.body_seconds = 2;
    let server = start(settings).await;
    let address = server.address();
    let mut well = Client::connect(address).await;
    let mut halves = Vec::new();
    for round in 0..20 {
        // In the middle of a word: asked, and gone before the answer.
        let mut client = Client::connect(address).await;
        for word in SENTENCES[round % SENTENCES.len()].split(' ') {
            client.send(&format!(r#"{{"push": "{word}"}}"#)).await;
        }
        drop(client);
        // Half a frame, and then nothing.
        let mut socket = upgraded(address).await;
        let whole = frame(r#"{"push": "play"}"#);
        socket.write_all(&whole[..whole.len() / 2]).await.unwrap();
        // Half a request, which is answered in the end.
        let mut half = TcpStream::connect(address).await.unwrap();
        half.write_all(b"POST /v1/tag HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n")
            .await
            .unwrap();
        half.write_all(
            b"content-type: application/json\r\ncontent-length: 20\r\n\r\n{\"text\": \"pl",
        )
        .await
        .unwrap();
        halves.push(half);
        if round % 2 == 0 {
            drop(socket);
        } else {
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_secs(30)).await;
                drop(socket);
            });
        }
        is_well(&mut well).await;
    }
    for mut half in halves {
        let mut answer = String::new();
        half.read_to_string(&mut answer).await.unwrap();
        assert!(
            answer.contains("408") && answer.contains("not complete after 2 seconds"),
            "{answer}"
        );
    }
    drop(well);
    until_empty(address).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn garbage_is_refused() {
    let server = start(settings()).await;
    let address = server.address();
    let mut well = Client::connect(address).await;
    // Not HTTP, not a frame, a frame that is not masked, text that is not UTF-8, reserved bits.
    assert!(
        raw(address, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 garbage\r\n\r\n")
            .await
            .contains("400")
    );
    for bytes in [
        &b"\x81\x05hello"[..],
        &[0x81, 0x82, 0, 0, 0, 0, 0xff, 0xfe],
        &[0xf1, 0x80, 0, 0, 0, 0],
        &[0x83, 0x80, 0, 0, 0, 0],
    ] {
        let mut socket = upgraded(address).await;
        socket.write_all(bytes).await.unwrap();
        let answer = to_the_end(&mut socket).await;
        assert_eq!(close_code(&answer), Some(1002), "{bytes:?} is answered by {answer:?}");
        is_well(&mut well).await;
    }
    server.stop().await;
}

/// Ten megabytes here, a hundred in the longer run: they are not taken in, whether a message says
/// so or just goes on.
#[tokio::test(flavor = "multi_thread")]
async fn megabytes_are_not_taken_in() {
    let server = start(settings()).await;
    let address = server.address();
    let megabytes: usize =
        std::env::var("TAPIR_SOAK_MEGABYTES").map_or(10, |text| text.parse().unwrap());
    let mut well = Client::connect(address).await;

    // A frame that announces them is refused before they are sent.
    let mut socket = upgraded(address).await;
    let mut head = vec![0x81, 0xff];
    head.extend(((megabytes as u64) << 20).to_be_bytes());
    head.extend([0; 4]);
    socket.write_all(&head).await.unwrap();
    assert_eq!(close_code(&to_the_end(&mut socket).await), Some(1009));
    // A client that sends them all the same does not get far.
    let mut client = Client::connect(address).await;
    let sent = client.0.send(Message::text("x".repeat(megabytes << 20))).await;
    assert!(sent.is_err() || client.closing().await.is_none_or(|(code, _)| code == 1009));

    // Fragments without an end.
    let mut socket = upgraded(address).await;
    let mut fragment = vec![0x01, 0xfe, 0x80, 0x00, 0, 0, 0, 0];
    fragment.extend(vec![b'x'; 0x8000]);
    let mut sent = 0;
    while sent < megabytes << 20 && socket.write_all(&fragment).await.is_ok() {
        sent += 0x8000;
        fragment[0] = 0x00;
        tokio::task::yield_now().await;
    }
    assert_eq!(close_code(&to_the_end(&mut socket).await), Some(1009), "after {sent} bytes");
    assert!(sent < megabytes << 20, "all fragments were taken in");
    is_well(&mut well).await;

    // A body that is announced, and one that is not.
    let head = "POST /v1/tag HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n";
    let answer =
        raw(address, format!("{head}content-length: {}\r\n\r\n", megabytes << 20).as_bytes()).await;
    assert!(answer.contains("413"), "{answer}");
    let mut socket = TcpStream::connect(address).await.unwrap();
    socket.write_all(format!("{head}transfer-encoding: chunked\r\n\r\n").as_bytes()).await.unwrap();
    let chunk = format!("8000\r\n{}\r\n", "x".repeat(0x8000));
    let mut sent = 0;
    while sent < megabytes << 20 && socket.write_all(chunk.as_bytes()).await.is_ok() {
        sent += 0x8000;
    }
    let answer = String::from_utf8_lossy(&to_the_end(&mut socket).await).into_owned();
    assert!(answer.starts_with("HTTP/1.1 413"), "after {sent} bytes: {answer}");
    assert!(sent < megabytes << 20, "the whole body was taken in");
    is_well(&mut well).await;
    server.stop().await;
}

/// A client that sends and never reads is not read from, and in the end not served.
#[tokio::test(flavor = "multi_thread")]
async fn clients_that_never_read_stop_being_read() {
    let mut settings = settings();
    settings.limits.write_seconds = 2;
    settings.limits.words = 1_000_000;
    settings.limits.words_per_client = 1_000_000;
    let server = start(settings).await;
    let address = server.address();
    let mut well = Client::connect(address).await;
    let mut deaf = upgraded(address).await;
    // Long hypotheses have long answers, which fill the socket's buffers soon.
    let words: Vec<String> = (0..40).map(|i| format!("{i}")).collect();
    let mut message = serde_json::json!({ "update": words }).to_string();
    let mut sent = 0;
    let stuck = loop {
        let mut bytes = vec![0x81, 0xfe];
        bytes.extend((message.len() as u16).to_be_bytes());
        bytes.extend([0; 4]);
        bytes.extend(message.bytes());
        match tokio::time::timeout(Duration::from_secs(1), deaf.write_all(&bytes)).await {
            Ok(Ok(())) => sent += 1,
            Ok(Err(_)) => break "closed",
            Err(_) => break "stuck",
        }
        assert!(sent < 2_000_000, "a client that reads nothing was always read from");
        message =
            message.replace("\"0\"", "\"zero\"").replace("\"39\"", &format!("\"{}\"", sent % 39));
        if sent % 500 == 0 {
            is_well(&mut well).await;
            assert!(metric(address, "tapir_queue").await <= 17);
        }
    };
    assert!(sent > 16, "{stuck} after {sent} messages");
    drop(well);
    until_empty(address).await;
    server.stop().await;
}

/// The worker panics, while it computes and while it begins: the session that caused it gets an
/// error, the others on the same worker, and those in the same batch, are answered to the bit.
#[tokio::test(flavor = "multi_thread")]
async fn a_panic_costs_one_session() {
    let mut settings = settings();
    settings.workers = 1;
    settings.fault = Some("kaboom".into());
    let server = start(settings).await;
    let address = server.address();
    let model = tapir::Model::embedded_named("snips-small").unwrap();
    let streams = (0..20).map(|index| {
        let model = model.clone();
        tokio::spawn(async move {
            let mut session = model.session_with(tapir::SessionOptions::new().window(128)).unwrap();
            let mut client = Client::connect_to(address, "?provisional=false").await;
            for round in 0..6 {
                for word in SENTENCES[(index + round) % SENTENCES.len()].split(' ') {
                    let answer = client.ask(&format!(r#"{{"push": "{word}"}}"#)).await;
                    assert_eq!(answer.update.unwrap(), session.push(word).unwrap());
                }
                client.ask(r#"{"reset": true}"#).await;
                session.reset();
            }
        })
    });
    let streams: Vec<_> = streams.collect();
    let points = ["begin", "compute", "answer"];
    let faults = points.map(|point| {
        let word = format!("kaboom-{point}");
        let push = serde_json::json!({ "session": "a", "push": word }).to_string();
        let update = serde_json::json!({ "session": "a", "update": ["play", word] }).to_string();
        [push, update]
    });
    for fault in faults.iter().flatten().cycle().take(12) {
        let mut client = Client::connect(address).await;
        client.ask(r#"{"session": "b", "push": "play"}"#).await;
        client.ask(r#"{"session": "a", "push": "play"}"#).await;
        // What is asked for behind the fault is answered, too: with an error, or by a new session
        // of that name.
        client.send(fault).await;
        client.send(r#"{"session": "a", "push": "jazz"}"#).await;
        client.send(r#"{"session": "a", "revoke": 0}"#).await;
        for message in 0..3 {
            let answer = client.last().await;
            assert_eq!(answer.session.as_deref(), Some("a"));
            let closed =
                answer.error.is_some_and(|error| error.contains("this session was closed"));
            assert!(closed || message > 0);
        }
        client.ask(r#"{"session": "a", "close": true}"#).await;
        // The other session of the connection goes on, and the name is free for a new one.
        assert_eq!(client.ask(r#"{"session": "b", "push": "jazz"}"#).await.update.unwrap().step, 2);
        assert_eq!(client.ask(r#"{"session": "a", "push": "play"}"#).await.update.unwrap().step, 1);
    }
    for point in points {
        let body = serde_json::json!({ "tokens": ["play", format!("kaboom-{point}")] }).to_string();
        assert_eq!(post(address, "/v1/tag", &body).await.status, 500, "{point}");
    }
    for stream in streams {
        stream.await.unwrap();
    }
    assert!(metric(address, "tapir_panics_total").await >= 15);
    until("no session is left", || async {
        metric(address, "tapir_sessions").await == 0 && metric(address, "tapir_queue").await == 0
    })
    .await;
    assert_eq!(get(address, "/healthz").await.status, 200);
    server.stop().await;
}

/// The end of a session that panicked is heard of late; by then its name may have a new session.
#[tokio::test(flavor = "multi_thread")]
async fn a_late_end_does_not_end_a_successor() {
    let mut settings = settings();
    settings.fault = Some("kaboom".into());
    let server = start(settings).await;
    let mut client = Client::connect_to(server.address(), "?provisional=false").await;
    for _ in 0..20 {
        for message in [r#""push": "kaboom-compute""#, r#""close": true"#, r#""push": "play""#] {
            client.send(&format!(r#"{{"session": "a", {message}}}"#)).await;
        }
        // The order of the answers of two sessions is not fixed.
        let mut steps = Vec::new();
        for _ in 0..3 {
            steps.extend(client.hear().await.unwrap().update.map(|update| update.step));
        }
        assert_eq!(steps, [1]);
        let next = client.ask(r#"{"session": "a", "push": "jazz"}"#).await;
        assert_eq!(next.update.unwrap().step, 2, "the new session is gone");
        client.ask(r#"{"session": "a", "close": true}"#).await;
    }
    server.stop().await;
}

/// Ten thousand sessions ask for room where there is for a hundred.
#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_sessions_are_refused_politely() {
    let mut settings = settings();
    settings.limits.sessions = 100;
    settings.limits.sessions_per_connection = 10_000;
    let server = start(settings).await;
    let address = server.address();
    let mut client = Client::connect(address).await;
    let (mut taken, mut refused) = (0, 0);
    for batch in 0..1000 {
        for i in 0..10 {
            client.send(&format!(r#"{{"session": "{}", "threshold": 0.5}}"#, batch * 10 + i)).await;
        }
        for _ in 0..10 {
            match client.hear().await.unwrap().error {
                None => taken += 1,
                Some(error) => {
                    assert!(error.contains("all 100 sessions are taken"), "{error}");
                    refused += 1;
                }
            }
        }
    }
    assert_eq!((taken, refused), (100, 9_900));
    drop(client);
    until("all are gone", || async { metric(address, "tapir_sessions").await == 0 }).await;
    server.stop().await;
}
