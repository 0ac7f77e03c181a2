//! `cargo xtask test`: everything that CI checks, in the order that fails soonest.

mod alone;
mod arm;
mod avx512;
mod deploy;
mod docs;
mod http;
mod nats;
mod python;
mod results;
mod systems;
mod web;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

fn main() -> Result<()> {
    match std::env::args().nth(1).as_deref() {
        Some("test") => test(),
        Some("docs") => docs::test(),
        Some("python") => python::test(),
        Some("nats") => nats::test(),
        Some("arm") => arm::test(),
        Some("arm-count") => arm::count(),
        Some("avx512") => avx512::test(),
        Some("systems") => systems::check(),
        Some("frameworks") => python::test_frameworks(),
        Some("web") => web::run(std::env::args().nth(2).as_deref()),
        other => bail!(
            "unknown task {other:?}; expected `test`, `docs` for the commands of the documents, \
             `nats` for streams on a real nats-server, `arm` for the kernels of ARM, `arm-count` \
             for the instructions that they take, `avx512` for the kernels of AVX-512, `systems` \
             for macOS and Windows, `python` for the Python package, `frameworks` for it with Ray, \
             Spark and others, or `web` for the npm package"
        ),
    }
}

fn test() -> Result<()> {
    let since = Instant::now();
    check()?;
    println!("\nall of it took {} s", since.elapsed().as_secs());
    Ok(())
}

fn check() -> Result<()> {
    cargo(&["fmt", "--all", "--check"])?;
    alone::check()?;
    results::check()?;
    cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])?;
    // The quick build: the program that labels.
    cargo(&["clippy", "-p", "tapir-cli", "--no-default-features", "--", "-D", "warnings"])?;
    install_browser();
    nats::install();
    // Tests and the examples of the documentation in one call: apart, the second would build burn
    // anew.
    cargo(&["test", "--workspace", "--no-fail-fast"])?;
    docs::test()?;
    cargo(&["doc", "--workspace", "--no-deps", "--quiet"])?;
    portable()?;
    arm::test()?;
    web::test_kernels()?;
    alone::package()?;
    nats::check()?;
    python::test()?;
    http::test()
}

/// The page of the server is tested in Chromium, where that can be had: CI's machines are Debian,
/// and we are root there. A developer's own machine is left alone.
fn install_browser() {
    if runs("chromedriver") || std::env::var_os("CI").is_none() {
        return;
    }
    if !apt_install(&["chromium", "chromium-driver"]) {
        println!("Chromium cannot be installed here: the page is not tested in a browser");
    }
}

/// Installs packages of Debian; were they installed?
pub(crate) fn apt_install(packages: &[&str]) -> bool {
    println!("\n$ apt-get install {}", packages.join(" "));
    let apt = |arguments: &[&str]| {
        let status = Command::new("apt-get")
            .args(arguments)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .status();
        status.is_ok_and(|status| status.success())
    };
    apt(&["update", "-qq"]) && apt(&[&["install", "-qq", "-y"], packages].concat())
}

/// Is there such a program?
fn runs(program: &str) -> bool {
    let version =
        Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    version.is_ok_and(|status| status.success())
}

/// The crate that runs models must build where there is no file system, thread or SIMD of ours: in
/// a browser, for one.
fn portable() -> Result<()> {
    let target = "wasm32-unknown-unknown";
    if !add_target(target) {
        println!("\n{target} cannot be installed here: checking without it");
        return cargo(&["check", "-p", "tapir", "--no-default-features"]);
    }
    cargo(&["check", "-p", "tapir", "--no-default-features", "--target", target])
}

/// Installs a target of Rust; is it there?
pub(crate) fn add_target(target: &str) -> bool {
    let added = Command::new("rustup").args(["target", "add", target]).output();
    added.is_ok_and(|output| output.status.success())
}

fn cargo(arguments: &[&str]) -> Result<()> {
    cargo_with(arguments, [])
}

/// The same with variables of its own.
fn cargo_with<const N: usize>(arguments: &[&str], variables: [(String, &str); N]) -> Result<()> {
    say(Command::new("cargo")
        .args(arguments)
        .env("RUSTDOCFLAGS", "-D warnings")
        .env("INSTA_UPDATE", "no")
        .envs(runs("chromedriver").then_some(("TAPIR_BROWSER", "1")))
        .envs(nats::server().map(|program| ("TAPIR_NATS_SERVER", program)))
        .envs(variables))
}

/// Runs a command, having said which; an error if it fails.
pub(crate) fn say(command: &mut Command) -> Result<()> {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    let line = words.join(" ");
    println!("\n$ {line}");
    let since = Instant::now();
    let status = command.stdin(Stdio::null()).status().with_context(|| line.clone())?;
    ensure!(status.success(), "`{line}` failed: {status}");
    println!("took {} s", since.elapsed().as_secs());
    Ok(())
}

/// The checkout.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// All files under a folder.
pub(crate) fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            found.extend(files(&entry.path())?);
        } else {
            found.push(entry.path());
        }
    }
    Ok(found)
}
