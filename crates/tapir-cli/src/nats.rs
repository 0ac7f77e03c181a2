//! Where NATS is, and which cell: flags that the worker and the gateway share.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use tapir_nats::{CellSettings, Connection};
use tapir_serve::{Server, Settings};

/// Who is let in, and what the cell is like. Whoever comes first makes the cell so.
#[derive(Clone, clap::Args)]
pub(crate) struct Flags {
    /// A file of credentials for NATS, as nsc makes it
    #[arg(long, value_name = "FILE", env = "TAPIR_NATS_CREDENTIALS")]
    nats_credentials: Option<PathBuf>,
    /// Authorities whose certificates are trusted of NATS instead of the system's, PEM; asks for TLS
    #[arg(long, value_name = "FILE", env = "TAPIR_NATS_AUTHORITIES")]
    nats_authorities: Option<PathBuf>,
    /// Our own certificate for NATS, PEM
    #[arg(long, value_name = "FILE", env = "TAPIR_NATS_CERTIFICATE", requires = "nats_key")]
    nats_certificate: Option<PathBuf>,
    /// Its private key, PEM
    #[arg(long, value_name = "FILE", env = "TAPIR_NATS_KEY", requires = "nats_certificate")]
    nats_key: Option<PathBuf>,
    /// The cell: its name begins all subjects
    #[arg(long, value_name = "NAME", env = "TAPIR_CELL", default_value = "tapir")]
    cell: String,
    /// Into how many partitions its sessions fall; never changed
    #[arg(long, value_name = "N", env = "TAPIR_PARTITIONS", default_value_t = 16)]
    partitions: u32,
    /// Nodes of NATS that have a copy of every message
    #[arg(long, value_name = "N", env = "TAPIR_REPLICAS", default_value_t = 1)]
    replicas: usize,
    /// How long messages are kept, and so how long a session lives after its last reset
    #[arg(long, value_name = "TIME", env = "TAPIR_RETENTION", default_value = "1h",
        value_parser = humantime::parse_duration)]
    retention: Duration,
}

impl Flags {
    pub(crate) fn connection(&self, url: &str) -> Connection {
        Connection {
            url: url.to_owned(),
            credentials: self.nats_credentials.clone(),
            authorities: self.nats_authorities.clone(),
            certificate: self.nats_certificate.clone().zip(self.nats_key.clone()),
        }
    }

    pub(crate) fn cell(&self, limits: &tapir_serve::Limits) -> CellSettings {
        CellSettings {
            name: self.cell.clone(),
            partitions: self.partitions,
            replicas: self.replicas,
            retention: self.retention,
            words: limits.words,
            window: limits.window,
            message_bytes: i32::try_from(limits.message_bytes).unwrap_or(i32::MAX),
            ..CellSettings::default()
        }
    }
}

/// `tapir serve` before a cell, if it is told so.
#[derive(Clone, clap::Args)]
pub(crate) struct Gateway {
    /// Pass all sessions on to the workers of a cell on NATS, instead of computing them:
    /// nats://host:4222 or nats://user:password@host:4222, with commas between several
    #[arg(long, value_name = "URL", env = "TAPIR_NATS")]
    nats: Option<String>,
    #[command(flatten)]
    flags: Flags,
}

impl Gateway {
    pub(crate) async fn start(&self, settings: Settings) -> Result<Server> {
        let Some(url) = &self.nats else { return Ok(Server::start(settings).await?) };
        let cell = self.flags.cell(&settings.limits);
        let gateway = tapir_nats::Gateway::connect(&self.flags.connection(url), &cell).await?;
        Ok(Server::start_before(settings, gateway).await?)
    }
}
