//! The `tapir` program: arguments in, library calls, output. One file a subcommand.

use clap::{Parser, Subcommand};

mod analyze;
mod bench;
mod data;
mod eval;
mod info;
mod measure;
mod report;
mod sweep;
mod trace;

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
    Info(info::Info),
    Eval(eval::Eval),
    Sweep(sweep::Sweep),
    Analyze(analyze::Analyze),
    Trace(trace::Trace),
    Bench(bench::Bench),
    Report(report::Report),
}

fn main() -> std::process::ExitCode {
    let result = match Cli::parse().command {
        Command::Data(command) => command.run(),
        Command::Info(command) => command.run(),
        Command::Eval(command) => command.run(),
        Command::Sweep(command) => command.run(),
        Command::Analyze(command) => command.run(),
        Command::Trace(command) => command.run(),
        Command::Bench(command) => command.run(),
        Command::Report(command) => command.run(),
    };
    match result {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tapir: {error:#}");
            std::process::ExitCode::FAILURE
        }
    }
}
