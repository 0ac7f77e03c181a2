//! What the server counts, for Prometheus.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State as Shared;
use axum::http::header;
use axum::response::IntoResponse;
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

use crate::error::Guarded;
use crate::state::State;

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfModel {
    model: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfAction {
    model: String,
    action: &'static str,
}

type Histograms = Family<OfModel, Histogram, fn() -> Histogram>;

/// All counts. The revise rate is `tapir_actions_total{action="REVISE"}` over `tapir_words_total`.
pub(crate) struct Metrics {
    pub(crate) registry: Registry,
    words: Family<OfModel, Counter>,
    actions: Family<OfAction, Counter>,
    first: Histograms,
    last: Histograms,
    pub(crate) sessions: Gauge,
    pub(crate) connections: Gauge,
    pub(crate) queue: Gauge,
    pub(crate) batches: Histogram,
    pub(crate) refused: Counter,
    pub(crate) panics: Counter,
}

/// Counts one in a gauge as long as it lives.
pub(crate) struct Counted(Gauge);

impl Counted {
    pub(crate) fn in_gauge(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// What a worker counts for one model, without looking its name up.
pub(crate) struct ModelMetrics {
    words: Counter,
    writes: Counter,
    revisions: Counter,
    first: Histogram,
    last: Histogram,
}

impl ModelMetrics {
    /// A word was read, and the policy wants a revision or not.
    pub(crate) fn read(&self, revise: bool) {
        self.words.inc();
        if revise {
            self.revisions.inc()
        } else {
            self.writes.inc()
        };
    }

    /// The first pass's answer was there after so long.
    pub(crate) fn first(&self, after: Duration) {
        self.first.observe(after.as_secs_f64());
    }

    /// The last answer to the message was there after so long.
    pub(crate) fn last(&self, after: Duration) {
        self.last.observe(after.as_secs_f64());
    }
}

/// 0.1 ms to 3.3 s, doubling.
fn latencies() -> Histogram {
    Histogram::new(exponential_buckets(1e-4, 2.0, 16))
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::with_prefix("tapir");
        let metrics = Self {
            words: Family::default(),
            actions: Family::default(),
            first: Family::new_with_constructor(latencies),
            last: Family::new_with_constructor(latencies),
            sessions: Gauge::default(),
            connections: Gauge::default(),
            queue: Gauge::default(),
            batches: Histogram::new(exponential_buckets(1.0, 2.0, 8)),
            refused: Counter::default(),
            panics: Counter::default(),
            registry: Registry::default(),
        };
        registry.register("words", "Words read", metrics.words.clone());
        registry.register("actions", "What the policy chose", metrics.actions.clone());
        let seconds = || Unit::Seconds;
        let help = "From a message to the first answer to it, which may be provisional";
        registry.register_with_unit("first_answer", help, seconds(), metrics.first.clone());
        let help = "From a message to the last answer to it";
        registry.register_with_unit("last_answer", help, seconds(), metrics.last.clone());
        registry.register("sessions", "Sessions that are open", metrics.sessions.clone());
        registry.register("connections", "Streams that are connected", metrics.connections.clone());
        registry.register("queue", "Messages that are not answered yet", metrics.queue.clone());
        registry.register("batch_words", "Words that were read at once", metrics.batches.clone());
        registry.register("refused", "Requests that were refused", metrics.refused.clone());
        registry.register("panics", "Computations that panicked", metrics.panics.clone());
        Self { registry, ..metrics }
    }

    pub(crate) fn of_model(&self, name: &str) -> ModelMetrics {
        let of_model = OfModel { model: name.to_owned() };
        let of_action = |action| OfAction { model: name.to_owned(), action };
        ModelMetrics {
            words: self.words.get_or_create_owned(&of_model),
            writes: self.actions.get_or_create_owned(&of_action("WRITE")),
            revisions: self.actions.get_or_create_owned(&of_action("REVISE")),
            first: self.first.get_or_create_owned(&of_model),
            last: self.last.get_or_create_owned(&of_model),
        }
    }
}

/// Counts for Prometheus
#[utoipa::path(get, path = "/metrics", tag = "operation", security((), ("bearer" = [])), responses(
    (status = 200, description = "OpenMetrics text", body = String, content_type = "application/openmetrics-text"),
    Guarded,
))]
pub(crate) async fn show(Shared(state): Shared<Arc<State>>) -> impl IntoResponse {
    let mut body = String::new();
    // Writing to a string does not fail.
    let _ = text::encode(&mut body, &state.metrics.registry);
    ([(header::CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], body)
}
