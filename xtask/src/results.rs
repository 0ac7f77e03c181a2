//! Results that others can repeat: each names the commit of the program that measured it.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

/// No result under `results/` comes from a program whose source was not committed.
pub(crate) fn check() -> Result<()> {
    println!("\n$ check that results can be repeated");
    let mut drafts = Vec::new();
    let mut count = 0;
    for path in crate::files(&crate::root().join("results"))? {
        if path.extension().is_some_and(|extension| extension == "json") {
            count += 1;
            if let Some(reason) = fault(&path)? {
                drafts.push(format!("{}: {reason}", path.display()));
            }
        }
    }
    ensure!(count > 0, "results/ has no result");
    ensure!(drafts.is_empty(), "measure these again, from a clean tree:\n{}", drafts.join("\n"));
    Ok(())
}

/// Why nobody could repeat a result.
fn fault(path: &Path) -> Result<Option<&'static str>> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let json: serde_json::Value =
        serde_json::from_str(&text).with_context(|| path.display().to_string())?;
    let provenance = &json["provenance"];
    // Programs before November 2026 wrote the commit by itself, with a mark behind it.
    let older = json["commit"].as_str();
    let modified = provenance["modified"] == true || older.is_some_and(|old| old.contains("dirty"));
    Ok(if provenance["commit"].as_str().or(older).is_none() {
        Some("it does not name the commit of the program that measured it")
    } else if modified {
        Some("the source of the program had been changed")
    } else {
        None
    })
}
