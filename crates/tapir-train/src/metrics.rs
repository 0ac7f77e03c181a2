//! `metrics.jsonl`: one row an epoch.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use crate::{Error, Progress, Result};

/// Appends the end of an epoch.
pub(crate) fn append(path: &Path, progress: &Progress) -> Result<()> {
    let row = serde_json::to_string(progress).map_err(|error| Error::invalid(path.display(), error))?;
    let file = OpenOptions::new().create(true).append(true).open(path);
    file.and_then(|mut file| writeln!(file, "{row}")).map_err(|error| Error::io(path, error))
}
