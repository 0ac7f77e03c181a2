//! The HTTP interface, tried by schemathesis: requests made from its own description, right ones
//! and wrong ones.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

/// Pinned, so that what it tries does not change under us.
const SCHEMATHESIS: &str = "schemathesis==4.32.5";

/// For all that is guarded.
const TOKEN: &str = "schemathesis-0123456789";

/// Needs Python with `venv`; without it the interface is not tried, and that is said.
pub(crate) fn test() -> Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/schemathesis");
    let program = folder.join("bin/schemathesis");
    if !program.exists() {
        println!("\n$ pip install {SCHEMATHESIS}");
        let installed = run(Command::new("python3").args(["-m", "venv"]).arg(&folder))
            && run(Command::new(folder.join("bin/pip")).args(["install", "-q", SCHEMATHESIS]));
        if !installed {
            println!("schemathesis cannot be installed here: the HTTP interface is not tried");
            return Ok(());
        }
    }
    let server = Serving::start()?;
    println!("\n$ schemathesis run {}/openapi.json", server.url);
    let arguments = "run --checks all --max-examples 1000 --seed 1 --generation-database none --output-sanitize false \
                     --no-color --warnings off";
    let mut command = Command::new(program);
    // What is behind /v1/stream is a WebSocket, which OpenAPI cannot describe.
    command.args(arguments.split(' ')).args(["--exclude-path", "/v1/stream"]);
    command
        .args(["-H", &format!("Authorization: Bearer {TOKEN}")])
        .arg(format!("{}/openapi.json", server.url));
    let tried = run(&mut command);
    ensure!(tried, "the HTTP interface is not as it is described");
    Ok(())
}

fn run(command: &mut Command) -> bool {
    command.stdin(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// The program that the tests built.
struct Serving {
    child: Child,
    url: String,
}

impl Serving {
    fn start() -> Result<Self> {
        // Beside this program, where the tests have just built it.
        let program = std::env::current_exe()?.with_file_name("tapir");
        // With tokens, so that refusing those without is tried, too.
        let tokens = std::env::temp_dir().join(format!("tapir-xtask-{}", std::process::id()));
        std::fs::write(&tokens, TOKEN).with_context(|| tokens.display().to_string())?;
        let mut command = Command::new(&program);
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--requests", "1000000"])
            .env("TAPIR_LOG", "warn");
        command.arg("--token-file").arg(&tokens).arg("--admin-token-file").arg(&tokens);
        let mut child = command
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("no output")?).read_line(&mut line)?;
        let _ = std::fs::remove_file(&tokens);
        match line.trim().strip_prefix("listening on ") {
            Some(url) => Ok(Self { url: url.to_owned(), child }),
            None => bail!("the server did not start; it said {line:?}"),
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
