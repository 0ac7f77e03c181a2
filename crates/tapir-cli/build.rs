//! Puts the commit of the source into the program, so that a result names the code that measured it
//! and not the folder that it was run in.

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let here = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default());
    if let Some(commit) = packaged(&here).or_else(|| checked_out(&here)) {
        println!("cargo:rustc-env=TAPIR_COMMIT={commit}");
    }
}

/// A package from a registry carries the commit that it was made from.
fn packaged(here: &Path) -> Option<String> {
    let text = std::fs::read_to_string(here.join(".cargo_vcs_info.json")).ok()?;
    let commit = text.split("\"sha1\": \"").nth(1)?.split('"').next()?.to_owned();
    let modified = if text.contains("\"dirty\": true") { "-modified" } else { "" };
    Some(commit + modified)
}

/// The commit of the checkout, and whether anything that goes into the program differs from it.
fn checked_out(here: &Path) -> Option<String> {
    // A copy of this crate in a repository of someone else's is not that repository's commit.
    git(here, &["ls-files", "--error-unmatch", "build.rs"])?;
    let root = PathBuf::from(git(here, &["rev-parse", "--show-toplevel"])?);
    let commit = git(&root, &["rev-parse", "HEAD"])?;
    // Without a commit there is no line such as these, and cargo looks at the whole package.
    let watched = ["crates", "Cargo.toml", "Cargo.lock"];
    for path in watched {
        println!("cargo:rerun-if-changed={}", root.join(path).display());
    }
    // Every commit and checkout adds a line to the log of HEAD.
    let log = git(&root, &["rev-parse", "--path-format=absolute", "--git-path", "logs/HEAD"])?;
    if Path::new(&log).exists() {
        println!("cargo:rerun-if-changed={log}");
    }
    let mut status = vec!["status", "--porcelain", "--untracked-files=all", "--"];
    status.extend(watched);
    let modified = if git(&root, &status)?.is_empty() { "" } else { "-modified" };
    Some(commit + modified)
}

fn git(folder: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("-C").arg(folder).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
