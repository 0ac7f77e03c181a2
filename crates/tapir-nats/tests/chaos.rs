//! Workers, nodes and leaders are killed (`kill -9`) while sessions talk; every answer must come,
//! in order, once, and equal to the library's to the bit.
//!
//!     cargo test -p tapir-nats --test chaos                      # a few seconds, as CI does
//!     cargo test -p tapir-nats --release --test chaos -- \
//!         --seconds 600 --sessions 500 --out chaos.json          # the long one
//!
//! A program rather than a test of the harness, for it starts itself as the workers that it kills.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_nats::jetstream;
use support::{MODEL, Nats, expected, utterance};
use tapir::Model;
use tapir::protocol::{Request, Response};
use tapir_nats::lease::Lease;
use tapir_nats::{CellSettings, Client, Connection, Options, Worker};
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// Longer than any election and any restart.
const PATIENCE: Duration = Duration::from_mins(2);

const SENTENCES: [&str; 8] = [
    "add step to me to the fifty clasicos playlist",
    "what's the weather going to be like in boston tomorrow at noon",
    "book a table for two at a restaurant in new york",
    "play some jazz by miles davis please",
    "rate the current novel four out of six stars",
    "find the schedule of movies at the nearest cinema",
    "will it snow in the north of texas next friday",
    "play the top twenty songs of nineteen eighty four on spotify",
];

/// How long, how many, how fast.
#[derive(Clone)]
struct Plan {
    seconds: u64,
    sessions: usize,
    workers: usize,
    nodes: usize,
    partitions: u32,
    /// Words a second of a session.
    rate: f64,
    /// The longest pause between two faults.
    pause: f64,
    lease: f64,
    seed: u64,
    /// Which kinds of faults.
    faults: Vec<String>,
    out: Option<String>,
}

impl Plan {
    fn read(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut plan = Self {
            seconds: 5,
            sessions: 24,
            workers: 3,
            nodes: 3,
            partitions: 12,
            rate: 3.0,
            pause: 3.0,
            lease: 2.0,
            seed: 1,
            faults: ["worker", "node", "leader"].map(String::from).to_vec(),
            out: None,
        };
        while let Some(flag) = arguments.next() {
            // `cargo test NAME` asks for tests of that name, of which there are none here.
            if !flag.starts_with("--") {
                return Err(String::new());
            }
            let value = arguments.next().ok_or_else(|| format!("{flag} needs a value"))?;
            let wrong = |error: &dyn std::fmt::Display| format!("{flag} {value}: {error}");
            macro_rules! parse {
                () => {
                    value.parse().map_err(|error| wrong(&error))?
                };
            }
            match flag.as_str() {
                "--seconds" => plan.seconds = parse!(),
                "--sessions" => plan.sessions = parse!(),
                "--workers" => plan.workers = parse!(),
                "--nodes" => plan.nodes = parse!(),
                "--partitions" => plan.partitions = parse!(),
                "--rate" => plan.rate = parse!(),
                "--pause" => plan.pause = parse!(),
                "--lease" => plan.lease = parse!(),
                "--seed" => plan.seed = parse!(),
                "--faults" => plan.faults = value.split(',').map(str::to_owned).collect(),
                "--out" => plan.out = Some(value),
                _ => return Err(format!("unknown flag {flag}")),
            }
        }
        Ok(plan)
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let runtime = tokio::runtime::Runtime::new().expect("threads");
    if let [kind, url, partitions, replicas, lease, name] = &arguments[..]
        && kind == "worker"
    {
        let cell = CellSettings {
            partitions: partitions.parse().expect("a number"),
            ..support::cell(replicas.parse().expect("a number"))
        };
        let mut settings = support::worker(Connection::new(url.as_str()), cell);
        settings.lease = Duration::from_secs_f64(lease.parse().expect("seconds"));
        settings.name = Some(name.clone());
        runtime.block_on(serve(settings));
        return ExitCode::SUCCESS;
    }
    let plan = match Plan::read(arguments.into_iter()) {
        Ok(plan) => plan,
        Err(error) if error.is_empty() => return ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("chaos: {error}");
            return ExitCode::FAILURE;
        }
    };
    let Some(nats) = Nats::start(plan.nodes) else { return ExitCode::SUCCESS };
    runtime.block_on(run(plan, nats))
}

/// A worker, until it is killed, or until whoever started it has gone.
async fn serve(settings: tapir_nats::WorkerSettings) {
    let worker = Worker::start(settings).await.expect("a worker");
    let (_, ended) = (worker, tokio::task::spawn_blocking(|| std::io::stdin().lines().next()));
    let _ = ended.await;
}

/// A worker process and its name; dropping it kills it.
struct Process(Child, String);

impl Process {
    fn start(url: &str, plan: &Plan) -> Self {
        static STARTED: AtomicUsize = AtomicUsize::new(0);
        let name = format!("w{}", STARTED.fetch_add(1, Ordering::Relaxed));
        let program = std::env::current_exe().expect("this program");
        let child = Command::new(program)
            .args(["worker", url, &plan.partitions.to_string()])
            .args([plan.nodes.min(3).to_string(), plan.lease.to_string(), name.clone()])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn();
        Self(child.expect("a worker starts"), name)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Something that was killed.
struct Fault {
    at: Instant,
    kind: &'static str,
    /// The partitions that a worker served; none for a node, which concerns all.
    partitions: Option<BTreeSet<u32>>,
    longest: f64,
}

impl Fault {
    fn concerns(&self, session: &str, partitions: u32) -> bool {
        let own = self.partitions.as_ref();
        own.is_none_or(|own| own.contains(&partition(session, partitions)))
    }
}

/// The partition of a session, as the broker computes it: FNV-1a of its name.
fn partition(session: &str, partitions: u32) -> u32 {
    let hash = session
        .bytes()
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    hash % partitions
}

/// What all sessions report to.
#[derive(Default)]
struct Report {
    faults: Vec<Fault>,
    /// By kind of fault: how long the first answer after it took of each session that it concerns,
    /// counted from the death, or from the message if that came later.
    waits: BTreeMap<&'static str, Vec<f64>>,
    messages: usize,
    answers: usize,
    utterances: usize,
    errors: Vec<String>,
}

/// The messages of an utterance, and all answers to each.
type Script = (Vec<Request>, Vec<Vec<Response>>);

type Shared = Arc<Mutex<Report>>;

fn lock(report: &Shared) -> std::sync::MutexGuard<'_, Report> {
    report.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn run(plan: Plan, mut nats: Nats) -> ExitCode {
    let since = std::time::Instant::now();
    let connection = nats.connection().await;
    let url = nats.url();
    let mut workers: Vec<Option<Process>> =
        (0..plan.workers).map(|_| Some(Process::start(&url, &plan))).collect();
    let report = Shared::default();
    let client = connect(&connection).await;
    let model = Model::embedded_named(MODEL).expect("a model");
    let scripts: Arc<Vec<Script>> = Arc::new(
        SENTENCES
            .iter()
            .map(|text| {
                let messages = utterance(text);
                let answers = expected(&model, &Options::default(), &messages);
                (messages, answers)
            })
            .collect(),
    );
    let over = Arc::new(AtomicBool::new(false));
    let sessions: Vec<_> = (0..plan.sessions)
        .map(|index| {
            let (client, scripts, report) = (client.clone(), scripts.clone(), report.clone());
            let (plan, over) = (plan.clone(), over.clone());
            tokio::spawn(async move {
                let failed = speak(&client, index, &plan, &scripts, &over, &report).await.err();
                lock(&report).errors.extend(failed);
            })
        })
        .collect();
    faults(&plan, &mut nats, &mut workers, &connection, &report).await;
    over.store(true, Ordering::Relaxed);
    for session in sessions {
        let _ = timeout(2 * PATIENCE, session).await;
    }
    drop(workers);
    let report = lock(&report);
    print(&plan, &report, since)
}

async fn connect(connection: &Connection) -> Client {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match Client::connect(connection, "tapir").await {
            Ok(client) => return client,
            Err(error) if Instant::now() > deadline => panic!("no cell: {error}"),
            Err(_) => sleep(Duration::from_millis(200)).await,
        }
    }
}

/// Random numbers, the same for the same seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    fn below(&mut self, count: usize) -> usize {
        (self.next() % count.max(1) as u64) as usize
    }

    /// Up to so many seconds.
    fn seconds(&mut self, most: f64) -> Duration {
        Duration::from_secs_f64(most * (self.next() >> 11) as f64 / (1u64 << 53) as f64)
    }
}

/// One session: utterance after utterance, a word when it is due and the one before is answered.
async fn speak(
    client: &Client,
    index: usize,
    plan: &Plan,
    scripts: &[Script],
    over: &AtomicBool,
    report: &Shared,
) -> Result<(), String> {
    let name = format!("chaos-{index}");
    let failed = |what: &str, error: &dyn std::fmt::Display| format!("{name}: {what}: {error}");
    let mut random = Random(plan.seed ^ (index as u64) << 20);
    let opened = client.session(&name, &Options::default()).await;
    let (mut sender, mut answers) = opened.map_err(|error| failed("open", &error))?;
    let interval = Duration::from_secs_f64(1.0 / plan.rate);
    let mut due = Instant::now() + random.seconds(1.0 / plan.rate);
    let mut faults_seen = 0;
    while !over.load(Ordering::Relaxed) {
        let (messages, library) = &scripts[random.below(scripts.len())];
        for (message, expected) in messages.iter().zip(library) {
            sleep_until(due).await;
            due = due.max(Instant::now() - interval) + interval;
            let sent = Instant::now();
            let input = sender.send(message).await.map_err(|error| failed("send", &error))?;
            lock(report).messages += 1;
            for expected in expected {
                let answer = timeout(PATIENCE, answers.next()).await;
                let answer = answer.map_err(|_| failed("no answer to", &input))?;
                let answer = answer.map_err(|error| failed("answer", &error))?;
                if answer.input != input {
                    return Err(failed("out of order, or twice", &answer.input));
                }
                if answer.response != *expected {
                    let difference = format!("{:?} is not {expected:?}", answer.response);
                    return Err(failed("another answer", &difference));
                }
                let now = Instant::now();
                let mut report = lock(report);
                report.answers += 1;
                if answer.last {
                    let Report { faults, waits, .. } = &mut *report;
                    for fault in &mut faults[faults_seen..] {
                        faults_seen += 1;
                        if fault.concerns(&name, plan.partitions) {
                            let since = fault.at.max(sent);
                            let wait = now.saturating_duration_since(since).as_secs_f64();
                            waits.entry(fault.kind).or_default().push(wait);
                            fault.longest = fault.longest.max(wait);
                        }
                    }
                }
            }
        }
        lock(report).utterances += 1;
    }
    Ok(())
}

/// Kills, and starts again what was killed, until the time is over. A majority of the nodes stays.
async fn faults(
    plan: &Plan,
    nats: &mut Nats,
    workers: &mut [Option<Process>],
    connection: &Connection,
    report: &Shared,
) {
    let end = Instant::now() + Duration::from_secs(plan.seconds);
    let mut random = Random(plan.seed);
    let url = nats.url();
    // Until the first partitions are served there is nobody to kill.
    let deadline = Instant::now() + PATIENCE;
    while lock(report).answers < plan.sessions && Instant::now() < deadline {
        sleep(Duration::from_millis(50)).await;
    }
    let note = |kind, partitions| {
        let fault = Fault { at: Instant::now(), kind, partitions, longest: 0.0 };
        lock(report).faults.push(fault);
    };
    // Each kind once, however short the time, and then at random.
    let mut count = 0;
    while count < plan.faults.len() || Instant::now() < end {
        let random_kind = random.below(plan.faults.len());
        let kind = plan.faults.get(count).unwrap_or(&plan.faults[random_kind]).as_str();
        count += 1;
        let (node, down) = match kind {
            "worker" => {
                let index = random.below(workers.len());
                let name = workers[index].as_ref().map(|worker| worker.1.clone());
                let served = served(connection, plan, &name.unwrap_or_default()).await;
                note("worker", Some(served));
                workers[index] = None;
                sleep(random.seconds(plan.pause)).await;
                workers[index] = Some(Process::start(&url, plan));
                (None, Duration::ZERO)
            }
            "node" => (Some(random.below(nats.nodes.len())), random.seconds(plan.pause)),
            _ => (leader(connection).await, random.seconds(plan.pause)),
        };
        if let Some(node) = node {
            note(if kind == "node" { "node" } else { "leader" }, None);
            nats.nodes[node].kill();
            sleep(down).await;
            nats.nodes[node].start();
            settled(connection, plan).await;
        }
        sleep(random.seconds(plan.pause)).await;
    }
}

/// The partitions that a worker serves.
async fn served(connection: &Connection, plan: &Plan, worker: &str) -> BTreeSet<u32> {
    let mut served = BTreeSet::new();
    let Ok(client) = connection.connect("chaos").await else { return served };
    let Ok(bucket) = jetstream::new(client).get_key_value("tapir-cell").await else {
        return served;
    };
    for partition in 0..plan.partitions {
        let line = bucket.get(format!("partition.{partition}")).await.ok().flatten();
        let lease = line.and_then(|line| serde_json::from_slice::<Lease>(&line).ok());
        if lease.and_then(|lease| lease.worker).as_deref() == Some(worker) {
            served.insert(partition);
        }
    }
    served
}

/// The node that leads the stream of inputs.
async fn leader(connection: &Connection) -> Option<usize> {
    let client = connection.connect("chaos").await.ok()?;
    let stream = jetstream::new(client).get_stream("tapir-in").await.ok()?;
    let cluster = stream.cached_info().cluster.as_ref();
    let name = cluster.and_then(|cluster| cluster.leader.clone())?;
    name.strip_prefix("node")?.parse().ok()
}

/// Waits until every replica of every stream is up to date: another death could take a majority
/// otherwise, which no system survives without a pause.
async fn settled(connection: &Connection, plan: &Plan) {
    let deadline = Instant::now() + PATIENCE;
    let streams: BTreeSet<&str> = ["tapir-in", "tapir-answers", "KV_tapir-cell"].into();
    while Instant::now() < deadline {
        if let Ok(client) = connection.connect("chaos").await {
            let context = jetstream::new(client);
            let mut current = 0;
            for name in &streams {
                let Ok(stream) = context.get_stream(*name).await else { continue };
                let cluster = stream.cached_info().cluster.clone().unwrap_or_default();
                let replicas = cluster.replicas.iter().filter(|replica| replica.current).count();
                let is_led = cluster.leader.is_some();
                current += usize::from(is_led && replicas + 1 >= plan.nodes.min(3));
            }
            if current == streams.len() || plan.nodes == 1 {
                return;
            }
        }
        sleep(Duration::from_millis(200)).await;
    }
}

fn print(plan: &Plan, report: &Report, since: std::time::Instant) -> ExitCode {
    let provenance = support::provenance();
    let Report { faults, waits, messages, answers, utterances, errors } = report;
    println!(
        "{} workers, {} nodes, {} sessions at {} words a second, {} seconds, {MODEL}, {}",
        plan.workers,
        plan.nodes,
        plan.sessions,
        plan.rate,
        plan.seconds,
        tapir::kernels::isa(),
    );
    println!("{messages} messages, {answers} answers, {utterances} utterances");
    let mut kinds = serde_json::Map::new();
    for (kind, waits) in waits {
        let mut waits = waits.clone();
        waits.sort_by(f64::total_cmp);
        let at = |share: f64| waits[((waits.len() - 1) as f64 * share).round() as usize];
        let count = faults.iter().filter(|fault| fault.kind == *kind).count();
        println!(
            "{count:4} × {kind:6} died: the next answer of a session after {:.3} s (median), {:.3} s \
             (99 %), {:.3} s (longest)",
            at(0.5),
            at(0.99),
            at(1.0)
        );
        kinds.insert(
            (*kind).to_owned(),
            serde_json::json!({ "faults": count, "median": at(0.5), "p99": at(0.99), "longest": at(1.0) }),
        );
    }
    println!("{} faults survived, {} errors", faults.len(), errors.len());
    if std::env::var_os("TAPIR_CHAOS_FAULTS").is_some() {
        for Fault { kind, longest, partitions, .. } in faults {
            println!("  {kind} {partitions:?}: {longest:.3} s");
        }
    }
    errors.iter().take(10).for_each(|error| println!("  {error}"));
    if let Some(path) = &plan.out {
        let report = serde_json::json!({
            "workers": plan.workers, "nodes": plan.nodes, "sessions": plan.sessions,
            "words_per_second_per_session": plan.rate, "seconds": plan.seconds,
            "partitions": plan.partitions, "lease_seconds": plan.lease, "seed": plan.seed,
            "model": MODEL, "messages": messages, "answers": answers, "utterances": utterances,
            "faults_survived": faults.len(), "faults": kinds, "errors": errors,
        });
        support::write(path, provenance, since, report);
    }
    let all = errors.is_empty() && *answers >= *messages && *utterances >= plan.sessions;
    if all { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
