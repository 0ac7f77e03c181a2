//! The npm package: the module compiled with simd128 and made loadable for JavaScript, models beside
//! it, tested in Node, Chromium and Firefox; the kernels for simd128 in Node; the demonstration page.
//!
//! What cannot be had is said, and left out: a machine without Node, or without a browser.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

const TARGET: &str = "wasm32-unknown-unknown";
/// For tests, which need a standard output and files. Node runs it.
const TEST_TARGET: &str = "wasm32-wasip1";
/// Every engine that matters has them since 2023.
const SIMD: &str = "-C target-feature=+simd128";

/// What the package has beside the code.
const MODELS: [&str; 2] = ["snips-small", "pos"];
const LICENSES: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];

/// Tests that need Node and the native program only.
const QUICK: [&str; 3] = ["places", "local", "made"];

/// What compiles the package's types, and what bundles it. Pinned, so that what they refuse does
/// not change under us; a webpack that refuses the URL of a folder, as its newest no longer does.
const TOOLS: [&str; 2] = ["typescript@5.9.3", "webpack@5.94.0"];

/// `cargo xtask web`, and with a word behind it one of its parts.
pub(crate) fn run(part: Option<&str>) -> Result<()> {
    match part {
        None => test(),
        Some("build") => built(),
        Some("kernels") => kernels(),
        Some("demo") => demo(),
        Some("bench") => bench(),
        Some(other) => bail!("{other}: expected `build`, `kernels`, `demo`, `bench` or nothing"),
    }
}

/// Builds the package and tests it.
fn test() -> Result<()> {
    if !install_node() || !build()? {
        return Ok(());
    }
    kernels()?;
    let browsers = browsers();
    let mut command =
        node_test(&[&QUICK[..], &["node", "worker", "browsers", "bundle", "demo"]].concat())?;
    command.env("TAPIR_BROWSERS", browsers.join(","));
    if let Some(tools) = tools() {
        command.env("TAPIR_TOOLS", tools);
    }
    crate::say(&mut command)
}

/// What CI has time for: the kernels, and the tests that need no package. With the package and its
/// browsers it would take longer than the half hour that it may.
pub(crate) fn test_quickly() -> Result<()> {
    if !install_node() {
        return Ok(());
    }
    kernels()?;
    crate::say(&mut node_test(&QUICK)?)
}

/// Makes `docs/demo`, tests it, and takes its picture where there is Chromium.
fn demo() -> Result<()> {
    built()?;
    let mut command = node();
    command.arg("npm/demo/build.js").arg(crate::target().join("web/script/"));
    crate::say(command.env("TAPIR_PROGRAM", program()?))?;
    let pictures = crate::target().join("web/pictures");
    let _ = fs::remove_dir_all(&pictures);
    fs::create_dir_all(&pictures)?;
    let mut tests = node_test(&["made", "demo"])?;
    crate::say(tests.env("TAPIR_SCREENSHOTS", std::path::absolute(&pictures)?))?;
    let (picture, shown) = (pictures.join("demo-wide-light.png"), "docs/demo.png");
    if picture.exists() {
        fs::copy(&picture, crate::root().join(shown))?;
        println!("{shown}: taken anew; {} has others", pictures.display());
    } else {
        println!("there is no Chromium here: {shown} is what it was");
    }
    Ok(())
}

/// Measures the package against the native library.
fn bench() -> Result<()> {
    built()?;
    let native = ["build", "--release", "-p", "tapir", "--example", "throughput"];
    crate::say(Command::new("cargo").args(native).current_dir(crate::root()))?;
    let native = crate::target().join("release/examples/throughput");
    crate::say(node().arg("npm/bench/bench.js").env("TAPIR_NATIVE", native))
}

/// The package, or an error if it cannot be built.
fn built() -> Result<()> {
    ensure!(build()?, "the package cannot be built here");
    Ok(())
}

/// Builds the package; false where that is impossible, which is said.
fn build() -> Result<bool> {
    if !has_target(TARGET) {
        return Ok(false);
    }
    let root = crate::root();
    let module = ["build", "-p", "tapir-wasm", "--profile", "wasm", "--target", TARGET];
    crate::say(Command::new("cargo").args(module).current_dir(&root).env("RUSTFLAGS", SIMD))?;
    let module = crate::target().join(TARGET).join("wasm/tapir_wasm.wasm");
    for (kind, folder) in
        [("web", root.join("npm/wasm")), ("script", crate::target().join("web/script"))]
    {
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder)?;
        let mut command = Command::new("cargo");
        // What it makes is small, and it is built apart: it shares nothing with the workspace.
        command.args(["run", "--quiet", "--manifest-path", "npm/bindgen/Cargo.toml"]);
        command.arg("--target-dir").arg(crate::target().join("bindgen"));
        command.arg("--").args([&module, &folder]).arg(kind);
        crate::say(command.current_dir(&root))?;
    }
    let models = root.join("npm/models");
    for name in MODELS {
        let from = root.join("crates/tapir-models/models").join(name);
        copy(&from, &models.join(name))?;
    }
    let vectors = "en_300d.tapirvec";
    fs::copy(root.join("crates/tapir-vectors").join(vectors), models.join(vectors))?;
    for name in LICENSES {
        fs::copy(root.join(name), root.join("npm").join(name))?;
    }
    let module = fs::metadata(root.join("npm/wasm/tapir_wasm_bg.wasm"))?.len();
    println!("npm/wasm/tapir_wasm_bg.wasm: {:.1} kB", module as f64 / 1e3);
    Ok(true)
}

/// The tests of the crate that runs models, compiled with simd128, in Node: its kernels against
/// plain loops, and the recorded outputs of the authors' implementation.
fn kernels() -> Result<()> {
    if !has_target(TEST_TARGET) {
        return Ok(());
    }
    let runner = crate::root().join("npm/test/wasi.js");
    let runner = std::path::absolute(runner)?;
    let runner = format!("node --no-warnings {}", runner.display());
    // Not its other tests, some of which start threads.
    let tests = [&["--lib", "--", "kernels::"][..], &["--test", "parity", "--test", "parity_bert"]];
    for tests in tests {
        let mut command = Command::new("cargo");
        command.args(["test", "-p", "tapir", "--no-default-features", "--features", "store"]);
        command.args(["--target", TEST_TARGET]).args(tests).current_dir(crate::root());
        command.env("RUSTFLAGS", SIMD).env("CARGO_TARGET_WASM32_WASIP1_RUNNER", &runner);
        crate::say(&mut command)?;
    }
    Ok(())
}

fn has_target(target: &str) -> bool {
    let added = crate::add_target(target);
    if !added {
        println!("\n{target} cannot be installed here: nothing is built for it");
    }
    added
}

/// Is there a Node that is new enough? CI's machines get one.
fn install_node() -> bool {
    let version = || {
        let output = Command::new("node").arg("--version").output().ok()?;
        let version = String::from_utf8(output.stdout).ok()?;
        version.trim().strip_prefix('v')?.split('.').next()?.parse::<u32>().ok()
    };
    let is_new = |version: Option<u32>| version.is_some_and(|version| version >= 20);
    if is_new(version()) || (crate::is_ci() && crate::apt_install(&["nodejs"]) && is_new(version()))
    {
        return true;
    }
    println!("\nthere is no Node 20 here: the npm package is not tested");
    false
}

/// The browsers that there are, after CI's machines have got theirs.
fn browsers() -> Vec<&'static str> {
    let mut found = Vec::new();
    for (name, program) in [("Chromium", "chromium"), ("Firefox", "firefox-esr")] {
        if crate::runs(program) || (crate::is_ci() && crate::apt_install(&[program])) {
            found.push(name);
        } else {
            println!("\n{name} cannot be installed here: the npm package is not tested in it");
        }
    }
    found
}

/// The folder of the tools, where they can be had.
fn tools() -> Option<PathBuf> {
    let folder = crate::target().join("web");
    let modules = folder.join("node_modules");
    let is_there = |tool: &str| {
        let (name, version) = tool.split_once('@').unwrap_or((tool, ""));
        let package = fs::read_to_string(modules.join(name).join("package.json"));
        package.is_ok_and(|json| json.contains(&format!("\"version\": \"{version}\"")))
    };
    if !TOOLS.into_iter().all(is_there) {
        println!("\n$ npm install {}", TOOLS.join(" "));
        let mut command = Command::new("npm");
        // Together: what is not named in a call is taken away by it.
        command.args(["install", "--silent", "--no-save"]).args(TOOLS).arg("--prefix").arg(&folder);
        let installed = command.stdin(Stdio::null()).status().is_ok_and(|status| status.success());
        if !installed {
            println!(
                "they cannot be installed here: types are not compiled, and nothing is bundled"
            );
            return None;
        }
    }
    std::path::absolute(modules).ok()
}

/// The native program to compare with; built, with what labels, if there is none.
fn program() -> Result<PathBuf> {
    let program = crate::target().join("debug/tapir");
    if !program.exists() {
        let build = ["build", "-p", "tapir-cli", "--no-default-features", "--features", "data"];
        crate::say(Command::new("cargo").args(build).current_dir(crate::root()))?;
    }
    Ok(std::path::absolute(program)?)
}

/// Runs files of `npm/test`.
fn node_test(names: &[&str]) -> Result<Command> {
    let files = names.iter().map(|name| format!("npm/test/{name}.test.js"));
    let mut command = node();
    command.arg("--test").args(files).env("TAPIR_PROGRAM", program()?);
    Ok(command)
}

fn node() -> Command {
    let mut command = Command::new("node");
    // Node 20 has a WebSocket, by which browsers are driven, only if it is asked for one.
    command.env("NODE_OPTIONS", "--experimental-websocket --no-warnings");
    command.current_dir(crate::root());
    command
}

/// Copies the files of a model and its README, which names the data that it was made of.
fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| from.display().to_string())? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default();
        fs::copy(&path, to.join(name))?;
    }
    Ok(())
}
