//! What all requests share.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::http::StatusCode;
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use prometheus_client::metrics::gauge::Gauge;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::error::Refusal;
use crate::metrics::Metrics;
use crate::models::Models;
use crate::worker::Workers;
use crate::{Error, Settings};

pub(crate) struct State {
    pub(crate) settings: Settings,
    pub(crate) models: Models,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) workers: Workers,
    /// Cancelled when the server is to stop.
    pub(crate) stopping: CancellationToken,
    /// The streams.
    pub(crate) streams: TaskTracker,
    clients: DefaultKeyedRateLimiter<IpAddr>,
    sessions: Arc<AtomicUsize>,
    connections: Arc<AtomicUsize>,
}

impl State {
    pub(crate) fn new(settings: Settings) -> Result<Self, Error> {
        settings.validate()?;
        let metrics = Arc::new(Metrics::new());
        let rate = NonZeroU32::new(settings.limits.requests_per_second).unwrap_or(NonZeroU32::MIN);
        Ok(Self {
            models: Models::open(&settings)?,
            workers: Workers::start(&settings, &metrics),
            metrics,
            stopping: CancellationToken::new(),
            streams: TaskTracker::new(),
            clients: RateLimiter::keyed(Quota::per_second(rate)),
            sessions: Arc::default(),
            connections: Arc::default(),
            settings,
        })
    }

    /// Counts a request of a client against its rate.
    pub(crate) fn count_request(&self, client: IpAddr) -> Result<(), Refusal> {
        self.clients.check_key(&client).map_err(|_| {
            let rate = self.settings.limits.requests_per_second;
            let reason = format!("more than {rate} requests a second from your address; wait a second");
            Refusal::new(StatusCode::TOO_MANY_REQUESTS, reason)
        })
    }

    /// Forgets clients that have not been here for a while.
    pub(crate) fn forget_clients(&self) {
        self.clients.retain_recent();
        self.clients.shrink_to_fit();
    }

    pub(crate) fn open_session(&self) -> Result<Place, Refusal> {
        self.place(&self.sessions, &self.metrics.sessions, "sessions")
    }

    pub(crate) fn open_connection(&self) -> Result<Place, Refusal> {
        self.place(&self.connections, &self.metrics.connections, "connections")
    }

    fn place(&self, taken: &Arc<AtomicUsize>, gauge: &Gauge, what: &str) -> Result<Place, Refusal> {
        let unavailable = |reason: String| Refusal::new(StatusCode::SERVICE_UNAVAILABLE, reason);
        if self.stopping.is_cancelled() {
            return Err(unavailable("the server is stopping".into()));
        }
        let limit = self.settings.limits.sessions;
        if taken.fetch_add(1, Ordering::Relaxed) >= limit {
            taken.fetch_sub(1, Ordering::Relaxed);
            return Err(unavailable(format!("all {limit} {what} are taken; try again later")));
        }
        gauge.inc();
        Ok(Place { taken: taken.clone(), gauge: gauge.clone() })
    }
}

/// One of a limited number, given back when it is dropped.
pub(crate) struct Place {
    taken: Arc<AtomicUsize>,
    gauge: Gauge,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.taken.fetch_sub(1, Ordering::Relaxed);
        self.gauge.dec();
    }
}
