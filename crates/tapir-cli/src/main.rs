//! The `tapir` program: arguments in, library calls, output. One file a subcommand.

use clap::{Parser, Subcommand};

mod analyze;
mod bench;
mod data;
mod eval;
mod import;
mod info;
mod measure;
mod quantize;
mod report;
mod sweep;
mod trace;
mod vectors;

/// Label words while they arrive, and revise only when a learned policy says so.
#[derive(Parser)]
#[command(name = "tapir", version, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    #[command(subcommand)]
    Data(data::Data),
    Import(import::Import),
    Info(info::Info),
    Eval(eval::Eval),
    Sweep(sweep::Sweep),
    Analyze(analyze::Analyze),
    Trace(trace::Trace),
    Bench(bench::Bench),
    Report(report::Report),
    Quantize(quantize::Quantize),
    #[command(subcommand)]
    Vectors(vectors::Vectors),
}

fn main() -> std::process::ExitCode {
    let result = match Cli::parse().command {
        Command::Data(command) => command.run(),
        Command::Import(command) => command.run(),
        Command::Info(command) => command.run(),
        Command::Eval(command) => command.run(),
        Command::Sweep(command) => command.run(),
        Command::Analyze(command) => command.run(),
        Command::Trace(command) => command.run(),
        Command::Bench(command) => command.run(),
        Command::Report(command) => command.run(),
        Command::Quantize(command) => command.run(),
        Command::Vectors(command) => command.run(),
    };
    match result {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tapir: {error:#}");
            std::process::ExitCode::FAILURE
        }
    }
}

/// Writes a model directory; over an existing one only when forced.
fn write_model(parts: &tapir::Parts, out: &std::path::Path, force: bool) -> anyhow::Result<()> {
    use anyhow::Context;
    if force {
        parts.replace(out)?;
    } else {
        parts.save(out).context("nothing was written (--force writes over it)")?;
    }
    Ok(())
}
