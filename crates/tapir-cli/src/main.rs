//! The `tapir` program: arguments in, library calls, output. One file per subcommand.

use std::sync::LazyLock;

#[cfg(feature = "shell")]
use clap::CommandFactory;
use clap::{Parser, Subcommand};

#[cfg(feature = "train")]
mod actions;
#[cfg(feature = "eval")]
mod analyze;
#[cfg(feature = "eval")]
mod bench;
#[cfg(feature = "serve")]
mod bench_serve;
#[cfg(feature = "eval")]
mod calibrate;
#[cfg(feature = "eval")]
mod check;
#[cfg(feature = "shell")]
mod completions;
#[cfg(feature = "data")]
mod data;
#[cfg(feature = "eval")]
mod eval;
mod import;
mod info;
mod lines;
#[cfg(feature = "live")]
mod live;
#[cfg(feature = "serve")]
mod log;
#[cfg(feature = "shell")]
mod man;
#[cfg(feature = "eval")]
mod measure;
mod model;
#[cfg(feature = "nats")]
mod nats;
mod quantize;
#[cfg(feature = "train")]
mod recipe;
#[cfg(feature = "eval")]
mod report;
#[cfg(feature = "serve")]
mod serve;
mod shipped;
mod stream;
#[cfg(feature = "eval")]
mod sweep;
mod tag;
mod terminal;
#[cfg(feature = "eval")]
mod trace;
#[cfg(feature = "train")]
mod train;
#[cfg(feature = "train")]
mod tune;
#[cfg(feature = "data")]
mod vectors;
#[cfg(feature = "nats")]
mod worker;

/// Training allocates and frees a tensor for every operation, and a server something for every
/// message: this allocator is much faster at that than the system's.
#[cfg(any(feature = "serve", feature = "train"))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What `--version` says; `-V` gives the number alone.
static LONG_VERSION: LazyLock<String> = LazyLock::new(|| {
    let models: Vec<_> = tapir::Model::embedded_names().collect();
    let features = [
        ("data", cfg!(feature = "data")),
        ("live", cfg!(feature = "live")),
        ("eval", cfg!(feature = "eval")),
        ("serve", cfg!(feature = "serve")),
        ("nats", cfg!(feature = "nats")),
        ("train", cfg!(feature = "train")),
    ];
    let features: Vec<_> = features.iter().filter(|(_, on)| *on).map(|(name, _)| *name).collect();
    format!(
        "{}\ncommit:   {}\nkernels:  {}\nmodels:   {}\nfeatures: {}",
        env!("CARGO_PKG_VERSION"),
        option_env!("TAPIR_COMMIT").unwrap_or("–"),
        tapir::kernels::isa(),
        models.join(", "),
        if features.is_empty() { "none".to_owned() } else { features.join(", ") },
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
    #[cfg(feature = "live")]
    Live(live::Live),
    Tag(tag::Tag),
    Stream(stream::Stream),
    #[cfg(feature = "serve")]
    Serve(Box<serve::Serve>),
    #[cfg(feature = "nats")]
    Worker(Box<worker::Worker>),
    #[cfg(feature = "train")]
    Train(train::Train),
    #[cfg(feature = "train")]
    Actions(actions::Actions),
    #[cfg(feature = "train")]
    Tune(tune::Tune),
    #[cfg(feature = "eval")]
    Eval(eval::Eval),
    #[cfg(feature = "eval")]
    Sweep(sweep::Sweep),
    #[cfg(feature = "eval")]
    Calibrate(calibrate::Calibrate),
    #[cfg(feature = "eval")]
    Analyze(analyze::Analyze),
    #[cfg(feature = "eval")]
    Trace(trace::Trace),
    #[cfg(feature = "eval")]
    Bench(bench::Bench),
    #[cfg(feature = "eval")]
    Report(report::Report),
    #[cfg(feature = "eval")]
    Check(check::Check),
    Tasks(shipped::Tasks),
    Presets(shipped::Presets),
    #[cfg(feature = "data")]
    #[command(subcommand)]
    Data(data::Data),
    #[cfg(feature = "data")]
    #[command(subcommand)]
    Vectors(vectors::Vectors),
    Info(info::Info),
    Quantize(quantize::Quantize),
    Import(import::Import),
    #[cfg(feature = "shell")]
    Completions(completions::Completions),
    #[cfg(feature = "shell")]
    Man(man::Man),
}

fn main() -> std::process::ExitCode {
    let command = Cli::parse().command;
    if let Err(error) = check_kernels() {
        return failure(&error);
    }
    let result = match command {
        #[cfg(feature = "live")]
        Command::Live(command) => command.run(),
        Command::Tag(command) => command.run(),
        Command::Stream(command) => command.run(),
        #[cfg(feature = "serve")]
        Command::Serve(command) => command.run(),
        #[cfg(feature = "nats")]
        Command::Worker(command) => command.run(),
        #[cfg(feature = "train")]
        Command::Train(command) => command.run(),
        #[cfg(feature = "train")]
        Command::Actions(command) => command.run(),
        #[cfg(feature = "train")]
        Command::Tune(command) => command.run(),
        #[cfg(feature = "eval")]
        Command::Eval(command) => command.run(),
        #[cfg(feature = "eval")]
        Command::Sweep(command) => command.run(),
        #[cfg(feature = "eval")]
        Command::Calibrate(command) => command.run(),
        #[cfg(feature = "eval")]
        Command::Analyze(command) => command.run(),
        #[cfg(feature = "eval")]
        Command::Trace(command) => command.run(),
        #[cfg(feature = "eval")]
        Command::Bench(command) => command.run(),
        #[cfg(feature = "eval")]
        Command::Report(command) => command.run(),
        #[cfg(feature = "eval")]
        Command::Check(command) => command.run(),
        Command::Tasks(command) => command.run(),
        Command::Presets(command) => command.run(),
        #[cfg(feature = "data")]
        Command::Data(command) => command.run(),
        #[cfg(feature = "data")]
        Command::Vectors(command) => command.run(),
        Command::Info(command) => command.run(),
        Command::Quantize(command) => command.run(),
        Command::Import(command) => command.run(),
        #[cfg(feature = "shell")]
        Command::Completions(command) => command.run(Cli::command()),
        #[cfg(feature = "shell")]
        Command::Man(command) => command.run(Cli::command()),
    };
    match result {
        Ok(()) => std::process::ExitCode::SUCCESS,
        // `tapir … | head` has what it wants: no error.
        Err(error) if is_closed_pipe(&error) => std::process::ExitCode::SUCCESS,
        Err(error) => failure(&error),
    }
}

fn failure(error: &anyhow::Error) -> std::process::ExitCode {
    eprintln!("tapir: {error:#}");
    std::process::ExitCode::FAILURE
}

/// Are the kernels those that were asked for? The library takes others where these do not run, and
/// whoever names some wants their bits or their speed.
fn check_kernels() -> anyhow::Result<()> {
    let Some(forced) = std::env::var_os("TAPIR_KERNELS") else { return Ok(()) };
    let here: Vec<_> = tapir::kernels::Isa::available().map(tapir::kernels::Isa::name).collect();
    anyhow::ensure!(
        here.iter().any(|name| forced == *name),
        "TAPIR_KERNELS is {}; this machine has {}",
        forced.display(),
        here.join(", ")
    );
    Ok(())
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
