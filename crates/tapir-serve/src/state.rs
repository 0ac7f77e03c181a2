//! What all requests share.

use std::sync::Arc;

use axum::http::StatusCode;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::clients::{Client, Clients, Permit};
use crate::error::ApiError;
use crate::metrics::Metrics;
use crate::models::Models;
use crate::worker::Workers;
use crate::{Error, Remote, Settings};

pub(crate) struct State {
    pub(crate) settings: Settings,
    pub(crate) models: Models,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) workers: Workers,
    pub(crate) clients: Clients,
    /// Cancelled when the server is to stop.
    pub(crate) stopping: CancellationToken,
    /// Cancelled when it has waited long enough for its tasks.
    pub(crate) stopped: CancellationToken,
    /// The connections, and the streams on them.
    pub(crate) tasks: TaskTracker,
}

impl State {
    pub(crate) fn new(settings: Settings, remote: Option<Arc<dyn Remote>>) -> Result<Self, Error> {
        settings.validate()?;
        let metrics = Arc::new(Metrics::new());
        let workers = match remote {
            None => Workers::start(&settings, &metrics)?,
            Some(remote) => Workers::elsewhere(remote, &metrics),
        };
        Ok(Self {
            models: Models::open(&settings)?,
            workers,
            metrics,
            clients: Clients::new(settings.limits.clone(), settings.proxies.clone()),
            stopping: CancellationToken::new(),
            stopped: CancellationToken::new(),
            tasks: TaskTracker::new(),
            settings,
        })
    }

    /// Takes a session for a client, unless there are too many or the server is stopping.
    pub(crate) fn open_session(&self, client: &Client) -> Result<Permit, ApiError> {
        self.check_running()?;
        self.clients.open_session(client, &self.metrics.sessions)
    }

    /// Runs a task that a stop waits for, and ends if it takes too long.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        tokio::spawn(self.track(task));
    }

    /// A task that a stop waits for, and ends if it takes too long, for others to run.
    pub(crate) fn track<F: Future<Output = ()>>(
        &self,
        task: F,
    ) -> impl Future<Output = ()> + use<F> {
        let stopped = self.stopped.clone();
        self.tasks.track_future(async move {
            stopped.run_until_cancelled_owned(task).await;
        })
    }

    /// Refuses what is new while the server stops.
    pub(crate) fn check_running(&self) -> Result<(), ApiError> {
        if self.stopping.is_cancelled() {
            return Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "the server is stopping"));
        }
        Ok(())
    }
}
