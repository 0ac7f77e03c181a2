//! Where a result comes from.

use std::time::{Instant, SystemTime};

use serde::{Deserialize, Serialize};

/// The program that measured, when, and on what: written with every result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provenance {
    /// Version of tapir.
    pub version: String,
    /// The commit that the program was built from, where it was built from a checkout or a package.
    pub commit: Option<String>,
    /// Did the source differ from that commit? Such a result cannot be repeated.
    pub modified: bool,
    /// When the measurement began, in UTC: `2026-11-16T17:24:16Z`.
    pub time: String,
    /// How long it took.
    pub seconds: f64,
    /// The instruction set that computed.
    pub kernels: String,
    /// Processor cores of the machine.
    pub cores: usize,
}

impl Provenance {
    /// Of a measurement that begins now. `built_from` is what the program's build noted: a commit,
    /// with `-modified` behind it if the source differed.
    ///
    /// ```
    /// let provenance = tapir_eval::Provenance::now(Some("6aa77bc-modified"));
    /// assert_eq!((provenance.commit.as_deref(), provenance.modified), (Some("6aa77bc"), true));
    /// assert!(provenance.to_string().ends_with("-modified"));
    /// ```
    pub fn now(built_from: Option<&str>) -> Self {
        let commit = built_from.map(|text| text.strip_suffix(MODIFIED).unwrap_or(text));
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: commit.map(str::to_owned),
            modified: commit != built_from,
            time: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
            seconds: 0.0,
            kernels: tapir::kernels::isa().to_string(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
        }
    }

    /// Notes how long it took.
    pub fn ended(&mut self, since: Instant) {
        self.seconds = since.elapsed().as_secs_f64();
    }
}

const MODIFIED: &str = "-modified";

/// The commit in ten digits, as the tables show it.
impl std::fmt::Display for Provenance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let commit = self.commit.as_deref().unwrap_or("–");
        let short = commit.char_indices().nth(10).map_or(commit, |(end, _)| &commit[..end]);
        write!(f, "{short}{}", if self.modified { MODIFIED } else { "" })
    }
}
