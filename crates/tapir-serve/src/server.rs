//! A server, from its start to its stop.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware;
use axum::response::IntoResponse;
use axum::routing::get;
use axum_server::accept::Accept;
use axum_server::tls_rustls::RustlsConfig;
use hyper_util::rt::TokioTimer;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::cors::{AllowOrigin, CorsLayer};
use tower_http::set_header::SetResponseHeaderLayer;

use crate::error::Refusal;
use crate::state::State;
use crate::{Error, Settings, access, admin, openapi, page};

/// A client that has not sent the head of its request after so long has none.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// A running server. Dropping it leaves it running; [`stop`](Self::stop) ends it.
pub struct Server {
    state: Arc<State>,
    address: SocketAddr,
    handle: axum_server::Handle<SocketAddr>,
    task: JoinHandle<std::io::Result<()>>,
}

impl Server {
    /// Loads the models and listens. Must be called in a tokio runtime.
    pub async fn start(settings: Settings) -> Result<Self, Error> {
        let listen = settings.listen;
        let tls = match &settings.tls {
            None => None,
            Some(tls) => {
                // Whoever embeds the server may have chosen a provider already: then it is that one.
                let _ = rustls::crypto::ring::default_provider().install_default();
                let config = RustlsConfig::from_pem_file(&tls.certificate, &tls.key).await;
                Some(config.map_err(|cause| Error::Tls { tls: tls.clone(), cause })?)
            }
        };
        let failed = |cause| Error::Listen { address: listen, cause };
        // Listened before the models are loaded: a port in use is said at once.
        let listener = std::net::TcpListener::bind(listen).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let state = tokio::task::spawn_blocking(move || State::new(settings)).await;
        let state = Arc::new(state.map_err(|error| Error::Settings(error.to_string()))??);

        let app = router(state.clone()).into_make_service_with_connect_info::<SocketAddr>();
        let handle = axum_server::Handle::new();
        let task = if let Some(config) = tls {
            let server = axum_server::from_tcp_rustls(listener, config).map_err(failed)?;
            let mut server = server.map(|acceptor| acceptor.acceptor(Patient));
            patience(server.http_builder());
            tokio::spawn(server.handle(handle.clone()).serve(app))
        } else {
            let mut server = axum_server::from_tcp(listener).map_err(failed)?.acceptor(Patient);
            patience(server.http_builder());
            tokio::spawn(server.handle(handle.clone()).serve(app))
        };
        tokio::spawn(housekeeping(state.clone()));
        let models: Vec<_> = state.models.all().iter().map(|served| served.name.clone()).collect();
        tracing::info!(%address, models = models.join(","), "listening");
        Ok(Self { state, address, handle, task })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Reads all models anew; streams go on with the model they began with.
    pub async fn reload(&self) -> Result<(), Error> {
        admin::reload_models(&self.state).await.map_err(|refusal| Error::Settings(refusal.reason))
    }

    /// Stops: takes nothing new, finishes the words in hand, tells every stream why, and returns when all have ended or
    /// the time of grace is over.
    pub async fn stop(self) {
        tracing::info!("stopping");
        let grace = Duration::from_secs(self.state.settings.grace_seconds);
        self.state.stopping.cancel();
        self.state.streams.close();
        self.handle.graceful_shutdown(Some(grace));
        if tokio::time::timeout(grace, self.state.streams.wait()).await.is_err() {
            tracing::warn!(streams = self.state.streams.len(), "streams were cut off");
        }
        let _ = self.task.await;
        tracing::info!("stopped");
    }
}

/// Accepts connections on which something is sent in time: the server below waits for ever to see which HTTP it is. Answers
/// are sent at once, and not kept until the client has acknowledged those before.
#[derive(Clone)]
struct Patient;

impl<S: Send + 'static> Accept<TcpStream, S> for Patient {
    type Stream = TcpStream;
    type Service = S;
    type Future = Pin<Box<dyn Future<Output = std::io::Result<(TcpStream, S)>> + Send>>;

    fn accept(&self, stream: TcpStream, service: S) -> Self::Future {
        Box::pin(async move {
            stream.set_nodelay(true)?;
            tokio::time::timeout(HEAD_TIMEOUT, stream.readable()).await??;
            Ok((stream, service))
        })
    }
}

fn patience(builder: &mut hyper_util::server::conn::auto::Builder<hyper_util::rt::TokioExecutor>) {
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
}

async fn housekeeping(state: Arc<State>) {
    let mut minutes = tokio::time::interval(Duration::from_mins(1));
    loop {
        tokio::select! {
            _ = minutes.tick() => state.forget_clients(),
            () = state.stopping.cancelled() => return,
        }
    }
}

fn router(state: Arc<State>) -> Router {
    let openapi::Routers { with_token, admin, open, api } = openapi::routers();
    let api = openapi::document(&api);
    let json = [(header::CONTENT_TYPE, "application/json")];
    let mut app = with_token
        .route_layer(middleware::from_fn_with_state(state.clone(), access::token))
        .merge(admin)
        .route_layer(middleware::from_fn_with_state(state.clone(), access::client))
        .merge(open)
        .merge(page::router())
        .route("/openapi.json", get(move || async move { (json, api.clone()) }))
        .fallback(|uri: Uri| async move {
            Refusal::new(StatusCode::NOT_FOUND, format!("there is nothing at {}; see /docs", uri.path()))
        })
        .method_not_allowed_fallback(|method: Method| async move {
            Refusal::new(StatusCode::METHOD_NOT_ALLOWED, format!("{method} is not possible here; see /docs"))
        });
    if !state.settings.origins.is_empty() {
        app = app.layer(cors(&state.settings.origins));
    }
    app.layer(DefaultBodyLimit::max(state.settings.limits.body_bytes))
        .layer(SetResponseHeaderLayer::if_not_present(
            HeaderName::from_static("x-content-type-options"),
            HeaderValue::from_static("nosniff"),
        ))
        .layer(CatchPanicLayer::custom(|_: Box<dyn std::any::Any + Send>| {
            Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "internal error").into_response()
        }))
        .with_state(state)
}

fn cors(origins: &[String]) -> CorsLayer {
    let allowed = if origins.iter().any(|origin| origin == "*") {
        AllowOrigin::any()
    } else {
        AllowOrigin::list(origins.iter().filter_map(|origin| HeaderValue::from_str(origin).ok()))
    };
    let headers = [header::AUTHORIZATION, header::CONTENT_TYPE];
    CorsLayer::new().allow_origin(allowed).allow_methods([Method::GET, Method::POST]).allow_headers(headers)
}
