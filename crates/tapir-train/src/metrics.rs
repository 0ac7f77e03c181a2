//! `metrics.jsonl`: one row per epoch.

use std::io::ErrorKind;
use std::path::Path;

use tapir_data::write_atomically;

use crate::{Error, Progress, Result};

/// Appends the end of an epoch. An epoch that is run again, because its checkpoint was not written,
/// keeps one row.
pub(crate) fn append(path: &Path, progress: &Progress) -> Result<()> {
    let row =
        serde_json::to_string(progress).map_err(|error| Error::invalid(path.display(), error))?;
    let old = match std::fs::read_to_string(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        other => other.map_err(|error| Error::io(path, error))?,
    };
    let Progress { stage, part, epoch, .. } = progress;
    let again = format!(r#"{{"stage":"{}","part":"{part}","epoch":{epoch},"#, stage.name());
    let kept = old.lines().filter(|line| !line.starts_with(&again));
    let text: String = kept.chain([row.as_str()]).flat_map(|line| [line, "\n"]).collect();
    Ok(write_atomically(path, text.as_bytes())?)
}
