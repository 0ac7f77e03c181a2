//! `cargo xtask test`: everything that CI checks, in the order that fails soonest.

mod alone;
mod arm;
mod avx512;
mod deploy;
mod docs;
mod http;
mod kernels;
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
        Some("python") => python::test(installed()),
        Some("cluster") => python::test_cluster(installed()),
        Some("nats") => nats::test(),
        Some("http") => http::test(),
        Some("kernels") => kernels::test(),
        Some("arm") => arm::test(),
        Some("arm-count") => arm::count(),
        Some("avx512") => avx512::test(),
        Some("systems") => systems::check(),
        Some("web") => web::run(std::env::args().nth(2).as_deref()),
        other => bail!(
            "unknown task {other:?}; expected `test`, `docs` for the commands of the documents, \
             `nats` for streams on a real nats-server, `kernels` for the recorded outputs by all \
             kernels of this machine, `arm` for the kernels of ARM, `arm-count` for the \
             instructions that they take, `avx512` for the kernels of AVX-512, `systems` for macOS \
             and Windows, `python` for the Python package, `cluster` for a node of Ray's that is \
             killed, `http` for the server's interface, or `web` for the npm package"
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
    let installing = python::install();
    let checked = check_rust();
    // Not left behind: the next call would install beside it.
    let installed = installing.join();
    checked?;
    python::test(installed.unwrap_or_default())?;
    http::test()
}

fn installed() -> python::Installed {
    python::install().join().unwrap_or_default()
}

fn check_rust() -> Result<()> {
    cargo(&["fmt", "--all", "--check"])?;
    alone::check()?;
    results::check()?;
    // With what wheels leave out: training from Python.
    let all = ["clippy", "--workspace", "--all-targets", "--features", "tapir-python/train"];
    cargo(&[&all[..], &["--", "-D", "warnings"]].concat())?;
    // The quick build: the program that labels.
    cargo(&["clippy", "-p", "tapir-cli", "--no-default-features", "--", "-D", "warnings"])?;
    install_browser();
    nats::install();
    // Tests and the examples of the documentation in one call: apart, the second would build burn
    // anew.
    cargo(&["test", "--workspace", "--no-fail-fast"])?;
    kernels::test()?;
    docs::test()?;
    cargo(&["doc", "--workspace", "--no-deps", "--quiet"])?;
    portable()?;
    systems::check_small()?;
    arm::test()?;
    web::test_quickly()?;
    alone::package()?;
    nats::check()
}

/// The page of the server is tested in Chromium, where that can be had: CI's machines are Debian,
/// and we are root there. A developer's own machine is left alone.
fn install_browser() {
    if runs("chromedriver") || !is_ci() {
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

/// Where cargo builds.
pub(crate) fn target() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let target = target.unwrap_or_else(|| root().join("target"));
    std::path::absolute(&target).unwrap_or(target)
}

/// A machine of CI's, on which what is missing may be installed; a developer's own is left alone.
pub(crate) fn is_ci() -> bool {
    std::env::var_os("CI").is_some()
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
