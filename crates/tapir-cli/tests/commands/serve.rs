//! `tapir serve` and `tapir bench serve`, as a user runs them.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use assert_cmd::cargo::cargo_bin;
use tapir_load::ServerProcess;

struct Serving(ServerProcess);

impl Serving {
    fn start(flags: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut command = Command::new(cargo_bin("tapir"));
        command.arg("serve").args(flags).envs(environment.iter().copied()).stderr(Stdio::piped());
        Self(ServerProcess::start(command).unwrap())
    }

    fn request(&self, head: &str, body: &str) -> String {
        request(self.0.address, head, body)
    }

    fn signal(&self, signal: &str) {
        let id = self.0.child.id().to_string();
        let status = Command::new("kill").args([signal, &id]).status().unwrap();
        assert!(status.success());
    }

    /// Waits for the end; what was logged.
    fn end(mut self) -> (Option<i32>, String) {
        let child = &mut self.0.child;
        let since = Instant::now();
        while child.try_wait().unwrap().is_none() {
            assert!(since.elapsed() < Duration::from_secs(20), "it does not end");
            std::thread::sleep(Duration::from_millis(20));
        }
        let mut log = String::new();
        child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
        (child.wait().unwrap().code(), log)
    }
}

fn request(address: SocketAddr, head: &str, body: &str) -> String {
    let mut socket = TcpStream::connect(address).unwrap();
    let length = body.len();
    write!(
        socket,
        "{head} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {length}\r\n"
    )
    .unwrap();
    write!(socket, "content-type: application/json\r\n\r\n{body}").unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    answer
}

const TAG: (&str, &str) = ("POST /v1/tag", r#"{"text": "play some jazz by miles davis"}"#);

/// A flag comes before the environment, and both before the file; what none of them says is the
/// default.
#[test]
fn flags_environment_and_file_in_that_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("serve.toml");
    let file =
        "listen = '127.0.0.1:1'\nworkers = 3\nmodels.words = 'embedded:pos'\nlimits.texts = 2\n";
    std::fs::write(&path, file).unwrap();
    let config = path.to_str().unwrap();
    let environment = [("TAPIR_LISTEN", "127.0.0.1:2"), ("TAPIR_CONFIG", config)];
    // Port 1 of the file and 2 of the environment would be refused or wrong: the flag is what
    // counts.
    let serving = Serving::start(&["--listen", "127.0.0.1:0"], &environment);
    assert!(serving.0.address.port() > 2);
    let models = serving.request("GET /v1/models", "");
    assert!(models.contains(r#""name":"words""#) && !models.contains("snips"), "{models}");
    let many = r#"{"inputs": [{"text": "a"}, {"text": "b"}, {"text": "c"}]}"#;
    assert!(serving.request("POST /v1/tag", many).contains("more than 2"));
    drop(serving);
    let environment = [
        ("TAPIR_CONFIG", config),
        ("TAPIR_LISTEN", "127.0.0.1:0"),
        ("TAPIR_MODELS", "embedded:snips"),
    ];
    let serving = Serving::start(&[], &environment);
    assert!(serving.request("GET /v1/models", "").contains(r#""name":"snips""#));
    drop(serving);

    let bad = folder.path().join("bad.toml");
    std::fs::write(&bad, "lisen = '127.0.0.1:1'\n").unwrap();
    let mut command = assert_cmd::Command::new(cargo_bin("tapir"));
    let output =
        command.args(["serve", "--config"]).arg(&bad).assert().failure().get_output().clone();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("bad.toml") && error.contains("lisen"), "{error}");
    let mut command = assert_cmd::Command::new(cargo_bin("tapir"));
    command
        .args(["serve", "--listen", "127.0.0.1:0", "--model", "/nowhere"])
        .assert()
        .failure()
        .stderr(predicates::str::contains("/nowhere"));
}

#[test]
fn it_stops_when_told_and_logs_no_words() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens.txt");
    std::fs::write(&tokens, "0123456789abcdef\n\nfedcba9876543210\n").unwrap();
    let flags =
        ["--listen", "127.0.0.1:0", "--log-json", "--admin-token-file", tokens.to_str().unwrap()];
    let serving = Serving::start(&flags, &[("TAPIR_LOG", "debug")]);
    assert!(serving.request(TAG.0, TAG.1).contains("B-artist"));
    serving.signal("-HUP");
    let since = Instant::now();
    // Read anew, and still there.
    while since.elapsed() < Duration::from_secs(2) {
        assert!(serving.request(TAG.0, TAG.1).contains("B-artist"));
        std::thread::sleep(Duration::from_millis(100));
    }
    serving.signal("-TERM");
    let (code, log) = serving.end();
    assert_eq!(code, Some(0), "{log}");
    for expected in ["listening", "the models were read anew", "stopping", "stopped"] {
        assert!(log.contains(expected), "{expected} in {log}");
    }
    assert!(!log.contains("jazz") && !log.contains("miles"), "words of users in the log: {log}");
    assert!(
        log.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()),
        "{log}"
    );
}

/// Words that are logged are quoted: they cannot end a line and begin one of their own.
#[test]
fn words_cannot_forge_a_line_of_the_log() {
    let serving =
        Serving::start(&["--listen", "127.0.0.1:0", "--log-words"], &[("TAPIR_LOG", "info")]);
    let url = format!("ws://{}/v1/stream", serving.0.address);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let (mut socket, _) = tokio_tungstenite::connect_async(url).await.unwrap();
        // White space between tokens of JSON: the message is valid.
        let forged = "{\"push\":\n2026-11-16T00:00:00Z ERROR forged: \u{1b}[31mx\n\"play\"}";
        for message in [forged, "{\"push\":\r\n\"play\"}"] {
            futures_util::SinkExt::send(&mut socket, message.into()).await.unwrap();
            futures_util::StreamExt::next(&mut socket).await.unwrap().unwrap();
        }
    });
    serving.signal("-TERM");
    let (_, log) = serving.end();
    assert!(log.contains("forged"), "the words are in the log: {log}");
    assert!(!log.contains('\u{1b}'), "an escape sequence in the log: {log}");
    let dated = |line: &str| line.starts_with("20") && line.contains("tapir_serve");
    assert!(log.lines().all(dated), "a line that is not the server's: {log}");
}

/// Killed without mercy, it can be started again at once, on the same port.
#[test]
fn it_comes_back_after_a_kill() {
    let mut serving = Serving::start(&["--listen", "127.0.0.1:0"], &[]);
    for _ in 0..3 {
        let mut open = TcpStream::connect(serving.0.address).unwrap();
        open.write_all(b"POST /v1/tag HTTP/1.1\r\nhost: localhost\r\ncontent-length: 50\r\n\r\n{")
            .unwrap();
        assert!(serving.request(TAG.0, TAG.1).contains("B-artist"));
        serving.signal("-KILL");
        let address = serving.0.address;
        serving.0.child.wait().unwrap();
        assert!(TcpStream::connect(address).is_err());
        serving = Serving::start(&["--listen", &address.to_string()], &[]);
        assert!(serving.request(TAG.0, TAG.1).contains("B-artist"));
    }
}

/// Memory after many sessions is memory before. Two thousand here; `TAPIR_SOAK_SESSIONS` for an
/// hour's worth.
#[test]
fn sessions_leave_nothing_behind() {
    let sessions: usize =
        std::env::var("TAPIR_SOAK_SESSIONS").map_or(2_000, |text| text.parse().unwrap());
    let serving = Serving::start(&["--listen", "127.0.0.1:0", "--requests", "1000000"], &[]);
    let inputs: Vec<_> = (0..100)
        .map(|i| format!(r#"{{"text": "play track {i} by miles davis please"}}"#))
        .collect();
    let body = format!(r#"{{"inputs": [{}]}}"#, inputs.join(","));
    let run = |sessions: usize| {
        for _ in 0..sessions / 100 {
            assert!(serving.request("POST /v1/tag", &body).contains("B-artist"));
        }
    };
    // What grows once, buffers and pools of the allocator, has grown after as many.
    run(sessions);
    let memory = || serving.0.memory().unwrap() as f64;
    let before = memory();
    run(sessions);
    let after = memory();
    println!(
        "{before} bytes before, {after} after {sessions} sessions: {:.3} times",
        after / before
    );
    assert!(after <= 1.05 * before, "{before} bytes before, {after} after");
}

/// The load generator runs against the program itself. Nothing about its figures is asserted:
/// machines differ.
#[test]
fn the_load_generator_measures() {
    let mut command = assert_cmd::Command::new(cargo_bin("tapir"));
    let flags =
        ["bench", "serve", "--streams", "20", "--rate", "2", "--seconds", "2", "--only", "--json"];
    let output = command.args(flags).assert().success().get_output().stdout.clone();
    let report: serde_json::Value = serde_json::from_slice(&output).unwrap();
    assert_eq!((&report["asked"]["errors"], &report["asked"]["streams"]), (&0.into(), &20.into()));
    assert!(
        (35.0..=42.0).contains(&report["asked"]["held"].as_f64().unwrap()),
        "40 words a second were asked for"
    );
    assert!(report["asked"]["first"]["p99"].as_f64().unwrap() > 0.0);
    let mut command = assert_cmd::Command::new(cargo_bin("tapir"));
    command.args(["bench"]).assert().failure();
    let mut command = assert_cmd::Command::new(cargo_bin("tapir"));
    command
        .args(["bench", "serve", "--rate", "0"])
        .assert()
        .failure()
        .stderr(predicates::str::contains("more than 0"));
    let mut command = assert_cmd::Command::new(cargo_bin("tapir"));
    let this = cargo_bin("tapir");
    let flags =
        ["bench", "serve", "--streams", "10", "--seconds", "0.5", "--only", "--json", "--against"];
    let output = command.args(flags).arg(&this).assert().success().get_output().stdout.clone();
    let report: serde_json::Value = serde_json::from_slice(&output).unwrap();
    for turns in ["this", "other"] {
        let turns = report["against"][turns].as_array().unwrap();
        assert_eq!(turns.len(), 3);
        assert!(turns.iter().all(|turn| turn["errors"] == 0));
    }
}

/// A server with its default limits, for some seconds: the well-behaved are served beside every
/// kind of hostile client, and nothing of anybody is left. Nothing about time is asserted.
#[test]
fn the_soak_is_survived() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("soak.json");
    let mut command = assert_cmd::Command::new(cargo_bin("tapir"));
    command
        .args(["bench", "serve", "--soak", "--minutes", "0.1", "--streams", "20", "-o"])
        .arg(&path);
    // It fails if an answer was late, which here it may be.
    let output = command.output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    println!("{printed}{}", String::from_utf8_lossy(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    for name in [
        "errors",
        "gauges left after the last client",
        "kinds that did not attack",
        "well-behaved that were not heard",
    ] {
        let bounds = report["bounds"].as_array().unwrap();
        let bound = bounds.iter().find(|bound| bound["name"] == name).unwrap();
        assert_eq!(bound["passed"], true, "{bound} {}", report["totals"]["error"]);
    }
    assert_eq!(report["hostile"].as_array().unwrap().len(), 13);
    assert!(report["minutes"][0]["memory_max"].as_u64().unwrap() > 0);
    assert!(printed.contains("starver") && printed.contains("six words tagged"), "{printed}");
}
