//! `tapir worker`: computes the sessions of a cell on NATS.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::builder::FalseyValueParser;
use tapir_nats::WorkerSettings;
use tapir_serve::Settings;

/// Compute sessions that lie on NATS JetStream, with other workers; one that dies is replaced
///
/// Messages are those of `tapir stream`, one a message, on CELL.in.SESSION; answers come on
/// CELL.out.SESSION. SIGTERM and Ctrl-C hand the partitions over and stop. docs/nats.md describes
/// it all.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  nats-server -js &
  tapir worker --nats nats://localhost:4222
  tapir serve --nats nats://localhost:4222")]
pub(crate) struct Worker {
    /// Where NATS is: nats://host:4222 or nats://user:password@host:4222, with commas between
    /// several
    #[arg(long, value_name = "URL", env = "TAPIR_NATS")]
    nats: String,
    #[command(flatten)]
    flags: crate::nats::Flags,
    /// Its name, which no other worker of the cell has [default: a random one]
    #[arg(long, env = "TAPIR_WORKER_NAME")]
    name: Option<String>,
    /// A worker that is silent so long is dead, and others take its partitions
    #[arg(long, value_name = "TIME", env = "TAPIR_LEASE", default_value = "2s",
        value_parser = humantime::parse_duration)]
    lease: Duration,
    /// A session that is silent so long leaves the memory, until its next message
    #[arg(long, value_name = "TIME", env = "TAPIR_WORKER_IDLE", default_value = "1m",
        value_parser = humantime::parse_duration)]
    idle: Duration,
    /// Models of new sessions, as of `tapir serve` [default: all that ship]
    #[arg(long, value_name = "[NAME=]MODEL", env = "TAPIR_MODELS", value_delimiter = ',')]
    model: Vec<String>,
    /// Models that no new session gets: those on which old sessions finish, or that come next
    #[arg(long, value_name = "[NAME=]MODEL", env = "TAPIR_OTHER_MODELS", value_delimiter = ',')]
    other_model: Vec<String>,
    /// Threads that compute [default: one per core]
    #[arg(long, value_name = "N", env = "TAPIR_WORKERS")]
    threads: Option<usize>,
    /// Where to answer /metrics, /healthz and /readyz [default: nowhere]
    #[arg(long, value_name = "ADDRESS:PORT", env = "TAPIR_METRICS")]
    metrics: Option<SocketAddr>,
    /// Log lines as JSON; TAPIR_LOG says how much is logged (info, debug, …)
    #[arg(long, env = "TAPIR_LOG_JSON", value_parser = FalseyValueParser::new())]
    log_json: bool,
}

impl Worker {
    pub(crate) fn run(self) -> Result<()> {
        crate::log::start(self.log_json)?;
        let metrics = self.metrics;
        let settings = self.settings()?;
        crate::serve::use_small_pages();
        let runtime = tokio::runtime::Runtime::new().context("no threads")?;
        runtime.block_on(async {
            let stopped = stop_signal()?;
            let worker = Arc::new(tapir_nats::Worker::start(settings).await?);
            println!("worker {} serves", worker.name());
            if let Some(address) = metrics {
                println!("metrics on http://{}/metrics", worker.listen(address).await?);
            }
            stopped.await;
            worker.stop().await;
            Ok(())
        })
    }

    fn settings(self) -> Result<WorkerSettings> {
        let mut engine = Settings::default();
        let names = |given: &[String]| -> Result<Vec<(String, String)>> {
            given.iter().map(|given| crate::serve::named(given)).collect()
        };
        let (current, others) = (names(&self.model)?, names(&self.other_model)?);
        engine.default_model = current.first().map(|(name, _)| name.clone());
        engine.models = current.iter().chain(&others).cloned().collect();
        if engine.models.len() < current.len() + others.len() {
            bail!(
                "two models have the same name; give them names of their own: --model NAME=DIR \
                 --other-model NAME=DIR"
            );
        }
        if current.is_empty() && !others.is_empty() {
            bail!("--other-model without --model: new sessions need a model, too");
        }
        engine.workers = self.threads.unwrap_or(engine.workers);
        Ok(WorkerSettings {
            cell: self.flags.cell(&engine.limits),
            connection: self.flags.connection(&self.nats),
            engine,
            retired: others.into_iter().map(|(name, _)| name).collect(),
            name: self.name,
            lease: self.lease,
            idle: self.idle,
        })
    }
}

/// What ends the program kindly.
#[cfg(unix)]
fn stop_signal() -> Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut interrupt, mut terminate) =
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

#[cfg(not(unix))]
fn stop_signal() -> Result<impl Future<Output = ()>> {
    Ok(async { drop(tokio::signal::ctrl_c().await) })
}
