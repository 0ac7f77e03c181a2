//! The `tapir` program: arguments in, library calls, output. One file per subcommand.

use std::sync::LazyLock;

use clap::{CommandFactory, Parser, Subcommand};

#[cfg(feature = "train")]
mod actions;
mod analyze;
mod bench;
#[cfg(feature = "serve")]
mod bench_serve;
mod check;
mod completions;
mod data;
mod eval;
mod import;
mod info;
mod lines;
mod live;
mod man;
mod measure;
mod model;
mod quantize;
#[cfg(feature = "train")]
mod recipe;
mod report;
#[cfg(feature = "serve")]
mod serve;
mod shipped;
mod stream;
mod sweep;
mod tag;
mod trace;
#[cfg(feature = "train")]
mod train;
#[cfg(feature = "train")]
mod tune;
mod vectors;

/// Training allocates and frees a tensor for every operation, and a server something for every
/// message: this allocator is much faster at that than the system's.
#[cfg(any(feature = "serve", feature = "train"))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What `--version` says; `-V` gives the number alone.
static LONG_VERSION: LazyLock<String> = LazyLock::new(|| {
    let models: Vec<_> = tapir::Model::embedded_names().collect();
    format!(
        "{}\ncommit:  {}\nkernels: {}\nmodels:  {}\ntrain:   {}\nserve:   {}",
        env!("CARGO_PKG_VERSION"),
        measure::provenance(),
        tapir::kernels::isa(),
        models.join(", "),
        if cfg!(feature = "train") { "yes" } else { "no" },
        if cfg!(feature = "serve") { "yes" } else { "no" },
    )
});

/// Label words while they arrive, and revise only when a learned policy says so.
#[derive(Parser)]
#[command(name = "tapir", version, long_version = LONG_VERSION.as_str(), propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Live(live::Live),
    Tag(tag::Tag),
    Stream(stream::Stream),
    #[cfg(feature = "serve")]
    Serve(Box<serve::Serve>),
    #[cfg(feature = "train")]
    Train(train::Train),
    #[cfg(feature = "train")]
    Actions(actions::Actions),
    #[cfg(feature = "train")]
    Tune(tune::Tune),
    Eval(eval::Eval),
    Sweep(sweep::Sweep),
    Analyze(analyze::Analyze),
    Trace(trace::Trace),
    Bench(bench::Bench),
    Report(report::Report),
    Check(check::Check),
    Tasks(shipped::Tasks),
    Presets(shipped::Presets),
    #[command(subcommand)]
    Data(data::Data),
    #[command(subcommand)]
    Vectors(vectors::Vectors),
    Info(info::Info),
    Quantize(quantize::Quantize),
    Import(import::Import),
    Completions(completions::Completions),
    Man(man::Man),
}

fn main() -> std::process::ExitCode {
    let result = match Cli::parse().command {
        Command::Live(command) => command.run(),
        Command::Tag(command) => command.run(),
        Command::Stream(command) => command.run(),
        #[cfg(feature = "serve")]
        Command::Serve(command) => command.run(),
        #[cfg(feature = "train")]
        Command::Train(command) => command.run(),
        #[cfg(feature = "train")]
        Command::Actions(command) => command.run(),
        #[cfg(feature = "train")]
        Command::Tune(command) => command.run(),
        Command::Eval(command) => command.run(),
        Command::Sweep(command) => command.run(),
        Command::Analyze(command) => command.run(),
        Command::Trace(command) => command.run(),
        Command::Bench(command) => command.run(),
        Command::Report(command) => command.run(),
        Command::Check(command) => command.run(),
        Command::Tasks(command) => command.run(),
        Command::Presets(command) => command.run(),
        Command::Data(command) => command.run(),
        Command::Vectors(command) => command.run(),
        Command::Info(command) => command.run(),
        Command::Quantize(command) => command.run(),
        Command::Import(command) => command.run(),
        Command::Completions(command) => command.run(Cli::command()),
        Command::Man(command) => command.run(Cli::command()),
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
            || closed(
                cause
                    .downcast_ref::<serde_json::Error>()
                    .and_then(serde_json::Error::io_error_kind),
            )
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
