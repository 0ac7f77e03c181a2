//! A worker of a cell: it beats, takes partitions and gives them up, and serves those it has.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::kv::UpdateErrorKind;
use prometheus_client::encoding::text;
use tapir_serve::{Engine, Settings};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;

use crate::cell::{Cell, CellSettings};
use crate::direct::{self, Query};
use crate::lease::{Action, Beat, Lease, Line, Table, Witness};
use crate::metrics::Metrics;
use crate::partition::{Partition, Shared};
use crate::{Connection, Error, Name};

/// Keys of the bucket.
const WORKER: &str = "worker.";
const PARTITION: &str = "partition.";
/// Beats in a lease: that many may be lost, less one.
const BEATS: u32 = 4;

/// Everything about a worker.
#[derive(Clone, Debug)]
pub struct WorkerSettings {
    /// Where NATS is.
    pub connection: Connection,
    /// The cell that it serves.
    pub cell: CellSettings,
    /// Models, threads and batches; what is about ports and clients does not count.
    pub engine: Settings,
    /// Models that no new session gets, by their names in `engine.models`: those on which old
    /// sessions finish, or which are about to become the current ones.
    pub retired: Vec<String>,
    /// Its name, which no other worker of the cell has; a random one without it.
    pub name: Option<String>,
    /// A worker that has not beaten for so long is dead, and its partitions are taken.
    pub lease: Duration,
    /// A session that is silent so long leaves the memory, until its next message.
    pub idle: Duration,
}

impl WorkerSettings {
    /// With defaults.
    pub fn new(connection: Connection) -> Self {
        Self {
            connection,
            cell: CellSettings::default(),
            engine: Settings::default(),
            retired: Vec::new(),
            name: None,
            lease: Duration::from_secs(2),
            idle: Duration::from_mins(1),
        }
    }
}

/// A worker that runs. Dropping it leaves it running; [`stop`](Self::stop) ends it.
pub struct Worker {
    name: String,
    shared: Arc<Shared>,
    stop: CancellationToken,
    ended: CancellationToken,
}

impl Worker {
    /// Connects, opens the cell, loads the models, and serves. Must be called in a tokio runtime.
    pub async fn start(settings: WorkerSettings) -> Result<Self, Error> {
        // What is built here is large, and would be part of whoever waits for it.
        Box::pin(Self::open(settings)).await
    }

    async fn open(settings: WorkerSettings) -> Result<Self, Error> {
        if settings.lease < Duration::from_millis(200) {
            return Err(Error::Settings(
                "`lease` is less than 200 ms; others would be dead".into(),
            ));
        }
        let name = settings.name.clone().unwrap_or_else(random_name);
        let name = Name::new(name)?.to_string();
        let link = settings.connection.link(&format!("tapir worker {name}")).await?;
        let cell = Cell::open(&link, &settings.cell).await?;
        cell.agree_on_kernels(&link).await?;
        let mut engine = settings.engine.clone();
        // What decides an answer is the cell's.
        engine.limits.words = cell.agreement.words;
        engine.limits.window = cell.agreement.window;
        let engine = tokio::task::spawn_blocking(move || Engine::start(&engine)).await;
        let engine = engine.map_err(|error| Error::Settings(error.to_string()))??;
        let models = engine.models();
        let mut current = Vec::new();
        let mut digests = HashMap::new();
        for served in models.iter() {
            let digest = served.model.digest();
            if !settings.retired.contains(&served.name) {
                current.push(digest.clone());
            }
            digests.entry(digest).or_insert_with(|| served.clone());
        }
        if current.is_empty() {
            return Err(Error::Settings("all models are retired; new sessions need one".into()));
        }
        tracing::info!(worker = name, cell = settings.cell.name, models = models.len(), "serving");
        let shared = Arc::new(Shared {
            cell,
            engine,
            metrics: Metrics::new(),
            digests,
            current,
            idle: settings.idle,
            restoring: Shared::restoring(),
        });
        let stop = CancellationToken::new();
        let office = Office {
            name: name.clone(),
            shared: shared.clone(),
            witness: Witness::new(settings.lease),
            started: Instant::now(),
            held: BTreeMap::new(),
            releasing: JoinSet::new(),
            revisions: BTreeMap::new(),
            beat: settings.lease / BEATS,
        };
        let ended = CancellationToken::new();
        tokio::spawn({
            let (stop, ended) = (stop.clone(), ended.clone().drop_guard());
            async move {
                office.run(stop).await;
                drop(ended);
            }
        });
        Ok(Self { name, shared, stop, ended })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many partitions it serves.
    pub fn partitions(&self) -> usize {
        self.shared.metrics.partitions.get().max(0) as usize
    }

    /// Counts for Prometheus.
    pub fn metrics(&self) -> String {
        let mut body = self.shared.engine.metrics();
        // Writing to a string does not fail.
        let _ = text::encode_registry(&mut body, &self.shared.metrics.registry);
        let _ = text::encode_eof(&mut body);
        body
    }

    /// Stops: gives all partitions up when the answers in hand are stored.
    pub async fn stop(&self) {
        self.stop.cancel();
        self.ended.cancelled().await;
        tracing::info!(worker = self.name, "stopped");
    }
}

/// 96 random bits, without a crate for them: the hasher of the standard library is seeded by the
/// system.
pub(crate) fn random_name() -> String {
    use std::hash::{BuildHasher, RandomState};
    let random = || RandomState::new().hash_one(std::process::id());
    format!("{:016x}{:08x}", random(), random() as u32)
}

/// Keeps the leases of a worker.
struct Office {
    name: String,
    shared: Arc<Shared>,
    witness: Witness,
    started: Instant,
    held: BTreeMap<u32, Partition>,
    /// Partitions that are being given up, with the floors they end with.
    releasing: JoinSet<(u32, u64)>,
    /// The revision of each lease that is ours.
    revisions: BTreeMap<u32, u64>,
    beat: Duration,
}

impl Office {
    async fn run(mut self, stop: CancellationToken) {
        let mut beats = interval(self.beat);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                Some(Ok((partition, floor))) = self.releasing.join_next() => {
                    self.released(partition, floor).await;
                }
                _ = beats.tick() => {
                    if let Err(error) = self.round(false).await {
                        tracing::warn!(%error, "a beat was missed");
                    }
                }
            }
        }
        // Others see that it leaves, and do not wait for its lease.
        let _ = self.round(true).await;
        while let Some(partition) = self.held.keys().next().copied() {
            self.release(partition);
        }
        while let Some(Ok((partition, floor))) = self.releasing.join_next().await {
            self.released(partition, floor).await;
        }
        let _ = self.shared.cell.bucket.purge(format!("{WORKER}{}", self.name)).await;
    }

    /// Beats, looks at the table, and does what it says.
    async fn round(&mut self, leaving: bool) -> Result<(), Error> {
        let floors = self.held.iter().map(|(index, partition)| (*index, partition.floor()));
        let beat = Beat { floors: floors.collect(), leaving };
        let value = serde_json::to_vec(&beat).unwrap_or_default();
        let bucket = &self.shared.cell.bucket;
        let put =
            timeout(4 * self.beat, bucket.put(format!("{WORKER}{}", self.name), value.into()));
        let put = put.await.map_err(|error| Error::jetstream("beat", error))?;
        put.map_err(|error| Error::jetstream("beat", error))?;
        let table = self.table().await?;
        let alive = self.witness.look(&table, self.started.elapsed());
        self.give_way(&table);
        if leaving {
            return Ok(());
        }
        // Ours by its line and not served: of an earlier life of this name, or it was not given up.
        for (partition, line) in &table.leases {
            let is_ours = line.value.worker.as_ref() == Some(&self.name);
            if is_ours && !self.revisions.contains_key(partition) {
                self.take(*partition, line.revision, line.value.floor).await?;
            }
        }
        for action in table.actions(&self.name, self.shared.cell.agreement.partitions, &alive) {
            match action {
                Action::Take { partition, revision, floor } => {
                    self.take(partition, revision, floor).await?;
                }
                Action::Release { partition } => self.release(partition),
            }
        }
        for worker in table.gone(&alive) {
            // Whoever is first; a worker that was only slow writes its line again.
            let _ = self.shared.cell.bucket.purge(format!("{WORKER}{worker}")).await;
        }
        Ok(())
    }

    /// All lines, by one request.
    async fn table(&self) -> Result<Table, Error> {
        let cell = &self.shared.cell;
        let prefix = &cell.bucket.prefix;
        let lines = [WORKER, PARTITION].map(|key| format!("{prefix}{key}*"));
        let query = Query::Last { multi_last: lines.into() };
        let mut table = Table::default();
        for kept in direct::get(&cell.client, &cell.bucket.stream_name, &query).await? {
            // A line that was purged has no value, and one that nobody of us wrote is none.
            let key = kept.subject.strip_prefix(prefix.as_str()).unwrap_or_default();
            let revision = kept.sequence;
            if let Some(worker) = key.strip_prefix(WORKER)
                && let Ok(value) = serde_json::from_slice(&kept.payload)
            {
                table.beats.insert(worker.to_owned(), Line { revision, value });
            } else if let Some(Ok(partition)) = key.strip_prefix(PARTITION).map(str::parse)
                && let Ok(value) = serde_json::from_slice(&kept.payload)
            {
                table.leases.insert(partition, Line { revision, value });
            }
        }
        Ok(table)
    }

    /// Drops what another worker has taken meanwhile.
    fn give_way(&mut self, table: &Table) {
        let mut lost = BTreeSet::new();
        for (partition, ours) in &self.revisions {
            // A node that lags may not show our own line yet.
            let line = table.leases.get(partition).filter(|line| line.revision > *ours);
            if line.is_some() {
                lost.insert(*partition);
            }
        }
        for partition in lost {
            tracing::warn!(partition, "another worker has taken it");
            self.revisions.remove(&partition);
            self.held.remove(&partition);
            self.shared.metrics.forget(partition);
        }
        self.count();
    }

    fn count(&self) {
        self.shared.metrics.partitions.set(self.held.len() as i64);
    }

    async fn take(&mut self, partition: u32, revision: u64, floor: u64) -> Result<(), Error> {
        if self.held.contains_key(&partition) {
            return Ok(());
        }
        let lease = Lease { worker: Some(self.name.clone()), floor };
        let Some(revision) = self.write(partition, &lease, revision).await? else { return Ok(()) };
        tracing::info!(partition, floor, "taken");
        self.shared.metrics.takeovers.inc();
        self.revisions.insert(partition, revision);
        self.held.insert(partition, Partition::start(self.shared.clone(), partition, floor));
        self.count();
        Ok(())
    }

    /// Begins to give a partition up.
    fn release(&mut self, partition: u32) {
        if let Some(held) = self.held.remove(&partition) {
            self.releasing.spawn(async move { (partition, held.finish().await) });
        }
        self.count();
    }

    /// Says that a partition can be taken, and from where on.
    async fn released(&mut self, partition: u32, floor: u64) {
        self.shared.metrics.forget(partition);
        let Some(revision) = self.revisions.remove(&partition) else { return };
        let lease = Lease { worker: None, floor };
        // If this fails it is ours again at the next beat, or another's after the lease.
        match self.write(partition, &lease, revision).await {
            Ok(_) => tracing::info!(partition, floor, "given up"),
            Err(error) => tracing::warn!(partition, %error, "not given up"),
        }
    }

    /// Writes the line of a partition, unless it has changed: then nothing.
    async fn write(&self, index: u32, lease: &Lease, revision: u64) -> Result<Option<u64>, Error> {
        let value = serde_json::to_vec(lease).unwrap_or_default();
        let key = format!("{PARTITION}{index}");
        match self.shared.cell.bucket.update(key, value.into(), revision).await {
            Ok(revision) => Ok(Some(revision)),
            Err(error) if error.kind() == UpdateErrorKind::WrongLastRevision => Ok(None),
            Err(error) => Err(Error::jetstream(format!("write the lease of {index}"), error)),
        }
    }
}
