//! The Python package: built as a wheel, installed in an environment of its own, and tested there
//! by pytest and mypy. Its docstrings are among the tests.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::JoinHandle;

use anyhow::{Context, Result, ensure};

/// Installed without what it asks for: a sound card's library, which its text modules do not need
/// and which the tests stand in for.
const RETICO: &str = "retico-core==2.0.1";

/// What could be installed.
#[derive(Clone, Copy, Default)]
pub(crate) struct Installed {
    /// What the tests need.
    needs: bool,
    /// Ray, Spark, Pipecat, LiveKit and two recognisers.
    frameworks: bool,
}

/// Installs what the tests need, 2 GB of it, while something else goes on: most of the time it waits
/// for a registry.
pub(crate) fn install() -> JoinHandle<Installed> {
    std::thread::spawn(|| {
        let environment = Environment::new();
        let needs = [&["-r", "requirements-test.txt"][..], &["--no-deps", RETICO]];
        let needs = needs.into_iter().all(|what| environment.install(what));
        // What the others are pinned to, they stay.
        let all = ["-c", "requirements-test.txt", "-r", "requirements-heavy.txt"];
        let frameworks = needs && environment.install(&all);
        Installed { needs, frameworks }
    })
}

/// Needs Python with `venv` and PyPI; without them the package is not tested, and that is said. So
/// are the frameworks, by tests marked `heavy`.
pub(crate) fn test(Installed { needs, frameworks }: Installed) -> Result<()> {
    if !needs {
        println!("its needs cannot be installed here: the Python package is not tested");
        return Ok(());
    }
    let environment = Environment::new();
    let wheel = environment.build()?;
    let wheel = wheel.to_str().context("a path that is no text")?;
    let wheel = ["--force-reinstall", "--no-deps", wheel];
    ensure!(environment.install(&wheel), "the wheel is wrong");
    environment.check("pytest", &["-m", "not heavy"])?;
    environment.check("mypy", &[])?;
    environment.check("stubtest", &["tapir._tapir", "--mypy-config-file", "pyproject.toml"])?;
    if !frameworks {
        println!("frameworks cannot be installed here: their tests are left out");
        return Ok(());
    }
    let speaks = Path::new("/usr/bin/flite").exists();
    if !speaks && crate::is_ci() && !crate::apt_install(&["flite"]) {
        println!("flite cannot be installed here: nothing is spoken");
    }
    environment.check("pytest", &["-m", "heavy and not cluster"])?;
    println!(
        "a cluster of Ray of which a node is killed is left out: `cargo xtask cluster` has it"
    );
    Ok(())
}

/// A node of a Ray cluster that is killed in the midst of work. Ray takes its time to start one, on
/// two cores sometimes minutes, so that this is not among the other tests. The package must have
/// been tested by [`test()`] before.
pub(crate) fn test_cluster(installed: Installed) -> Result<()> {
    ensure!(installed.frameworks, "Ray cannot be installed here");
    Environment::new().check("pytest", &["-m", "cluster"])
}

/// A virtual environment in the target folder. A checkout that is new makes it anew.
struct Environment {
    folder: PathBuf,
}

impl Environment {
    fn new() -> Self {
        Self { folder: crate::root().join("target/python") }
    }

    fn program(&self, name: &str) -> PathBuf {
        self.folder.join("bin").join(name)
    }

    /// In the folder of the package, where all paths begin.
    fn run(program: impl AsRef<Path>, arguments: &[&str]) -> bool {
        let name = program.as_ref().file_name().unwrap_or_default().to_string_lossy().into_owned();
        println!("\n$ {name} {}", arguments.join(" "));
        let mut command = Command::new(program.as_ref());
        command.args(arguments).current_dir(crate::root().join("python")).stdin(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    }

    fn install(&self, what: &[&str]) -> bool {
        let pip = self.program("pip");
        let folder = self.folder.to_string_lossy();
        (pip.exists() || Self::run("python3", &["-m", "venv", &folder]))
            // Not compiled ahead: of large packages most modules are never imported.
            && Self::run(pip, &[&["install", "-q", "--no-compile"], what].concat())
    }

    /// Builds the wheel, by the profile of the other tests, so that what they have built is used.
    fn build(&self) -> Result<PathBuf> {
        let wheels = self.folder.join("wheels");
        let _ = std::fs::remove_dir_all(&wheels);
        let folder = wheels.to_string_lossy();
        let arguments = ["build", "--quiet", "--profile", "dev", "--out", &folder];
        ensure!(Self::run(self.program("maturin"), &arguments), "the wheel cannot be built");
        let mut found = crate::files(&wheels)?;
        ensure!(found.len() == 1, "expected one wheel in {folder}");
        Ok(found.remove(0))
    }

    fn check(&self, name: &str, arguments: &[&str]) -> Result<()> {
        let passed = Self::run(self.program(name), arguments);
        ensure!(passed, "the Python package: {name} {} failed", arguments.join(" "));
        Ok(())
    }
}
