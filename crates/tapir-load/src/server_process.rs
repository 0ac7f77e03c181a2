//! A server as a process of its own.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use crate::Error;

/// A server of a program, killed with the value.
///
/// ```no_run
/// let mut command = std::process::Command::new("tapir");
/// command.args(["serve", "--listen", "127.0.0.1:0"]);
/// let server = tapir_load::ServerProcess::start(command)?;
/// println!("{} at {}", server.child.id(), server.address);
/// # Ok::<(), tapir_load::Error>(())
/// ```
#[derive(Debug)]
pub struct ServerProcess {
    /// The process.
    pub child: Child,
    /// Where it listens.
    pub address: SocketAddr,
}

impl ServerProcess {
    /// Runs a command that starts a server, and waits for its first line, `listening on
    /// http://ADDRESS`. Tell it to listen on port 0, so that it takes a free one.
    pub fn start(mut command: Command) -> Result<Self, Error> {
        let program = PathBuf::from(command.get_program());
        let failed = |cause| Error::Start { program: program.clone(), cause };
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().map_err(failed)?;
        let mut line = String::new();
        if let Some(output) = child.stdout.take() {
            // Without a line the address below is missing, which is said there.
            let _ = BufReader::new(output).read_line(&mut line);
        }
        let url = line.trim().strip_prefix("listening on ");
        let address = url.and_then(|url| url.split_once("://")?.1.parse().ok());
        let Some(address) = address else {
            let _ = child.kill();
            let _ = child.wait();
            return Err(Error::NoServer { program, line });
        };
        Ok(Self { child, address })
    }

    /// Bytes that it has in memory; none where the system does not tell, or if it has ended.
    pub fn memory(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(kilobytes << 10)
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
