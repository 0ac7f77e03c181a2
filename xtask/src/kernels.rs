//! The recorded outputs by every set of kernels that this machine runs, and not by the one alone
//! that it chooses.

use std::process::Command;

use anyhow::{Context, Result, ensure};

/// Those of processors that run this program; `docs/machines.md` has them all.
const SETS: [&str; 8] =
    ["portable", "avx2", "avxvnni", "avx512", "vnni", "neon", "i8mm", "dotprod"];

/// Runs them. The program, which the tests build first, knows what the machine has.
pub(crate) fn test() -> Result<()> {
    let program = crate::target().join("debug/tapir");
    let mut ran = Vec::new();
    for set in SETS {
        let output = Command::new(&program)
            .arg("--version")
            .env("TAPIR_KERNELS", set)
            .output()
            .context("build the program first, by `cargo test --workspace --no-run`")?;
        let said = String::from_utf8_lossy(&output.stdout);
        // One that the machine lacks falls back to another.
        if !said.lines().any(|line| line.strip_prefix("kernels:").is_some_and(|l| l.trim() == set))
        {
            continue;
        }
        let tests = ["test", "--workspace", "--test", "parity", "--test", "parity_bert"];
        crate::cargo_with(&tests, [("TAPIR_KERNELS".to_owned(), set)])?;
        ran.push(set);
    }
    ensure!(!ran.is_empty(), "{} says of no kernels that they run here", program.display());
    println!("\nrecorded outputs were reproduced by {}", ran.join(", "));
    Ok(())
}
