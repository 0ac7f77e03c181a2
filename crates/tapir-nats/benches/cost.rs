//! What NATS costs: words a second through it, with one, two and three workers, against the server
//! in the same process, all in one run.
//!
//!     cargo bench -p tapir-nats --bench cost -- --seconds 10 --sessions 64 --out cost.json
//!
//! Every session says its next word when the last is answered. Workers have one thread each, and
//! share the cores with the broker and with this program, which speaks for all sessions.

#[path = "../tests/support/mod.rs"]
mod support;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::{SinkExt, StreamExt};
use serde::Serialize;
use support::{MODEL, Nats, cell, utterance, worker};
use tapir::protocol::Request;
use tapir_nats::{Client, Connection, Options, Worker};
use tapir_serve::{Server, Settings};
use tokio_tungstenite::tungstenite::Message;

const SENTENCES: [&str; 4] = [
    "add step to me to the fifty clasicos playlist",
    "what is the weather going to be like in boston tomorrow at noon",
    "book a table for two at a restaurant in new york",
    "play the top twenty songs of nineteen eighty four on spotify",
];

struct Plan {
    seconds: f64,
    sessions: usize,
    nodes: usize,
    out: Option<String>,
}

/// Words that were answered, and how long each took.
#[derive(Clone, Default)]
struct Count {
    words: Arc<AtomicU64>,
    micros: Arc<AtomicU64>,
}

impl Count {
    fn word(&self, since: Instant) {
        self.words.fetch_add(1, Ordering::Relaxed);
        self.micros.fetch_add(since.elapsed().as_micros() as u64, Ordering::Relaxed);
    }
}

fn main() -> ExitCode {
    let mut plan = Plan { seconds: 3.0, sessions: 32, nodes: 1, out: None };
    // `cargo bench` itself says `--bench`.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    for pair in arguments.chunks(2) {
        let number = || pair.get(1).and_then(|value| value.parse::<f64>().ok());
        match (pair[0].as_str(), number(), pair.get(1)) {
            ("--seconds", Some(value), _) => plan.seconds = value,
            ("--sessions", Some(value), _) => plan.sessions = value as usize,
            ("--nodes", Some(value), _) => plan.nodes = value as usize,
            ("--out", _, Some(path)) => plan.out = Some(path.clone()),
            _ => {
                eprintln!("cost: unknown or incomplete: {}", pair.join(" "));
                return ExitCode::FAILURE;
            }
        }
    }
    let Some(nats) = Nats::start(plan.nodes) else { return ExitCode::SUCCESS };
    let runtime = tokio::runtime::Runtime::new().expect("threads");
    runtime.block_on(measure(plan, nats))
}

/// One measurement.
#[derive(Serialize)]
struct Row {
    what: String,
    words_per_second: f64,
    /// From a word to its last answer, on average.
    mean_ms: f64,
    /// Of all nodes of NATS together.
    broker_cpu_ms_per_word: f64,
}

/// What the streams hold of a run.
#[derive(Serialize)]
struct Sizes {
    input_bytes: f64,
    answer_bytes: f64,
    answers_per_message: f64,
}

async fn measure(plan: Plan, nats: Nats) -> ExitCode {
    let (provenance, since) = (support::provenance(), Instant::now());
    let connection = nats.connection().await;
    let mut rows = vec![serve(&plan, 1, &nats).await];
    for count in 1..=3 {
        // A cell of its own each: what one leaves behind is nobody else's.
        rows.push(through_nats(&plan, &connection, count, &nats).await);
    }
    rows.push(serve(&plan, 2, &nats).await);
    let sizes = sizes(&connection).await;
    let stored = broker(&plan, &connection).await;
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!(
        "{} sessions, {} seconds each, {} nodes, {MODEL}, {}; load {}",
        plan.sessions,
        plan.seconds,
        plan.nodes,
        tapir::kernels::isa(),
        load.trim()
    );
    for Row { what, words_per_second, mean_ms, broker_cpu_ms_per_word } in &rows {
        println!(
            "{what:28} {words_per_second:8.0} words a second, {mean_ms:6.2} ms a word (mean), \
             {broker_cpu_ms_per_word:.3} ms of NATS"
        );
    }
    println!("the broker alone: {stored:.0} messages a second, each acknowledged");
    let Some(path) = plan.out else { return ExitCode::SUCCESS };
    let report = serde_json::json!({
        "sessions": plan.sessions, "seconds_each": plan.seconds, "nodes": plan.nodes,
        "model": MODEL, "load": load.trim(), "rows": rows, "sizes": sizes,
        "broker_messages_per_second": stored, "session_bytes_of_ten_words": session_bytes(),
    });
    support::write(&path, provenance, since, report)
}

/// What a session of ten words holds in memory.
fn session_bytes() -> usize {
    let model = tapir::Model::embedded_named(MODEL).expect("a model");
    let mut session = model.session();
    for word in SENTENCES[1].split(' ').take(10) {
        session.push(word).expect("a word");
    }
    session.bytes()
}

/// Mean sizes of what the first cell has kept.
async fn sizes(connection: &Connection) -> Sizes {
    let client = connection.connect("bench").await.expect("NATS");
    let context = async_nats::jetstream::new(client);
    let mut found = Vec::new();
    for name in ["bench-1-in", "bench-1-answers"] {
        let stream = context.get_stream(name).await.expect("a stream");
        let state = &stream.cached_info().state;
        found.push((state.bytes as f64 / (state.messages.max(1)) as f64, state.last_sequence));
    }
    // Of all messages, of which most are words.
    let answers_per_message = found[1].1 as f64 / found[0].1.max(1) as f64;
    Sizes { input_bytes: found[0].0, answer_bytes: found[1].0, answers_per_message }
}

/// Messages a second that a stream of as many replicas keeps, whatever they are.
async fn broker(plan: &Plan, connection: &Connection) -> f64 {
    let client = connection.connect("bench").await.expect("NATS");
    let context = async_nats::jetstream::new(client);
    let config = async_nats::jetstream::stream::Config {
        name: "alone".into(),
        subjects: vec!["alone.*".into()],
        num_replicas: plan.nodes.min(3),
        ..Default::default()
    };
    context.create_stream(config).await.expect("a stream");
    let counted = Count::default();
    let mut tasks = tokio::task::JoinSet::new();
    for index in 0..256 {
        let (context, counted) = (context.clone(), counted.clone());
        tasks.spawn(async move {
            loop {
                let since = Instant::now();
                let payload = vec![b'x'; 300].into();
                let Ok(sent) = context.publish(format!("alone.{index}"), payload).await else {
                    return;
                };
                if sent.await.is_err() {
                    return;
                }
                counted.word(since);
            }
        });
    }
    let (stored, _) = count(plan, &counted).await;
    tasks.shutdown().await;
    stored
}

/// Waits, counts, and gives words a second and milliseconds a word.
async fn count(plan: &Plan, count: &Count) -> (f64, f64) {
    // Until everybody has begun.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let read = || (count.words.load(Ordering::Relaxed), count.micros.load(Ordering::Relaxed));
    let (since, (words, micros)) = (Instant::now(), read());
    tokio::time::sleep(Duration::from_secs_f64(plan.seconds)).await;
    let (more_words, more_micros) = read();
    let words = (more_words - words) as f64;
    let micros = (more_micros - micros) as f64;
    (words / since.elapsed().as_secs_f64(), micros / 1e3 / words.max(1.0))
}

/// The same as a row, with what the nodes of NATS used meanwhile.
async fn count_row(plan: &Plan, what: String, counted: &Count, nats: &Nats) -> Row {
    let used = || nats.nodes.iter().map(support::Node::cpu_seconds).sum::<f64>();
    let (before, words) = (used(), counted.words.load(Ordering::Relaxed));
    let (words_per_second, mean_ms) = count(plan, counted).await;
    let words = counted.words.load(Ordering::Relaxed) - words;
    let broker_cpu_ms_per_word = 1e3 * (used() - before) / words.max(1) as f64;
    Row { what, words_per_second, mean_ms, broker_cpu_ms_per_word }
}

fn script(index: usize) -> Vec<Request> {
    utterance(SENTENCES[index % SENTENCES.len()])
}

/// Through the server, over WebSockets.
async fn serve(plan: &Plan, threads: usize, nats: &Nats) -> Row {
    let mut settings = Settings {
        listen: ([127, 0, 0, 1], 0).into(),
        models: [(MODEL.to_owned(), format!("embedded:{MODEL}"))].into(),
        workers: threads,
        ..Settings::default()
    };
    // One address asks for all.
    settings.limits.messages_per_second = 100_000;
    settings.limits.messages_per_second_per_client = 1_000_000;
    let server = Server::start(settings).await.expect("a server");
    let counted = Count::default();
    let mut tasks = tokio::task::JoinSet::new();
    for index in 0..plan.sessions {
        let (address, counted) = (server.address(), counted.clone());
        tasks.spawn(async move {
            let url = format!("ws://{address}/v1/stream");
            let (mut socket, _) = tokio_tungstenite::connect_async(url).await.expect("a stream");
            loop {
                for message in script(index) {
                    let since = Instant::now();
                    let text = serde_json::to_string(&message).unwrap_or_default();
                    if socket.send(Message::text(text)).await.is_err() {
                        return;
                    }
                    loop {
                        let Some(Ok(Message::Text(answer))) = socket.next().await else { return };
                        if !answer.contains("\"provisional\":true") {
                            break;
                        }
                    }
                    if message.push.is_some() {
                        counted.word(since);
                    }
                }
            }
        });
    }
    let what = format!("server, {threads} threads");
    let row = count_row(plan, what, &counted, nats).await;
    tasks.shutdown().await;
    server.stop().await;
    row
}

/// Through NATS.
async fn through_nats(plan: &Plan, connection: &Connection, workers: usize, nats: &Nats) -> Row {
    let mut cell = cell(plan.nodes.min(3));
    cell.name = format!("bench-{workers}");
    cell.partitions = 12;
    let mut running = Vec::new();
    for _ in 0..workers {
        let started = Worker::start(worker(connection.clone(), cell.clone())).await;
        running.push(started.expect("a worker"));
    }
    while running.iter().map(Worker::partitions).sum::<usize>() < 12
        || running.iter().any(|worker| worker.partitions() != 12 / workers)
    {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let client = Client::connect(connection, &cell.name).await.expect("a client");
    let counted = Count::default();
    let mut tasks = tokio::task::JoinSet::new();
    for index in 0..plan.sessions {
        let (client, counted) = (client.clone(), counted.clone());
        tasks.spawn(async move {
            let name = format!("s-{index}");
            let session = client.session(&name, &Options::default()).await;
            let (mut sender, mut answers) = session.expect("a session");
            loop {
                for message in script(index) {
                    let since = Instant::now();
                    if sender.send(&message).await.is_err() {
                        return;
                    }
                    while answers.next().await.is_ok_and(|answer| !answer.last) {}
                    if message.push.is_some() {
                        counted.word(since);
                    }
                }
            }
        });
    }
    let what = format!("NATS, {workers} workers of 1 thread");
    let row = count_row(plan, what, &counted, nats).await;
    tasks.shutdown().await;
    for worker in running {
        worker.stop().await;
    }
    row
}
