//! The kernels of ARM, run by an emulator: `qemu-user` of Debian runs programs for aarch64 as if
//! they were our own. They are linked by the linker that comes with Rust, against musl, so that no
//! other compiler is needed.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

const TARGET: &str = "aarch64-unknown-linux-musl";
const EMULATOR: &str = "qemu-aarch64";

/// What `-cpu` stands for.
struct Processor {
    name: &'static str,
    /// The kernels that run there; the last of them are chosen.
    kernels: &'static str,
    /// Those by which models run in the tests.
    models: &'static str,
}

const PROCESSORS: [Processor; 3] = [
    Processor { name: "cortex-a53", kernels: "portable, neon", models: "neon" },
    Processor { name: "neoverse-n1", kernels: "portable, neon, dotprod", models: "dotprod" },
    Processor { name: "max", kernels: "portable, neon, i8mm, dotprod", models: "i8mm" },
];

/// The tests that each processor runs: the crate's own of the kernels, the recorded outputs and the
/// invariants of sessions.
const EVERYWHERE: [&str; 3] = ["parity", "parity_bert", "invariants"];

/// An emulator has time for so many random cases of each invariant, and not for a million words.
const CASES: &str = "4";
const TOO_LONG: [&str; 2] = ["--skip", "a_million_words"];

/// The tests, if they can be run here; if not, that is said.
pub(crate) fn test() -> Result<()> {
    if !install() {
        println!("{EMULATOR} or {TARGET} cannot be installed here: kernels of ARM are not tested");
        return Ok(());
    }
    let tests = EVERYWHERE.iter().flat_map(|name| ["--test", name]);
    let arguments: Vec<&str> = ["test", "--no-run", "--lib"].into_iter().chain(tests).collect();
    let programs = build(TARGET, &arguments)?;
    let mut ran = Vec::new();
    for Processor { name, kernels, models } in &PROCESSORS {
        let said = run(name, models, &program(&programs, "tapir")?, &["kernels::"])?;
        let expected = format!("kernels that run here: {kernels}; chosen: {models}\n");
        ensure!(
            said.contains(&expected),
            "{name} has other kernels than {kernels}, or chooses others than {models}"
        );
        for test in EVERYWHERE {
            run(name, models, &program(&programs, test)?, &TOO_LONG)?;
        }
        ran.push(format!("{name}: kernels ({kernels}); {} ({models})", EVERYWHERE.join(", ")));
    }
    println!("\nof ARM, emulated, ran:\n  {}", ran.join("\n  "));
    Ok(())
}

/// How many instructions a product takes with each of the kernels, as a plugin of the emulator
/// counts them: the difference between two products and one.
pub(crate) fn count() -> Result<()> {
    ensure!(install(), "{EMULATOR} or {TARGET} cannot be installed here");
    let plugin = std::path::absolute(crate::root().join("target/libcount.so"))?;
    let mut rustc = Command::new("rustc");
    rustc.args(["--edition", "2024", "--crate-type", "cdylib", "-C", "panic=abort", "-o"]);
    rustc.arg(&plugin).arg(crate::root().join("xtask/count.rs"));
    ensure!(rustc.status().context("cannot start rustc")?.success(), "the plugin does not build");
    let programs = build(TARGET, &["build", "--release", "--example", "product"])?;
    let program = program(&programs, "product")?;
    let Processor { name, kernels, .. } = &PROCESSORS[PROCESSORS.len() - 1];
    println!(
        "{:<5} {:>5}  {:<9} {:>13} {:>11}",
        "", "rows", "kernels", "instructions", "portable /"
    );
    for kind in ["f32", "int8"] {
        for rows in [1, 3, 12] {
            let mut portable = None;
            for kernels in kernels.split(", ") {
                let [one, two] = [1, 2].map(|times| {
                    let arguments = [kind.to_owned(), rows.to_string(), times.to_string()];
                    instructions(name, &plugin, &program, &arguments, kernels)
                });
                let count = two? - one?;
                let portable = *portable.get_or_insert(count);
                let ratio = portable as f64 / count as f64;
                println!("{kind:<5} {rows:>5}  {kernels:<9} {count:>13} {ratio:>11.2}");
            }
        }
    }
    Ok(())
}

/// Instructions that a program executes.
fn instructions(
    processor: &str,
    plugin: &Path,
    program: &Path,
    arguments: &[String],
    kernels: &str,
) -> Result<u64> {
    let output = Command::new(EMULATOR)
        .args(["-cpu", processor, "-plugin"])
        .args([plugin, program])
        .args(arguments)
        .env("TAPIR_KERNELS", kernels)
        .output()
        .context("cannot start the emulator")?;
    let said = String::from_utf8_lossy(&output.stderr);
    let count = said.lines().find_map(|line| line.strip_prefix("instructions: "));
    count.and_then(|count| count.parse().ok()).with_context(|| format!("no count: {said}"))
}

/// The emulator and the target. A developer's own machine is left alone.
fn install() -> bool {
    let emulates = crate::runs(EMULATOR) || crate::is_ci() && crate::apt_install(&["qemu-user"]);
    emulates && crate::add_target(TARGET)
}

/// Builds programs for a target by the linker that comes with Rust; the paths of those that can be
/// started.
pub(crate) fn build(target: &str, arguments: &[&str]) -> Result<Vec<PathBuf>> {
    println!("\n$ cargo {} -p tapir --target {target}", arguments.join(" "));
    let since = Instant::now();
    let linker = format!("CARGO_TARGET_{}_LINKER", target.replace('-', "_").to_uppercase());
    let output = Command::new("cargo")
        .args(arguments)
        .args(["-p", "tapir", "--target", target, "--message-format", "json-render-diagnostics"])
        .env(linker, "rust-lld")
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start cargo")?;
    ensure!(output.status.success(), "building for {target} failed: {}", output.status);
    println!("took {} s", since.elapsed().as_secs());
    let messages = String::from_utf8_lossy(&output.stdout);
    let messages = messages.lines().filter_map(|line| serde_json::from_str(line).ok());
    let programs = messages.filter_map(|message: serde_json::Value| {
        message.get("executable")?.as_str().map(PathBuf::from)
    });
    Ok(programs.collect())
}

/// The program that was built of that name; cargo puts a digest behind the names of tests.
pub(crate) fn program(programs: &[PathBuf], name: &str) -> Result<PathBuf> {
    let is_it = |path: &&PathBuf| {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        stem == name || stem.rsplit_once('-').is_some_and(|(start, _)| start == name)
    };
    let found = programs.iter().find(is_it);
    found.cloned().with_context(|| format!("cargo built no {name}"))
}

/// Runs a test program on a processor, models by these kernels; what it said.
fn run(processor: &str, kernels: &str, program: &Path, arguments: &[&str]) -> Result<String> {
    let name = program.file_stem().unwrap_or_default().to_string_lossy();
    println!(
        "\n$ TAPIR_KERNELS={kernels} {EMULATOR} -cpu {processor} {name} {}",
        arguments.join(" ")
    );
    let since = Instant::now();
    let output = Command::new(EMULATOR)
        .args(["-cpu", processor])
        .arg(program)
        .args(arguments)
        .env("TAPIR_KERNELS", kernels)
        .env("PROPTEST_CASES", CASES)
        .current_dir(crate::root().join("crates/tapir"))
        .output()
        .context("cannot start the emulator")?;
    let said =
        [output.stderr, output.stdout].map(|said| String::from_utf8_lossy(&said).into_owned());
    let said = said.concat();
    for line in said.lines().filter(|line| !line.is_empty() && !line.ends_with("... ok")) {
        println!("{line}");
    }
    if !output.status.success() {
        bail!("{name} failed on {processor}: {}", output.status);
    }
    println!("took {} s", since.elapsed().as_secs());
    Ok(said)
}
