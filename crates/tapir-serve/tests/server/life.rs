//! Starting, reloading, stopping, TLS.

use std::time::Duration;

use tapir_serve::{Server, Tls};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::support::{Client, SENTENCES, get, http, metric, settings, start, until, with_tls};

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_start_says_why() {
    let error = async |change: fn(&mut tapir_serve::Settings)| {
        let mut settings = settings();
        change(&mut settings);
        Server::start(settings).await.err().unwrap().to_string()
    };
    assert!(
        error(|s| drop(s.models.insert("x".into(), "/nowhere".into())))
            .await
            .contains("model `x`: /nowhere")
    );
    assert!(
        error(|s| drop(s.models.insert("x".into(), "embedded:nix".into())))
            .await
            .contains("model `x`")
    );
    assert!(error(|s| s.default_model = Some("nix".into())).await.contains("none of snips"));
    let tls = || Tls { certificate: "/nowhere.pem".into(), key: "/nowhere.key".into() };
    let mut with_tls = settings();
    with_tls.tls = Some(tls());
    assert!(Server::start(with_tls).await.err().unwrap().to_string().contains("/nowhere.pem"));
    let server = start(settings()).await;
    let mut same = settings();
    same.listen = server.address();
    assert!(
        Server::start(same).await.err().unwrap().to_string().contains("cannot listen on 127.0.0.1")
    );
    server.stop().await;
}

/// Words in hand are answered, the client is told why, and nothing new is taken.
#[tokio::test(flavor = "multi_thread")]
async fn a_stop_finishes_the_words_in_hand() {
    let server = start(settings()).await;
    let address = server.address();
    let mut clients = Vec::new();
    for _ in 0..20 {
        let mut client = Client::connect_to(address, "?provisional=false").await;
        for word in SENTENCES[1].split(' ').take(8) {
            client.send(&format!(r#"{{"push": "{word}"}}"#)).await;
        }
        clients.push(client);
    }
    // All words have arrived: they are read, or wait.
    until("the words arrive", || async {
        metric(address, "tapir_last_answer_seconds_count").await
            + metric(address, "tapir_queue").await
            >= 160
    })
    .await;
    let stopping = tokio::spawn(server.stop());
    for client in &mut clients {
        let mut step = 0;
        let end = loop {
            let message = futures_util::StreamExt::next(&mut client.0).await.unwrap().unwrap();
            match message {
                tokio_tungstenite::tungstenite::Message::Text(text) => {
                    step += 1;
                    let answer: tapir::protocol::Response =
                        serde_json::from_str(text.as_str()).unwrap();
                    assert_eq!(answer.update.unwrap().step, step);
                }
                tokio_tungstenite::tungstenite::Message::Close(frame) => break frame.unwrap(),
                _ => {}
            }
        };
        assert_eq!((u16::from(end.code), end.reason.as_str()), (1001, "the server is stopping"));
        assert_eq!(step, 8, "words in hand were not answered");
    }
    tokio::time::timeout(Duration::from_secs(15), stopping).await.expect("a stop in time").unwrap();
    assert!(TcpStream::connect(address).await.is_err(), "the port is free");
}

/// A new model is for new streams; the old ones go on with theirs, and a model that cannot be read
/// changes nothing.
#[tokio::test(flavor = "multi_thread")]
async fn models_are_read_anew_without_dropping_streams() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model");
    let parts = tapir::Model::embedded_named("snips-small").unwrap().parts().clone();
    parts.save(&path).unwrap();
    let mut settings = settings();
    settings.models.insert("snips".into(), path.display().to_string());
    settings.admin_token = Some("0123456789abcdef".into());
    let server = start(settings).await;
    let address = server.address();
    let mut old = Client::connect_to(address, "?provisional=false").await;
    old.ask(r#"{"push": "play"}"#).await;

    let mut changed = parts.clone();
    changed.config.threshold = 0.0;
    changed.replace(&path).unwrap();
    let reload = "authorization: Bearer 0123456789abcdef\r\n";
    assert_eq!(http(address, "POST", "/admin/reload", reload, "").await.status, 200);
    assert_eq!(get(address, "/v1/models").await.json()["models"][0]["threshold"], 0.0);
    let mut new = Client::connect_to(address, "?provisional=false").await;
    let mut session = tapir::Model::embedded_named("snips-small").unwrap().session();
    session.push("play").unwrap();
    for word in ["some", "jazz", "by", "miles", "davis"] {
        let message = format!(r#"{{"push": "{word}"}}"#);
        assert_eq!(old.ask(&message).await.update.unwrap(), session.push(word).unwrap());
        assert!(
            new.ask(&message).await.update.unwrap().revised(),
            "the new model revises at every word"
        );
    }
    std::fs::write(path.join("config.json"), "{").unwrap();
    let refused = http(address, "POST", "/admin/reload", reload, "").await;
    assert_eq!(refused.status, 500);
    assert!(refused.body.contains("config.json"), "{}", refused.body);
    assert!(server.reload().await.is_err());
    assert_eq!(get(address, "/v1/models").await.status, 200);
    assert!(new.ask(r#"{"push": "now"}"#).await.update.unwrap().revised());
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_is_spoken_with_a_given_certificate() {
    let mut settings = settings();
    let (_folder, connector) = with_tls(&mut settings);
    let server = start(settings).await;
    let socket = TcpStream::connect(server.address()).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let mut tls = connector.connect(name.clone(), socket).await.unwrap();
    tls.write_all(b"GET /v1/models HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        .await
        .unwrap();
    let mut answer = String::new();
    tls.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");

    let socket =
        connector.connect(name, TcpStream::connect(server.address()).await.unwrap()).await.unwrap();
    let (mut stream, _) =
        tokio_tungstenite::client_async("wss://localhost/v1/stream", socket).await.unwrap();
    futures_util::SinkExt::send(&mut stream, r#"{"push": "play"}"#.into()).await.unwrap();
    let message = futures_util::StreamExt::next(&mut stream).await.unwrap().unwrap();
    assert!(message.to_text().unwrap().contains("\"step\":1"));

    // Plain HTTP is not understood, and does no harm.
    let mut plain = TcpStream::connect(server.address()).await.unwrap();
    plain.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    let mut nothing = Vec::new();
    let _ = tokio::time::timeout(Duration::from_secs(10), plain.read_to_end(&mut nothing))
        .await
        .expect("an end");
    drop(stream);
    server.stop().await;
}
