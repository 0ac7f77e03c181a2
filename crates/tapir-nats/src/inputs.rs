//! The messages of a partition, in their order, each once.
//!
//! The broker keeps no account of what was taken: the answers do. So a consumer is a thing of the
//! moment; whenever something is missing, or only silent, it is made anew behind the last message
//! that arrived.

use std::sync::Arc;
use std::time::Duration;

use async_nats::header::HeaderMap;
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, pull};
use bytes::Bytes;
use futures_util::StreamExt;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use crate::Name;
use crate::cell::Cell;
use crate::metrics::PartitionMetrics;

/// Messages that are asked for at once, and those that wait in the channel.
const BATCH: usize = 256;
/// After so long without a message the consumer is asked whether it thinks that it sent one.
const SILENCE: Duration = Duration::from_secs(1);

/// A message of a client.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    pub(crate) session: Name,
    pub(crate) sequence: u64,
    pub(crate) headers: Option<HeaderMap>,
    pub(crate) payload: Bytes,
}

/// Reads a partition from a sequence on; it ends when nobody receives any more.
pub(crate) async fn read(
    cell: Arc<Cell>,
    partition: u32,
    mut next: u64,
    metrics: PartitionMetrics,
    inputs: mpsc::Sender<Input>,
) {
    while !inputs.is_closed() {
        if let Err(error) = follow(&cell, partition, &mut next, &metrics, &inputs).await {
            tracing::debug!(partition, %error, "reads on with a new consumer");
            sleep(Duration::from_millis(100)).await;
        }
    }
}

/// Reads with one consumer until something is wrong with it.
async fn follow(
    cell: &Cell,
    partition: u32,
    next: &mut u64,
    metrics: &PartitionMetrics,
    inputs: &mpsc::Sender<Input>,
) -> Result<(), async_nats::Error> {
    let config = pull::Config {
        deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: (*next).max(1) },
        ack_policy: AckPolicy::None,
        filter_subject: cell.names.kept_input(&partition.to_string(), "*"),
        inactive_threshold: Duration::from_secs(30),
        num_replicas: 1,
        memory_storage: true,
        ..pull::Config::default()
    };
    let consumer = cell.inputs.create_consumer(config).await?;
    let stream = consumer.stream().max_messages_per_batch(BATCH).expires(Duration::from_secs(10));
    let mut messages = stream.heartbeat(Duration::from_secs(2)).messages().await?;
    let mut delivered = 0;
    loop {
        let message = tokio::select! {
            () = inputs.closed() => return Ok(()),
            message = timeout(SILENCE, messages.next()) => message,
        };
        let Ok(message) = message else {
            let info = consumer.get_info().await?;
            if info.delivered.consumer_sequence != delivered {
                return Err("messages were lost on the way".into());
            }
            metrics.lag(info.num_pending);
            continue;
        };
        let message = message.ok_or("the consumer has gone")??;
        let (sequence, pending) = {
            let info = message.info()?;
            if info.consumer_sequence != delivered + 1 {
                return Err("a message was lost on the way".into());
            }
            (info.stream_sequence, info.pending)
        };
        delivered += 1;
        metrics.lag(pending);
        if sequence < *next {
            continue;
        }
        *next = sequence + 1;
        let (message, _) = message.split();
        // What a subject of NATS may hold is more than what a name may.
        let name = message.subject.rsplit('.').next().unwrap_or_default();
        let Ok(session) = Name::new(name) else { continue };
        let input = Input { session, sequence, headers: message.headers, payload: message.payload };
        if inputs.send(input).await.is_err() {
            return Ok(());
        }
    }
}
