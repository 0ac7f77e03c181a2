//! Clients that make the server wait: every wait has an end, and what they held is given back.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::support::{
    Client, connect_from, get, metric, settings, start, to_the_end, until, with_tls,
};

/// No bytes, one byte (of `POST`, or of the preface of HTTP/2), half a head: none is waited for.
#[tokio::test(flavor = "multi_thread")]
async fn a_first_request_must_come_in_time() {
    let mut settings = settings();
    settings.limits.head_seconds = 1;
    let server = start(settings).await;
    let beginnings: [&[u8]; 6] = [
        b"",
        b"P",
        b"PRI * HTTP/2.0\r\n",
        b"GET / HT",
        b"GET / HTTP/1.1\r\nhost: localhost\r\n",
        b"\x16\x03",
    ];
    let mut sockets = Vec::new();
    for bytes in beginnings.iter().cycle().take(60) {
        let mut socket = TcpStream::connect(server.address()).await.unwrap();
        socket.write_all(bytes).await.unwrap();
        sockets.push(socket);
    }
    for socket in &mut sockets {
        to_the_end(socket).await;
    }
    assert_eq!(get(server.address(), "/healthz").await.status, 200);
    server.stop().await;
}

/// A head that comes byte by byte is late, though no byte is.
#[tokio::test(flavor = "multi_thread")]
async fn a_head_that_trickles_in_is_late() {
    let mut settings = settings();
    settings.limits.head_seconds = 1;
    let server = start(settings).await;
    let (mut reader, mut writer) = TcpStream::connect(server.address()).await.unwrap().into_split();
    let trickle = tokio::spawn(async move {
        for byte in
            b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: ".iter().chain([b'y'; 200].iter())
        {
            if writer.write_all(&[*byte]).await.is_err() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    });
    let mut answer = Vec::new();
    let ended =
        tokio::time::timeout(Duration::from_secs(15), reader.read_to_end(&mut answer)).await;
    assert!(ended.is_ok(), "it is still listened to");
    assert!(!answer.starts_with(b"HTTP/1.1 200"));
    trickle.abort();
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_next_request_must_come_in_time() {
    let mut settings = settings();
    settings.limits.head_seconds = 1;
    let server = start(settings).await;
    let mut socket = TcpStream::connect(server.address()).await.unwrap();
    for _ in 0..3 {
        socket.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"ok\n") {
            answer.push(socket.read_u8().await.unwrap());
        }
    }
    to_the_end(&mut socket).await;
    server.stop().await;
}

/// A handshake that is begun, or finished and followed by nothing.
#[tokio::test(flavor = "multi_thread")]
async fn tls_does_not_wait_either() {
    let mut settings = settings();
    settings.limits.head_seconds = 1;
    let (_folder, connector) = with_tls(&mut settings);
    let server = start(settings).await;

    let mut begun = TcpStream::connect(server.address()).await.unwrap();
    begun.write_all(b"\x16\x03\x01").await.unwrap();
    for bytes in [&b""[..], b"P", b"GET / HT"] {
        let socket = TcpStream::connect(server.address()).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let mut finished = connector.connect(name, socket).await.unwrap();
        finished.write_all(bytes).await.unwrap();
        let mut rest = Vec::new();
        let reading = finished.read_to_end(&mut rest);
        assert!(tokio::time::timeout(Duration::from_secs(20), reading).await.is_ok(), "{bytes:?}");
    }
    to_the_end(&mut begun).await;
    server.stop().await;
}

/// Whoever sends lines and reads no answer: its sessions are given back when the answers are made,
/// and in the end its connection.
#[tokio::test(flavor = "multi_thread")]
async fn lines_that_nobody_reads_hold_no_session() {
    let mut settings = settings();
    settings.limits.write_seconds = 2;
    settings.limits.sessions = 16;
    let server = start(settings).await;
    let address = server.address();
    let mut deaf = connect_from([127, 0, 0, 2], address).await;
    let head = "POST /v1/tag HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\
                content-type: application/x-ndjson\r\n\r\n";
    deaf.write_all(head.as_bytes()).await.unwrap();
    // Long words have long answers, which fill the socket's buffers soon.
    let line = serde_json::json!({ "tokens": vec!["x".repeat(4_000); 15] }).to_string() + "\n";
    let chunk = format!("{:x}\r\n{line}\r\n", line.len());
    let mut sent = 0;
    loop {
        match tokio::time::timeout(Duration::from_secs(5), deaf.write_all(chunk.as_bytes())).await {
            Ok(Ok(())) => sent += 1,
            // Cut off, or no longer read from.
            Ok(Err(_)) | Err(_) => break,
        }
        assert!(sent < 100_000, "a client that reads nothing is always read from");
    }
    assert!(sent > 16, "it was not read from at all");
    until("its sessions are given back", || async { metric(address, "tapir_sessions").await == 0 })
        .await;
    let mut client = Client::connect(address).await;
    assert_eq!(client.error(r#"{"push": "play"}"#).await, "");
    // What was written before stays readable; the rest never comes.
    to_the_end(&mut deaf).await;
    server.stop().await;
}

/// A stop does not wait for ever for clients that hold on.
#[tokio::test(flavor = "multi_thread")]
async fn a_stop_has_an_end() {
    let mut settings = settings();
    settings.grace_seconds = 1;
    let server = start(settings).await;
    let mut half = TcpStream::connect(server.address()).await.unwrap();
    half.write_all(b"POST /v1/tag HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n")
        .await
        .unwrap();
    half.write_all(b"content-type: application/json\r\n\r\n{").await.unwrap();
    let mut client = Client::connect(server.address()).await;
    client.ask(r#"{"push": "play"}"#).await;
    let stopped = tokio::time::timeout(Duration::from_secs(20), server.stop()).await;
    assert!(stopped.is_ok(), "it waits for ever");
    to_the_end(&mut half).await;
}
