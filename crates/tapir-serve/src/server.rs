//! A server, from its start to its stop.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware;
use axum::response::IntoResponse;
use axum::routing::get;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::cors::{AllowOrigin, CorsLayer};
use tower_http::set_header::SetResponseHeaderLayer;

use crate::error::ApiError;
use crate::state::State;
use crate::{Error, Remote, Settings, Tls, access, admin, connection, openapi, page};

/// A running server. Dropping it leaves it running; [`stop`](Self::stop) ends it.
pub struct Server {
    state: Arc<State>,
    address: SocketAddr,
    app: Router,
}

impl Server {
    /// Loads the models and listens. Must be called in a tokio runtime.
    pub async fn start(settings: Settings) -> Result<Self, Error> {
        Self::start_with(settings, None).await
    }

    /// The same, with sessions that are computed elsewhere: models are read for their words and
    /// labels, and no thread computes.
    pub async fn start_before(settings: Settings, remote: Arc<dyn Remote>) -> Result<Self, Error> {
        Self::start_with(settings, Some(remote)).await
    }

    async fn start_with(
        settings: Settings,
        remote: Option<Arc<dyn Remote>>,
    ) -> Result<Self, Error> {
        let listen = settings.listen;
        let tls = settings.tls.as_ref().map(acceptor).transpose()?;
        let failed = |cause| Error::Listen { address: listen, cause };
        // Listened before the models are loaded: a port in use is said at once.
        let listener = TcpListener::bind(listen).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let state = tokio::task::spawn_blocking(move || State::new(settings, remote)).await;
        let state = Arc::new(state.map_err(|error| Error::Settings(error.to_string()))??);

        let app = router(state.clone());
        state.spawn(connection::accept(listener, tls, app.clone(), state.clone()));
        state.spawn(housekeeping(state.clone()));
        let models: Vec<_> = state.models.all().iter().map(|served| served.name.clone()).collect();
        tracing::info!(%address, models = models.join(","), "listening");
        Ok(Self { state, address, app })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves a connection that somebody else has accepted, such as one of a Unix socket, as if it
    /// came from `client`, until it ends.
    pub async fn serve(
        &self,
        socket: impl AsyncRead + AsyncWrite + Send + 'static,
        client: IpAddr,
    ) {
        // Whoever has too many connections already is served no further one.
        if let Ok((peer, permit)) = self.state.clients.connect(client) {
            connection::serve_http(socket, self.app.clone(), &self.state, peer, permit).await;
        }
    }

    /// Reads all models anew; streams go on with the model they began with.
    pub async fn reload(&self) -> Result<(), Error> {
        admin::reload_models(&self.state).await.map_err(|refusal| Error::Settings(refusal.reason))
    }

    /// Stops: takes nothing new, finishes the words in hand, tells every stream why, and returns
    /// when all have ended or the time of grace is over.
    pub async fn stop(self) {
        tracing::info!("stopping");
        let grace = Duration::from_secs(self.state.settings.grace_seconds);
        self.state.stopping.cancel();
        self.state.tasks.close();
        if tokio::time::timeout(grace, self.state.tasks.wait()).await.is_err() {
            tracing::warn!(connections = self.state.tasks.len(), "connections were cut off");
            self.state.stopped.cancel();
            self.state.tasks.wait().await;
        }
        tracing::info!("stopped");
    }
}

/// Reads certificate and key.
fn acceptor(tls: &Tls) -> Result<TlsAcceptor, Error> {
    // Whoever embeds the server may have chosen a provider already: then it is that one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let failed =
        |cause: String| Error::Tls { tls: tls.clone(), cause: std::io::Error::other(cause) };
    let chain = CertificateDer::pem_file_iter(&tls.certificate).and_then(Iterator::collect);
    let chain = chain.map_err(|error| failed(error.to_string()))?;
    let key = PrivateKeyDer::from_pem_file(&tls.key).map_err(|error| failed(error.to_string()))?;
    let config = rustls::ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key);
    let mut config = config.map_err(|error| failed(error.to_string()))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

async fn housekeeping(state: Arc<State>) {
    let mut minutes = tokio::time::interval(Duration::from_mins(1));
    loop {
        tokio::select! {
            _ = minutes.tick() => state.clients.forget(),
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
            ApiError::new(
                StatusCode::NOT_FOUND,
                format!("there is nothing at {}; see /docs", uri.path()),
            )
        })
        .method_not_allowed_fallback(|method: Method| async move {
            ApiError::new(
                StatusCode::METHOD_NOT_ALLOWED,
                format!("{method} is not possible here; see /docs"),
            )
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
            ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal error").into_response()
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
    CorsLayer::new()
        .allow_origin(allowed)
        .allow_methods([Method::GET, Method::POST])
        .allow_headers(headers)
}
