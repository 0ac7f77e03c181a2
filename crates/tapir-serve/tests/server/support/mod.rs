//! A server on a free port, and clients of it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use tapir::protocol::Response;
use tapir_serve::{Server, Settings, Tls};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

/// Real sentences.
pub(crate) const SENTENCES: [&str; 6] = [
    "play some jazz by miles davis",
    "book a table for four at a mexican restaurant in boston tomorrow at seven",
    "what will the weather be like in san francisco next tuesday",
    "add this song to my summer party playlist",
    "give the last book five stars out of six",
    "find the schedule for films at the nearest cinema",
];

/// Settings for a test: the SNIPS model alone, a free port, no limit of requests in the way.
pub(crate) fn settings() -> Settings {
    let mut settings =
        Settings { listen: SocketAddr::from(([127, 0, 0, 1], 0)), ..Settings::default() };
    settings.models.insert("snips".into(), "embedded:snips-small".into());
    settings.limits.requests_per_second = 1_000_000;
    settings.limits.messages_per_second = 1_000_000;
    settings
}

pub(crate) async fn start(settings: Settings) -> Server {
    Server::start(settings).await.unwrap()
}

/// Has a server speak TLS with a certificate of its own, which clients of the connector trust. The
/// folder holds the files.
pub(crate) fn with_tls(settings: &mut Settings) -> (tempfile::TempDir, TlsConnector) {
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
    let (certificate, key) = (folder.path().join("tls.pem"), folder.path().join("tls.key"));
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    settings.tls = Some(Tls { certificate, key });
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(made.cert.der().to_vec())).unwrap();
    let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    (folder, TlsConnector::from(Arc::new(config)))
}

/// A stream.
pub(crate) struct Client(pub(crate) WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        Self::connect_to(address, "").await
    }

    pub(crate) async fn connect_to(address: SocketAddr, query: &str) -> Self {
        let url = format!("ws://{address}/v1/stream{query}");
        Self(tokio_tungstenite::connect_async(url).await.unwrap().0)
    }

    /// From another address of this machine, and so another client for the server.
    pub(crate) async fn connect_from(source: [u8; 4], address: SocketAddr, query: &str) -> Self {
        Self::try_connect_from(source, address, query).await.unwrap()
    }

    /// The same, where the server may refuse it.
    pub(crate) async fn try_connect_from(
        source: [u8; 4],
        address: SocketAddr,
        query: &str,
    ) -> tokio_tungstenite::tungstenite::Result<Self> {
        let socket = connect_from(source, address).await;
        let url = format!("ws://{address}/v1/stream{query}");
        let socket = MaybeTlsStream::Plain(socket);
        Ok(Self(tokio_tungstenite::client_async(url, socket).await?.0))
    }

    pub(crate) async fn send(&mut self, message: &str) {
        self.0.send(Message::text(message)).await.unwrap();
    }

    /// The next answer, if there is one before the stream ends.
    pub(crate) async fn hear(&mut self) -> Option<Response> {
        loop {
            let message = tokio::time::timeout(Duration::from_secs(20), self.0.next())
                .await
                .expect("an answer");
            match message? {
                Ok(Message::Text(text)) => {
                    return Some(serde_json::from_str(text.as_str()).unwrap());
                }
                Ok(Message::Close(_)) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }

    /// The code and the reason with which the server closes the stream; answers before it are
    /// passed over.
    pub(crate) async fn closing(&mut self) -> Option<(u16, String)> {
        loop {
            let message =
                tokio::time::timeout(Duration::from_secs(20), self.0.next()).await.expect("an end");
            match message? {
                Ok(Message::Close(frame)) => {
                    return frame
                        .map(|frame| (frame.code.into(), frame.reason.as_str().to_owned()));
                }
                Ok(_) => {}
                Err(_) => return None,
            }
        }
    }

    /// Sends a message and gives its last answer.
    pub(crate) async fn ask(&mut self, message: &str) -> Response {
        self.send(message).await;
        self.last().await
    }

    /// The last answer to a message; those before it are passed over.
    pub(crate) async fn last(&mut self) -> Response {
        loop {
            let answer = self.hear().await.expect("an answer");
            if !answer.provisional {
                return answer;
            }
        }
    }

    pub(crate) async fn error(&mut self, message: &str) -> String {
        self.ask(message).await.error.unwrap_or_default()
    }
}

/// An answer over HTTP.
pub(crate) struct Http {
    pub(crate) status: u16,
    pub(crate) headers: String,
    pub(crate) body: String,
}

impl Http {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

/// A connection from another address of this machine.
pub(crate) async fn connect_from(source: [u8; 4], address: SocketAddr) -> TcpStream {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from((source, 0))).unwrap();
    socket.connect(address).await.unwrap()
}

/// Everything until the connection ends, however it does; panics if it does not.
pub(crate) async fn to_the_end(socket: &mut TcpStream) -> Vec<u8> {
    let mut answer = Vec::new();
    let ended =
        tokio::time::timeout(Duration::from_secs(20), socket.read_to_end(&mut answer)).await;
    assert!(ended.is_ok(), "the connection is open after 20 seconds; it said {answer:?}");
    answer
}

/// One request, as it goes over the wire.
pub(crate) async fn raw(address: SocketAddr, request: &[u8]) -> String {
    exchange(TcpStream::connect(address).await.unwrap(), request).await
}

async fn exchange(mut socket: TcpStream, request: &[u8]) -> String {
    socket.write_all(request).await.unwrap();
    let mut answer = Vec::new();
    let read =
        async { while !is_whole(&answer) && socket.read_buf(&mut answer).await.unwrap() > 0 {} };
    tokio::time::timeout(Duration::from_mins(1), read).await.expect("an answer");
    String::from_utf8_lossy(&answer).into_owned()
}

/// Is there as much of a body as the head says? Where it does not say, the end of the connection is
/// the end.
fn is_whole(answer: &[u8]) -> bool {
    let text = String::from_utf8_lossy(answer);
    let Some((head, _)) = text.split_once("\r\n\r\n") else { return false };
    let head_length = head.len() + 4;
    let mut lengths = head.lines().filter_map(|line| {
        line.to_lowercase().strip_prefix("content-length:")?.trim().parse().ok()
    });
    lengths.next_back().is_some_and(|length: usize| answer.len() >= head_length + length)
}

pub(crate) async fn http(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &str,
    body: &str,
) -> Http {
    http_from([127, 0, 0, 1], address, method, path, headers, body).await
}

pub(crate) async fn http_from(
    source: [u8; 4],
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &str,
    body: &str,
) -> Http {
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
    );
    let answer = exchange(connect_from(source, address).await, request.as_bytes()).await;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status =
        head.split_whitespace().nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
    let body = if head.to_lowercase().contains("transfer-encoding: chunked") {
        unchunk(body)
    } else {
        body.into()
    };
    Http { status, headers: head.to_lowercase(), body }
}

fn unchunk(mut body: &str) -> String {
    let mut text = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        text += &rest[..size];
        body = rest[size..].trim_start_matches("\r\n");
        if size == 0 {
            break;
        }
    }
    text
}

pub(crate) async fn get(address: SocketAddr, path: &str) -> Http {
    http(address, "GET", path, "", "").await
}

pub(crate) async fn post(address: SocketAddr, path: &str, body: &str) -> Http {
    http(address, "POST", path, "content-type: application/json\r\n", body).await
}

/// The value of a line of /metrics.
pub(crate) async fn metric(address: SocketAddr, name: &str) -> u64 {
    let text = get(address, "/metrics").await.body;
    let line = text
        .lines()
        .find(|line| line.starts_with(name))
        .unwrap_or_else(|| panic!("{name} in {text}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

/// Waits until something holds, or says what does not.
pub(crate) async fn until<F: Future<Output = bool>>(what: &str, mut holds: impl FnMut() -> F) {
    for _ in 0..2400 {
        if holds().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("not after a minute: {what}");
}
