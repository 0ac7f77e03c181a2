//! Connections: how they are accepted, and how long each may take to do what.
//!
//! Every wait for a client has an end: for the TLS handshake, for the head of a request, whether it
//! is the first or the next (hyper's timer for both), for its body (`body.rs`) and for room to
//! write.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};
use tokio_io_timeout::TimeoutStream;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;

use crate::clients::{Peer, Permit};
use crate::error::ApiError;
use crate::state::State;

/// Bytes of a request's head, and of what hyper reads ahead of a body.
const HEAD_BYTES: usize = 64 << 10;

/// Accepts connections until the server stops.
pub(crate) async fn accept(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    app: Router,
    state: Arc<State>,
) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = state.stopping.cancelled() => return,
        };
        match accepted {
            Ok((socket, address)) => admit(socket, address, tls.as_ref(), &app, &state),
            Err(error) if is_of_client(&error) => {}
            Err(error) => {
                // Out of files, most likely: others must go before anybody can come.
                tracing::warn!(%error, "a connection was not accepted");
                sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// A client that goes while it is accepted is no fault of the server's.
fn is_of_client(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// Serves a connection, unless its client or all together have too many.
fn admit(
    socket: TcpStream,
    address: SocketAddr,
    tls: Option<&TlsAcceptor>,
    app: &Router,
    state: &Arc<State>,
) {
    match state.clients.connect(address.ip()) {
        Ok((peer, permit)) => {
            state.spawn(serve(socket, tls.cloned(), app.clone(), state.clone(), peer, permit));
        }
        Err(refusal) => {
            state.metrics.refused.inc();
            if tls.is_none() {
                // As much as the socket takes at once: nobody is waited for.
                let _ = socket.try_write(refused(&refusal).as_bytes());
            }
        }
    }
}

/// An answer to whoever was not let in, as it goes over the wire.
fn refused(refusal: &ApiError) -> String {
    let body = serde_json::json!({ "error": refusal.reason }).to_string();
    let (status, length) = (refusal.status, body.len());
    format!(
        "HTTP/1.1 {status}\r\nconnection: close\r\nretry-after: 1\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )
}

async fn serve(
    socket: TcpStream,
    tls: Option<TlsAcceptor>,
    app: Router,
    state: Arc<State>,
    peer: Peer,
    permit: Permit,
) {
    // Answers are sent at once, and not kept until the client has acknowledged those before.
    if socket.set_nodelay(true).is_err() {
        return;
    }
    match tls {
        None => serve_http(socket, app, &state, peer, permit).await,
        Some(tls) => {
            let patience = Duration::from_secs(state.settings.limits.head_seconds);
            if let Ok(Ok(socket)) = timeout(patience, tls.accept(socket)).await {
                serve_http(socket, app, &state, peer, permit).await;
            }
        }
    }
}

/// Serves the requests of a connection. HTTP/1.1 alone: a stream is a WebSocket, which needs it.
pub(crate) async fn serve_http<S: AsyncRead + AsyncWrite + Send + 'static>(
    socket: S,
    app: Router,
    state: &State,
    peer: Peer,
    permit: Permit,
) {
    let mut socket = TimeoutStream::new(socket);
    socket.set_write_timeout(Some(Duration::from_secs(state.settings.limits.write_seconds)));
    let socket = Box::pin(socket);
    // A stream outlives the connection that it began as.
    let permit = Arc::new(permit);
    let service = hyper::service::service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(peer.clone());
        request.extensions_mut().insert(permit.clone());
        app.clone().oneshot(request.map(Body::new))
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(Duration::from_secs(state.settings.limits.head_seconds))
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(socket), service)
        .with_upgrades();
    let mut connection = std::pin::pin!(connection);
    // What goes wrong here went wrong with the client.
    tokio::select! {
        _ = connection.as_mut() => return,
        () = state.stopping.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}
