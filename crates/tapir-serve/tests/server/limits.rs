//! What one client may use up, and who is served at all.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use crate::support::{Client, get, http, http_from, metric, post, settings, start, until};

#[tokio::test(flavor = "multi_thread")]
async fn sessions_and_connections_are_limited_and_given_back() {
    let mut settings = settings();
    settings.limits.sessions = 5;
    settings.limits.sessions_per_connection = 3;
    let server = start(settings).await;
    let address = server.address();
    let mut a = Client::connect(address).await;
    for name in ["1", "2", "3"] {
        assert_eq!(a.error(&format!(r#"{{"session": "{name}", "push": "play"}}"#)).await, "");
    }
    assert!(a.error(r#"{"session": "4", "push": "play"}"#).await.contains("close one first"));
    let mut b = Client::connect(address).await;
    assert_eq!(b.error(r#"{"session": "1", "push": "play"}"#).await, "");
    assert_eq!(b.error(r#"{"session": "2", "push": "play"}"#).await, "");
    assert!(
        b.error(r#"{"session": "3", "push": "play"}"#).await.contains("all 5 sessions are taken")
    );
    assert_eq!(post(address, "/v1/tag", r#"{"text": "play"}"#).await.status, 503);
    // Closing one by name, or leaving, makes room.
    a.ask(r#"{"session": "1", "close": true}"#).await;
    until("there is room for a session", || async { metric(address, "tapir_sessions").await == 4 })
        .await;
    assert_eq!(b.error(r#"{"session": "3", "push": "play"}"#).await, "");
    drop(a);
    until("the sessions of a client that left are gone", || async {
        metric(address, "tapir_sessions").await == 3
    })
    .await;
    server.stop().await;
}

/// One client cannot take all connections or sessions: others are served beside it.
#[tokio::test(flavor = "multi_thread")]
async fn one_client_leaves_room_for_others() {
    let mut settings = settings();
    settings.limits.connections = 6;
    settings.limits.connections_per_client = 4;
    settings.limits.sessions = 6;
    settings.limits.sessions_per_client = 4;
    let server = start(settings).await;
    let address = server.address();
    let mut greedy = Vec::new();
    for _ in 0..4 {
        greedy.push(Client::connect(address).await);
    }
    let refused = tokio_tungstenite::connect_async(format!("ws://{address}/v1/stream")).await;
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("429"), "{refused}");
    for name in 0..4 {
        assert_eq!(greedy[0].error(&format!(r#"{{"session": "{name}", "push": "a"}}"#)).await, "");
    }
    let error = greedy[1].error(r#"{"push": "a"}"#).await;
    assert!(error.contains("your address has 4 sessions"), "{error}");

    let mut other = Client::connect_from([127, 0, 0, 2], address, "").await;
    assert_eq!(other.error(r#"{"push": "a"}"#).await, "");
    let tag = |source| async move {
        let kind = "content-type: application/json\r\n";
        http_from(source, address, "POST", "/v1/tag", kind, r#"{"text": "play"}"#).await.status
    };
    assert_eq!(tag([127, 0, 0, 3]).await, 200);
    // The sixth connection is the last, whoever asks for a seventh. The one of the request before
    // may still be closing.
    let sixth = async {
        loop {
            match Client::try_connect_from([127, 0, 0, 2], address, "").await {
                Ok(client) => break client,
                Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    };
    let _sixth = tokio::time::timeout(Duration::from_secs(30), sixth).await.unwrap();
    assert_eq!(tag([127, 0, 0, 3]).await, 503);
    drop(greedy);
    until("a client that left makes room", || async { tag([127, 0, 0, 1]).await == 200 }).await;
    server.stop().await;
}

/// Words are counted before anything is computed: those of a request, and those that wait.
#[tokio::test(flavor = "multi_thread")]
async fn words_are_counted_before_they_are_queued() {
    let mut settings = settings();
    settings.limits.words = 30;
    settings.limits.words_per_client = 40;
    let server = start(settings).await;
    let address = server.address();
    let words = |count: usize| vec!["play"; count];
    let inputs = |counts: &[usize]| {
        let inputs = counts.iter().map(|count| serde_json::json!({ "tokens": words(*count) }));
        serde_json::json!({ "inputs": inputs.collect::<Vec<_>>() }).to_string()
    };
    let long = post(address, "/v1/tag", &inputs(&[31])).await;
    assert_eq!(long.status, 400, "{}", long.body);
    let many = post(address, "/v1/tag", &inputs(&[30, 11])).await;
    assert_eq!(many.status, 413, "{}", many.body);
    assert!(many.body.contains("41 words are more than 40"), "{}", many.body);
    assert_eq!(metric(address, "tapir_batch_words_count").await, 0, "nothing was read");
    assert_eq!(post(address, "/v1/tag", &inputs(&[30, 10])).await.status, 200);
    // More than fits into the queue waits, and is answered in the end.
    let mut client = Client::connect_to(address, "?provisional=false").await;
    for length in 1..=30 {
        for session in ["a", "b"] {
            let message = serde_json::json!({ "session": session, "update": words(length) });
            client.send(&message.to_string()).await;
        }
    }
    for _ in 0..60 {
        assert!(client.hear().await.unwrap().update.is_some());
    }
    server.stop().await;
}

/// A page of a name that was made to point here is refused, and so is its stream.
#[tokio::test(flavor = "multi_thread")]
async fn names_that_point_here_are_not_enough() {
    let mut settings = settings();
    settings.hosts = vec!["tapir.example".into()];
    let server = start(settings).await;
    let address = server.address();
    let asked = |host: &'static str, path: &'static str| async move {
        let head = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\norigin: http://{host}\r\n");
        let upgrade = "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
                       sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n";
        let end = if path == "/v1/stream" { upgrade } else { "connection: close\r\n\r\n" };
        let mut socket = TcpStream::connect(address).await.unwrap();
        socket.write_all(format!("{head}{end}").as_bytes()).await.unwrap();
        let mut status = [0; 12];
        socket.read_exact(&mut status).await.unwrap();
        String::from_utf8_lossy(&status[9..]).into_owned()
    };
    for path in ["/v1/models", "/metrics", "/v1/stream"] {
        assert_eq!(asked("evil.example:8642", path).await, "403", "{path}");
        let served = if path == "/v1/stream" { "101" } else { "200" };
        assert_eq!(asked("localhost:8642", path).await, served, "{path}");
        assert_eq!(asked("tapir.example", path).await, served, "{path}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn long_sessions_long_messages_and_silence_are_ended() {
    let mut settings = settings();
    settings.limits.words = 4;
    settings.limits.message_bytes = 1000;
    settings.limits.idle_seconds = 1;
    let server = start(settings).await;
    let address = server.address();
    let mut client = Client::connect(address).await;
    for _ in 0..4 {
        assert_eq!(client.error(r#"{"push": "play"}"#).await, "");
    }
    assert!(client.error(r#"{"push": "play"}"#).await.contains("more than the limit of 4"));
    assert!(
        client
            .error(r#"{"update": ["a", "b", "c", "d", "e"]}"#)
            .await
            .contains("more than the limit of 4")
    );
    client.ask(r#"{"reset": true}"#).await;
    assert_eq!(client.error(r#"{"push": "play"}"#).await, "");

    let mut long = Client::connect(address).await;
    long.send(&format!(r#"{{"push": "{}"}}"#, "x".repeat(2000))).await;
    let (code, reason) = long.closing().await.unwrap();
    assert_eq!(code, 1009);
    assert!(reason.contains("longer than 1000 bytes"));

    let since = Instant::now();
    let (code, reason) = client.closing().await.unwrap();
    assert_eq!((code, reason.as_str()), (1008, "no message for 1 seconds"));
    assert!(since.elapsed() < Duration::from_secs(15));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_a_second_are_limited() {
    let mut settings = settings();
    settings.limits.requests_per_second = 5;
    let server = start(settings).await;
    let address = server.address();
    let mut statuses = Vec::new();
    for _ in 0..30 {
        statuses.push(get(address, "/v1/models").await.status);
    }
    assert!(statuses[..5].iter().all(|status| *status == 200), "{statuses:?}");
    let refused = get(address, "/v1/models").await;
    assert!(statuses.contains(&429) || refused.status == 429, "{statuses:?}");
    // Health is for those who watch the server, and is always answered.
    assert_eq!(get(address, "/healthz").await.status, 200);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_open_the_door() {
    let mut settings = settings();
    settings.tokens = vec!["0123456789abcdef".into(), "the-second-token".into()];
    settings.admin_token = Some("the-administrators".into());
    let server = start(settings).await;
    let address = server.address();
    for path in ["/v1/models", "/metrics", "/v1/stream"] {
        let answer = get(address, path).await;
        assert_eq!(answer.status, 401, "{path}");
        assert!(answer.headers.contains("www-authenticate: bearer"));
    }
    assert_eq!(post(address, "/v1/tag", r#"{"text": "play"}"#).await.status, 401);
    for path in ["/", "/docs", "/healthz", "/readyz", "/openapi.json", "/assets/page.js"] {
        assert_eq!(get(address, path).await.status, 200, "{path}");
    }
    let with = |token: &str| format!("authorization: Bearer {token}\r\n");
    assert_eq!(http(address, "GET", "/v1/models", &with("the-second-token"), "").await.status, 200);
    assert_eq!(http(address, "GET", "/v1/models", &with("the-second-tokem"), "").await.status, 401);
    // The administrator's token is for administration, and the others are not.
    assert_eq!(
        http(address, "GET", "/v1/models", &with("the-administrators"), "").await.status,
        401
    );
    assert_eq!(
        http(address, "POST", "/admin/reload", &with("0123456789abcdef"), "").await.status,
        401
    );
    assert_eq!(
        http(address, "POST", "/admin/reload", &with("the-administrators"), "").await.status,
        200
    );

    // As a browser does it.
    let mut request = format!("ws://{address}/v1/stream").into_client_request().unwrap();
    request
        .headers_mut()
        .insert("sec-websocket-protocol", "tapir.v1, bearer.0123456789abcdef".parse().unwrap());
    let (socket, response) = tokio_tungstenite::connect_async(request).await.unwrap();
    assert_eq!(response.headers()["sec-websocket-protocol"], "tapir.v1");
    let mut client = Client(socket);
    assert_eq!(client.ask(r#"{"push": "play"}"#).await.update.unwrap().step, 1);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_other_origins_are_refused_unless_allowed() {
    let mut settings = settings();
    settings.origins = vec!["https://app.example".into()];
    let server = start(settings).await;
    let address = server.address();
    let from = |origin: &str| format!("origin: {origin}\r\n");
    assert_eq!(
        http(address, "GET", "/v1/models", &from("https://evil.example"), "").await.status,
        403
    );
    assert_eq!(
        http(address, "GET", "/v1/stream", &from("https://evil.example"), "").await.status,
        403
    );
    assert_eq!(
        http(address, "GET", "/v1/models", &from(&format!("http://{address}")), "").await.status,
        200
    );
    let allowed = http(address, "GET", "/v1/models", &from("https://app.example"), "").await;
    assert_eq!(allowed.status, 200);
    assert!(allowed.headers.contains("access-control-allow-origin: https://app.example"));
    server.stop().await;
}
