//! What programs that run for long say on standard error.

use std::io::IsTerminal;

use anyhow::{Context, Result, anyhow, bail};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

/// Begins to log as `TAPIR_LOG` says, as JSON if so wished.
pub(crate) fn start(json: bool) -> Result<()> {
    let filter = std::env::var("TAPIR_LOG").unwrap_or_else(|_| "info".into());
    let expected = || {
        format!(
            "TAPIR_LOG is `{filter}`, expected off, error, warn, info, debug or trace, or levels of \
             parts, such as info,tapir_serve=debug"
        )
    };
    // A word that is no level would be the name of a part, and everything else silent.
    let is_level = |word: &str| word.parse::<LevelFilter>().is_ok();
    if !filter.split(',').any(|part| is_level(part) || part.contains('=')) {
        bail!(expected());
    }
    let filter = EnvFilter::try_new(&filter).with_context(expected)?;
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let log = log.with_ansi(std::io::stderr().is_terminal());
    let logging = if json { log.json().try_init() } else { log.try_init() };
    logging.map_err(|error| anyhow!("cannot log: {error}"))
}
