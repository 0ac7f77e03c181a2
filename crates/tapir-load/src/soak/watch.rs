//! What the server says about itself, and how late its watchers are.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};

use super::report::Gauges;
use crate::connect::Route;
use crate::http::{Http, request};
use crate::speaker::Shared;

/// Between two looks at the metrics.
const EVERY: Duration = Duration::from_secs(10);
/// Between two looks at the clock.
const TICK: Duration = Duration::from_millis(20);

/// Reads `/metrics`, and keeps the largest.
#[derive(Clone)]
pub(super) struct Watch {
    route: Route,
    largest: Arc<Mutex<Gauges>>,
}

impl Watch {
    pub(super) fn new(server: SocketAddr) -> Self {
        Self { route: Route::local(server, 2, 1), largest: Arc::default() }
    }

    /// Looks every ten seconds.
    pub(super) async fn run(self, seen: Shared, until: Instant) {
        let mut due =
            Instant::now() + EVERY.min(until.saturating_duration_since(Instant::now()) / 2);
        while due < until {
            sleep_until(due).await;
            match self.read().await {
                Ok(gauges) => {
                    let mut largest = self.largest.lock().unwrap_or_else(PoisonError::into_inner);
                    *largest = largest.max(gauges);
                }
                Err(error) => seen.note(|seen| seen.fail(format!("/metrics: {error}"))),
            }
            due += EVERY;
        }
    }

    /// The largest since this was asked last.
    pub(super) fn take(&self) -> Gauges {
        std::mem::take(&mut self.largest.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What they are now.
    pub(super) async fn read(&self) -> Result<Gauges, String> {
        let request = request(self.route, "GET /metrics", "connection: close\r\n", "");
        let asked = async { Http::connect(self.route).await?.ask(&request).await };
        let answer = asked.await.map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(&answer.body);
        if answer.status != 200 {
            return Err(format!("{}: {text}", answer.status));
        }
        let gauge = |name: &str| {
            let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            let value = value.and_then(|value| value.trim().parse().ok());
            value.ok_or_else(|| format!("there is no {name} in {text}"))
        };
        Ok(Gauges {
            sessions: gauge("tapir_sessions")?,
            connections: gauge("tapir_connections")?,
            queue: gauge("tapir_queue")?,
        })
    }
}

/// How late the generator wakes up.
pub(super) async fn lateness(seen: Shared, until: Instant) {
    while Instant::now() < until {
        let due = Instant::now() + TICK;
        sleep(TICK).await;
        let milliseconds = due.elapsed().as_secs_f64() * 1e3;
        seen.note(|seen| seen.first.push(milliseconds));
    }
}
