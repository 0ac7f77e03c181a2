//! macOS and Windows: that all of it compiles there, but training, as far as that can be known here.

use anyhow::Result;

/// The systems, by the targets that stand for them.
const TARGETS: [&str; 2] = ["aarch64-apple-darwin", "x86_64-pc-windows-gnu"];

/// The program that labels.
const SMALL: &str = "check -p tapir-cli --no-default-features";

/// What else it does without training, and with it every crate that it uses.
const FEATURES: &str = "--features data,eval,live,nats,serve,shell";

/// All but training.
pub(crate) fn check() -> Result<()> {
    check_program(&format!("{SMALL} {FEATURES}"))
}

/// What CI has time for: files, terminals and kernels, which are what differs, are in it.
pub(crate) fn check_small() -> Result<()> {
    check_program(SMALL)
}

/// Nothing is linked and nothing runs. Two crates that others wrote have parts in C, for which there
/// is no compiler here: one that does nothing takes its place, so that all Rust is checked.
fn check_program(program: &str) -> Result<()> {
    for target in TARGETS {
        if !crate::add_target(target) {
            println!("\n{target} cannot be installed here: not checked");
            continue;
        }
        let arguments: Vec<&str> = program.split_whitespace().chain(["--target", target]).collect();
        let name = target.replace('-', "_");
        let nothing = [format!("CC_{name}"), format!("AR_{name}")].map(|name| (name, "true"));
        crate::cargo_with(&arguments, nothing)?;
    }
    Ok(())
}
