//! Any bytes as a request, or as the body of one: never a panic, always an answer, and as many
//! labels as words.
#![no_main]

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use tapir_serve::{Server, Settings};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::Runtime;

/// One server for all inputs.
fn server() -> &'static (Runtime, Server) {
    static SERVER: OnceLock<(Runtime, Server)> = OnceLock::new();
    SERVER.get_or_init(|| {
        let folder = std::env::temp_dir().join(format!("tapir-fuzz-{}", std::process::id()));
        tapir::doctest::parts().replace(&folder).expect("a good model");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime");
        let mut settings = Settings { workers: 1, ..Settings::default() };
        settings.listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        settings.models.insert("small".into(), folder.display().to_string());
        settings.limits.requests_per_second = 1 << 30;
        settings.limits.messages_per_second_per_client = 1 << 30;
        let server = runtime.block_on(Server::start(settings)).expect("a server");
        (runtime, server)
    })
}

/// What is sent: a request as it is, or a body with a good head.
fn request(kind: u8, bytes: &[u8]) -> Vec<u8> {
    let (path, media) = match kind % 4 {
        0 => return bytes.to_vec(),
        1 => ("tag", "json"),
        2 => ("tag", "x-ndjson"),
        _ => ("tokenize", "json"),
    };
    let length = bytes.len();
    let mut request = format!(
        "POST /v1/{path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
         content-type: application/{media}\r\ncontent-length: {length}\r\n\r\n"
    )
    .into_bytes();
    request.extend_from_slice(bytes);
    request
}

fuzz_target!(|input: (u8, &[u8])| {
    let (kind, bytes) = input;
    let (runtime, server) = server();
    let answer = runtime.block_on(async {
        let (mut client, socket) = tokio::io::duplex(1 << 20);
        let client = async move {
            let _ = client.write_all(&request(kind, bytes)).await;
            if kind % 4 == 0 {
                // It may be half a request, for the rest of which nobody should wait.
                let _ = client.shutdown().await;
            }
            let mut answer = Vec::new();
            let _ = client.read_to_end(&mut answer).await;
            answer
        };
        tokio::join!(client, server.serve(socket, IpAddr::V4(Ipv4Addr::LOCALHOST))).0
    });
    if kind % 4 == 0 {
        return;
    }
    assert!(answer.starts_with(b"HTTP/1.1 "), "no answer");
    assert!(!answer.starts_with(b"HTTP/1.1 500"), "a panic");
    let text = String::from_utf8(answer).expect("UTF-8");
    let (head, body) = text.split_once("\r\n\r\n").expect("a head and a body");
    if kind % 4 == 1 && head.starts_with("HTTP/1.1 200") {
        let answer: Value = serde_json::from_str(body).expect("JSON");
        for result in answer["results"].as_array().expect("results") {
            let count = |key: &str| result[key].as_array().expect("a list").len();
            assert_eq!(count("words"), count("labels"));
        }
    }
});
