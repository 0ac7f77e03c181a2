//! macOS and Windows: that all of it compiles there, but training, as far as that can be known here.

use anyhow::Result;

/// The systems, by the targets that stand for them.
const TARGETS: [&str; 2] = ["aarch64-apple-darwin", "x86_64-pc-windows-gnu"];

/// The program without training, and with it every crate that it uses.
const PROGRAM: &str = "check -p tapir-cli --no-default-features --features \
                       data,eval,live,nats,serve,shell";

/// Nothing is linked and nothing runs. Two crates that others wrote have parts in C, for which there
/// is no compiler here: one that does nothing takes its place, so that all Rust is checked.
pub(crate) fn check() -> Result<()> {
    for target in TARGETS {
        if !crate::add_target(target) {
            println!("\n{target} cannot be installed here: not checked");
            continue;
        }
        let arguments: Vec<&str> = PROGRAM.split_whitespace().chain(["--target", target]).collect();
        let name = target.replace('-', "_");
        let nothing = [format!("CC_{name}"), format!("AR_{name}")].map(|name| (name, "true"));
        crate::cargo_with(&arguments, nothing)?;
    }
    Ok(())
}
