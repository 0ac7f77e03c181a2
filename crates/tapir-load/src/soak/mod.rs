//! The soak: well-behaved clients beside every kind of hostile client, for a bounded time.
//!
//! A server of a program is started with the limits that it has by default. It must answer the
//! well-behaved as if the others were not there, and its memory must not grow.

mod probe;
mod report;
mod watch;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tapir::Model;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use crate::connect::Route;
use crate::hostile::Hostile;
use crate::script::Script;
use crate::speaker::{Shared, Speaker};
use crate::{Error, ServerProcess};

use probe::Probe;
use report::Rows;
pub use report::{Bound, Gauges, Minute, SoakReport, SoakSettings, Totals};
use watch::Watch;

/// What the server is started with: the limits are those that everybody gets.
const ARGUMENTS: [&str; 5] =
    ["serve", "--listen", "127.0.0.1:0", "--model", "embedded:snips-small"];
/// Words a second of a well-behaved stream.
const RATE: f64 = 3.0;
/// Addresses that the well-behaved streams come from.
const ADDRESSES: usize = 10;
/// How long the server has to forget all clients after they have gone.
const SETTLE: Duration = Duration::from_mins(1);
/// A well-behaved client that was turned away comes back after so long.
const COME_BACK: Duration = Duration::from_secs(1);

/// What is run.
#[derive(Clone, Debug)]
pub struct Soak {
    /// The program whose server is tried.
    pub program: PathBuf,
    /// For how long; a fraction is fine.
    pub minutes: f64,
    /// Well-behaved streams.
    pub streams: usize,
    /// What they say.
    pub sentences: Arc<Vec<Vec<String>>>,
}

/// What the well-behaved saw, by what they did.
#[derive(Clone, Default)]
struct WellBehaved {
    streams: Shared,
    /// Whole texts over a connection that stays open.
    kept: Shared,
    /// Whole texts over a connection each.
    fresh: Shared,
    /// Metrics.
    watch: Shared,
    /// How late the generator itself woke up: what it adds to every latency.
    late: Shared,
}

impl Soak {
    /// Runs for its time, and tells of every minute when it is over.
    pub fn run(&self, on_minute: impl FnMut(&Minute)) -> Result<SoakReport, Error> {
        let model = Model::embedded_named("snips-small")?;
        let script = Arc::new(Script::with_labels(&model, &self.sentences)?);
        let probe = Probe::new(&model)?;
        drop(model);
        let mut command = Command::new(&self.program);
        command.args(ARGUMENTS);
        // Settings of whoever runs the soak are not the defaults.
        let ours = |name: &std::ffi::OsStr| name.as_encoded_bytes().starts_with(b"TAPIR_");
        for (name, _) in std::env::vars_os().filter(|(name, _)| ours(name)) {
            command.env_remove(name);
        }
        command.env("TAPIR_LOG", "warn");
        let mut server = ServerProcess::start(command)?;
        // One thread: the generator shares the machine with the server, and is to take little.
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime =
            runtime.enable_all().build().map_err(|error| Error::Generator(error.to_string()))?;
        Ok(runtime.block_on(self.soak(&mut server, &script, &probe, on_minute)))
    }

    async fn soak(
        &self,
        server: &mut ServerProcess,
        script: &Arc<Script>,
        probe: &Probe,
        mut on_minute: impl FnMut(&Minute),
    ) -> SoakReport {
        let started = SystemTime::now();
        let start = Instant::now();
        let until = start + Duration::from_secs_f64(60.0 * self.minutes);
        let seen = WellBehaved::default();
        let watch = Watch::new(server.address);
        let mut well_behaved = JoinSet::new();
        for index in 0..self.streams {
            let seen = seen.streams.clone();
            let stream = self.stream(server.address, index, script.clone(), seen, start, until);
            well_behaved.spawn(stream);
        }
        let address = server.address;
        well_behaved.spawn(probe.clone().run(address, true, seen.kept.clone(), until));
        well_behaved.spawn(probe.clone().run(address, false, seen.fresh.clone(), until));
        well_behaved.spawn(watch.clone().run(seen.watch.clone(), until));
        well_behaved.spawn(watch::lateness(seen.late.clone(), until));
        let hostile = Hostile::start(address);

        let mut rows = Rows::default();
        let mut seconds = interval(Duration::from_secs(1));
        seconds.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut minute = start + Duration::from_mins(1);
        loop {
            tokio::select! {
                _ = seconds.tick() => {
                    if let Some(bytes) = server.memory() {
                        rows.memory(start.elapsed().as_secs_f64(), bytes);
                    }
                    if let Ok(Some(status)) = server.child.try_wait() {
                        seen.streams.note(|seen| seen.fail(format!("the server ended: {status}")));
                        break;
                    }
                    // The last minute is told of when its words have been answered.
                    if Instant::now() >= minute && minute < until {
                        on_minute(rows.minute(&seen, watch.take()));
                        minute += Duration::from_mins(1);
                    }
                }
                joined = well_behaved.join_next() => match joined {
                    None => break,
                    Some(Ok(())) => {}
                    Some(Err(error)) => seen.streams.note(|seen| seen.fail(error.to_string())),
                },
            }
        }
        on_minute(rows.minute(&seen, watch.take()));
        let attacked = hostile.attacked();
        hostile.end().await;
        well_behaved.shutdown().await;
        let (gauges, settled) = settle(&watch).await;
        let settings = SoakSettings {
            arguments: ARGUMENTS.iter().map(ToString::to_string).collect(),
            minutes: self.minutes,
            streams: self.streams,
            words_per_second: RATE,
            tags_per_second: 2.0 * probe::RATE,
        };
        rows.report(settings, started, start.elapsed(), attacked, gauges, settled)
    }

    /// A well-behaved stream, which comes back if it is lost.
    fn stream(
        &self,
        to: SocketAddr,
        index: usize,
        script: Arc<Script>,
        seen: Shared,
        start: Instant,
        until: Instant,
    ) -> impl Future<Output = ()> + Send + use<> {
        let route = Route::local(to, 1, index % ADDRESSES);
        let interval = Duration::from_secs_f64(1.0 / RATE);
        // Streams do not speak in step.
        let mut due = start + interval.mul_f64(index as f64 / self.streams as f64);
        async move {
            while Instant::now() < until {
                let connected = route.websocket("").await;
                match connected {
                    Ok(socket) => {
                        let (script, seen) = (script.clone(), seen.clone());
                        let at = (index % script.sentences.len(), 0);
                        let interval = Some(interval);
                        let speaker = Speaker { script, at, interval, from: start, until, seen };
                        if speaker.speak(socket, due.max(Instant::now())).await {
                            return;
                        }
                    }
                    Err(error) => seen.note(|seen| seen.fail(format!("cannot connect: {error}"))),
                }
                sleep(COME_BACK).await;
                due = Instant::now();
            }
        }
    }
}

/// Waits until the server has forgotten its clients; how long that took, if it did.
async fn settle(watch: &Watch) -> (Option<Gauges>, Option<f64>) {
    let since = Instant::now();
    let mut last = None;
    while since.elapsed() < SETTLE {
        last = watch.read().await.ok();
        if last == Some(Gauges::default()) {
            return (last, Some(since.elapsed().as_secs_f64()));
        }
        sleep(Duration::from_millis(500)).await;
    }
    (last, None)
}
