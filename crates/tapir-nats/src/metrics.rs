//! What is counted, for Prometheus.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// Which partition a count is of.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfPartition {
    partition: u32,
}

/// What a worker counts.
#[derive(Default)]
pub(crate) struct Metrics {
    pub(crate) registry: Registry,
    lag: Family<OfPartition, Gauge>,
    pub(crate) partitions: Gauge,
    pub(crate) takeovers: Counter,
    pub(crate) recoveries: Counter,
    pub(crate) replayed: Counter,
    pub(crate) redelivered: Counter,
    pub(crate) answers: Counter,
    pub(crate) repeated: Counter,
    pub(crate) fenced: Counter,
    pub(crate) broken: Counter,
}

/// What is counted of one partition.
#[derive(Clone)]
pub(crate) struct PartitionMetrics {
    lag: Gauge,
}

impl PartitionMetrics {
    /// So many messages wait in the broker.
    pub(crate) fn lag(&self, messages: u64) {
        self.lag.set(messages as i64);
    }
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut metrics = Self::default();
        let mut registry = Registry::with_prefix("tapir_nats");
        let help = "Messages of a partition that wait in the broker";
        registry.register("lag", help, metrics.lag.clone());
        registry.register("partitions", "Partitions that are served", metrics.partitions.clone());
        let counters = [
            ("takeovers", "Partitions that were taken", &metrics.takeovers),
            ("recoveries", "Sessions that were brought back", &metrics.recoveries),
            ("replayed", "Messages that were computed again for it", &metrics.replayed),
            ("redelivered", "Messages that had been answered before", &metrics.redelivered),
            ("answers", "Answers that were stored", &metrics.answers),
            ("repeated", "Answers that had to be sent again", &metrics.repeated),
            ("fenced", "Answers that another worker had given", &metrics.fenced),
            ("broken", "Sessions that could not be brought back", &metrics.broken),
        ];
        for (name, help, counter) in counters {
            registry.register(name, help, counter.clone());
        }
        metrics.registry = registry;
        metrics
    }

    pub(crate) fn of_partition(&self, partition: u32) -> PartitionMetrics {
        PartitionMetrics { lag: self.lag.get_or_create_owned(&OfPartition { partition }) }
    }

    /// A partition that another worker serves has no lag here.
    pub(crate) fn forget(&self, partition: u32) {
        self.lag.remove(&OfPartition { partition });
    }
}
