//! The `tapir` program: arguments in, library calls, output. One file a subcommand.

use clap::{Parser, Subcommand};

mod data;
mod import;
mod info;
mod model;
mod quantize;
mod stream;
mod tag;
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
    Quantize(quantize::Quantize),
    Stream(stream::Stream),
    Tag(tag::Tag),
    #[command(subcommand)]
    Vectors(vectors::Vectors),
}

fn main() -> std::process::ExitCode {
    let result = match Cli::parse().command {
        Command::Data(command) => command.run(),
        Command::Import(command) => command.run(),
        Command::Info(command) => command.run(),
        Command::Quantize(command) => command.run(),
        Command::Stream(command) => command.run(),
        Command::Tag(command) => command.run(),
        Command::Vectors(command) => command.run(),
    };
    match result {
        Ok(()) => std::process::ExitCode::SUCCESS,
        // `tapir … | head` has what it wants: no error.
        Err(error) if is_closed_pipe(&error) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tapir: {error:#}");
            std::process::ExitCode::FAILURE
        }
    }
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let closed = |kind| kind == Some(std::io::ErrorKind::BrokenPipe);
    error.chain().any(|cause| {
        closed(cause.downcast_ref::<std::io::Error>().map(std::io::Error::kind))
            || closed(cause.downcast_ref::<serde_json::Error>().and_then(serde_json::Error::io_error_kind))
    })
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
