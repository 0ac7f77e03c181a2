//! What one client may use up, and who is served at all.
#![allow(clippy::unwrap_used)]

mod support;

use std::time::{Duration, Instant};

use support::{Client, get, http, metric, post, settings, start, until};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

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
    assert!(b.error(r#"{"session": "3", "push": "play"}"#).await.contains("all 5 sessions are taken"));
    assert_eq!(post(address, "/v1/tag", r#"{"text": "play"}"#).await.status, 503);
    // Closing one by name, or leaving, makes room.
    a.ask(r#"{"session": "1", "close": true}"#).await;
    until("there is room for a session", || async { metric(address, "tapir_sessions").await == 4 }).await;
    assert_eq!(b.error(r#"{"session": "3", "push": "play"}"#).await, "");
    drop(a);
    until("the sessions of a client that left are gone", || async {
        metric(address, "tapir_sessions").await == 3
    })
    .await;
    let mut more = Vec::new();
    for _ in 0..4 {
        more.push(Client::connect(address).await);
    }
    let refused = tokio_tungstenite::connect_async(format!("ws://{address}/v1/stream")).await;
    assert!(refused.unwrap_err().to_string().contains("503"));
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
        client.error(r#"{"update": ["a", "b", "c", "d", "e"]}"#).await.contains("more than the limit of 4")
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
    assert_eq!(http(address, "GET", "/v1/models", &with("the-administrators"), "").await.status, 401);
    assert_eq!(http(address, "POST", "/admin/reload", &with("0123456789abcdef"), "").await.status, 401);
    assert_eq!(http(address, "POST", "/admin/reload", &with("the-administrators"), "").await.status, 200);

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
    assert_eq!(http(address, "GET", "/v1/models", &from("https://evil.example"), "").await.status, 403);
    assert_eq!(http(address, "GET", "/v1/stream", &from("https://evil.example"), "").await.status, 403);
    assert_eq!(http(address, "GET", "/v1/models", &from(&format!("http://{address}")), "").await.status, 200);
    let allowed = http(address, "GET", "/v1/models", &from("https://app.example"), "").await;
    assert_eq!(allowed.status, 200);
    assert!(allowed.headers.contains("access-control-allow-origin: https://app.example"));
    server.stop().await;
}
