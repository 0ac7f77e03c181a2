//! A worker's port: its counts, and whether it is alive.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::http::{StatusCode, header};
use axum::routing::get;
use tokio::net::TcpListener;

use crate::{Error, Worker};

impl Worker {
    /// Answers `GET /metrics`, `/healthz` (the process is there) and `/readyz` (it serves a
    /// partition) at an address, until the program ends; gives the address, of which the port may
    /// have been 0.
    pub async fn listen(self: &Arc<Self>, address: SocketAddr) -> Result<SocketAddr, Error> {
        let failed =
            |cause: std::io::Error| Error::Settings(format!("{address}: {cause}; is it in use?"));
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let text =
            [(header::CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")];
        let (counted, served) = (self.clone(), self.clone());
        let app = Router::new()
            .route("/metrics", get(move || async move { (text, counted.metrics()) }))
            .route("/healthz", get(async || "ok"))
            .route(
                "/readyz",
                get(move || async move {
                    if served.partitions() > 0 {
                        (StatusCode::OK, "ok")
                    } else {
                        (StatusCode::SERVICE_UNAVAILABLE, "a standby: it serves no partition")
                    }
                }),
            );
        tokio::spawn(async move { axum::serve(listener, app).await });
        Ok(address)
    }
}
