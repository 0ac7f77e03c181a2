//! Partition moves and recoveries at a thousand workers, simulated: the rule is the real one
//! (`tapir_nats::lease`), time and the broker are not.
//!
//!     cargo run --release -p tapir-nats --example simulate -- --words-per-second 3000
//!
//! `--words-per-second` is what one core computes, from your own measurement: there is no default.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::process::ExitCode;
use std::time::Duration;

use tapir_nats::lease::{Action, Beat, Lease, Line, Table, Witness};

/// What is simulated.
struct Plan {
    cells: usize,
    /// Workers of a cell.
    workers: usize,
    /// Partitions of a cell.
    partitions: u32,
    /// Sessions of all cells.
    sessions: f64,
    /// Words of a session that a recovery reads again, on average.
    words: f64,
    /// Words that one core computes in a second.
    words_per_second: f64,
    /// Cores of a worker.
    cores: f64,
    lease: f64,
    minutes: f64,
    /// Deaths of a worker in an hour, on average.
    deaths_per_hour: f64,
    seed: u64,
}

impl Plan {
    fn read(arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut plan = Self {
            cells: 50,
            workers: 20,
            partitions: 64,
            sessions: 1e6,
            words: 10.0,
            words_per_second: f64::NAN,
            cores: 1.0,
            lease: 2.0,
            minutes: 10.0,
            deaths_per_hour: 6.0,
            seed: 1,
        };
        let arguments: Vec<String> = arguments.collect();
        for pair in arguments.chunks(2) {
            let [flag, value] = pair else { return Err(format!("{} needs a value", pair[0])) };
            let value: f64 = value.parse().map_err(|error| format!("{flag} {value}: {error}"))?;
            match flag.as_str() {
                "--cells" => plan.cells = value as usize,
                "--workers" => plan.workers = value as usize,
                "--partitions" => plan.partitions = value as u32,
                "--sessions" => plan.sessions = value,
                "--words" => plan.words = value,
                "--words-per-second" => plan.words_per_second = value,
                "--cores" => plan.cores = value,
                "--lease" => plan.lease = value,
                "--minutes" => plan.minutes = value,
                "--deaths-per-hour" => plan.deaths_per_hour = value,
                "--seed" => plan.seed = value as u64,
                _ => return Err(format!("unknown flag {flag}")),
            }
        }
        if plan.words_per_second.is_nan() {
            return Err("--words-per-second is missing: what one core computes, as measured".into());
        }
        Ok(plan)
    }
}

/// What happens in a cell, at a time in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Beat(usize),
    Death(usize),
    Birth(usize),
    /// The answers in hand are stored: the worker says that it has given the partition up.
    Released(usize, u32),
}

struct Worker {
    name: String,
    alive: bool,
    born: u64,
    witness: Witness,
}

struct Cell<'a> {
    plan: &'a Plan,
    random: Random,
    table: Table,
    revision: u64,
    workers: Vec<Worker>,
    events: BinaryHeap<Reverse<(u64, Event)>>,
    /// Since when nobody serves a partition.
    unserved: BTreeMap<u32, u64>,
    report: Report,
}

#[derive(Default)]
struct Report {
    /// Seconds without a worker, of each partition that lost its own to a death.
    gaps: Vec<f64>,
    /// The same of partitions that were handed over.
    moves: Vec<f64>,
    /// Seconds that the heirs of a dead worker compute to bring its sessions back.
    replays: Vec<f64>,
    deaths: usize,
    writes: usize,
}

const SECOND: f64 = 1e9;

impl<'a> Cell<'a> {
    fn new(plan: &'a Plan, seed: u64) -> Self {
        let mut cell = Self {
            plan,
            random: Random(seed),
            table: Table::default(),
            revision: 0,
            workers: Vec::new(),
            events: BinaryHeap::new(),
            unserved: BTreeMap::new(),
            report: Report::default(),
        };
        for index in 0..plan.workers {
            cell.workers.push(cell.worker(index, 0));
            cell.born(index, 0);
        }
        cell
    }

    fn worker(&self, index: usize, born: u64) -> Worker {
        let witness = Witness::new(Duration::from_secs_f64(self.plan.lease));
        Worker { name: format!("{index}-{born}"), alive: true, born, witness }
    }

    /// A worker begins to beat, and will die.
    fn born(&mut self, index: usize, now: u64) {
        let phase = self.random.up_to(self.plan.lease / 4.0);
        self.at(now + phase, Event::Beat(index));
        let mean = 3600.0 / self.plan.deaths_per_hour;
        let life = -mean * (1.0 - self.random.share()).ln();
        self.at(now + (life * SECOND) as u64, Event::Death(index));
    }

    fn at(&mut self, time: u64, event: Event) {
        self.events.push(Reverse((time, event)));
    }

    fn run(mut self) -> Report {
        let end = (self.plan.minutes * 60.0 * SECOND) as u64;
        // Who joins at the beginning moves partitions that nobody uses yet.
        let warm = (4.0 * self.plan.lease * SECOND) as u64;
        while let Some(Reverse((now, event))) = self.events.pop()
            && now < end
        {
            let before = (self.report.moves.len(), self.report.gaps.len());
            match event {
                Event::Beat(index) => self.beat(index, now),
                Event::Death(index) => self.death(index, now),
                Event::Birth(index) => {
                    self.workers[index] = self.worker(index, now);
                    self.born(index, now);
                }
                Event::Released(index, partition) => self.released(index, partition, now),
            }
            if now < warm {
                self.report.moves.truncate(before.0);
                self.report.gaps.truncate(before.1);
            }
        }
        self.report
    }

    fn write(&mut self) -> u64 {
        self.report.writes += 1;
        self.revision += 1;
        self.revision
    }

    fn beat(&mut self, index: usize, now: u64) {
        if !self.workers[index].alive {
            return;
        }
        let revision = self.write();
        let worker = &mut self.workers[index];
        let name = worker.name.clone();
        self.table.beats.insert(name.clone(), Line { revision, value: Beat::default() });
        let clock = Duration::from_nanos(now - worker.born);
        let alive: BTreeSet<String> = worker.witness.look(&self.table, clock);
        for action in self.table.actions(&name, self.plan.partitions, &alive) {
            match action {
                Action::Take { partition, revision, .. } => {
                    let line = self.table.leases.get(&partition);
                    if line.map_or(0, |line| line.revision) == revision {
                        self.take(partition, &name, now);
                    }
                }
                Action::Release { partition } => {
                    // Answers in hand are stored within some milliseconds.
                    let time = now + self.random.up_to(0.05);
                    self.at(time, Event::Released(index, partition));
                }
            }
        }
        for worker in self.table.gone(&alive) {
            self.table.beats.remove(&worker);
        }
        // A beat is never exactly on time.
        let period = self.plan.lease / 4.0 * SECOND;
        let late = self.random.up_to(self.plan.lease / 40.0);
        self.at(now + period as u64 + late, Event::Beat(index));
    }

    fn take(&mut self, partition: u32, name: &str, now: u64) {
        let revision = self.write();
        let value = Lease { worker: Some(name.to_owned()), floor: 0 };
        let before = self.table.leases.insert(partition, Line { revision, value });
        if let Some(since) = self.unserved.remove(&partition) {
            let seconds = (now - since) as f64 / SECOND;
            let was_released = before.is_some_and(|line| line.value.worker.is_none());
            let list = if was_released { &mut self.report.moves } else { &mut self.report.gaps };
            list.push(seconds);
        }
    }

    fn released(&mut self, index: usize, partition: u32, now: u64) {
        let name = Some(self.workers[index].name.clone());
        let is_ours =
            self.table.leases.get(&partition).is_some_and(|line| line.value.worker == name);
        if is_ours && self.workers[index].alive {
            let revision = self.write();
            let value = Lease { worker: None, floor: 0 };
            self.table.leases.insert(partition, Line { revision, value });
            self.unserved.insert(partition, now);
        }
    }

    fn death(&mut self, index: usize, now: u64) {
        let worker = &mut self.workers[index];
        if !worker.alive {
            return;
        }
        worker.alive = false;
        let name = Some(worker.name.clone());
        let lost = self.table.leases.iter().filter(|(_, line)| line.value.worker == name);
        let lost: Vec<u32> = lost.map(|(partition, _)| *partition).collect();
        self.unserved.extend(lost.iter().map(|partition| (*partition, now)));
        let alive = self.workers.iter().filter(|worker| worker.alive).count().max(1) as f64;
        let Plan { cells, partitions, sessions, words, words_per_second, cores, .. } = self.plan;
        let orphans = sessions / *cells as f64 / f64::from(*partitions) * lost.len() as f64;
        // The heirs share the work, as they share the partitions.
        let heirs = alive.min(lost.len().max(1) as f64);
        self.report.replays.push(orphans * words / (words_per_second * cores * heirs));
        self.report.deaths += 1;
        // It is started again within half a minute.
        let time = now + self.random.up_to(30.0);
        self.at(time, Event::Birth(index));
    }
}

/// Random numbers, the same for the same seed.
struct Random(u64);

impl Random {
    fn share(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((x ^ (x >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Nanoseconds, up to so many seconds.
    fn up_to(&mut self, seconds: f64) -> u64 {
        (self.share() * seconds * SECOND) as u64
    }
}

fn print(what: &str, seconds: &mut [f64]) {
    seconds.sort_by(f64::total_cmp);
    let Some(last) = seconds.len().checked_sub(1) else { return println!("{what}: none") };
    let at = |share: f64| seconds[(last as f64 * share).round() as usize];
    println!(
        "{what}: {} of them; median {:.2} s, 99 % {:.2} s, longest {:.2} s",
        seconds.len(),
        at(0.5),
        at(0.99),
        at(1.0)
    );
}

fn main() -> ExitCode {
    let plan = match Plan::read(std::env::args().skip(1)) {
        Ok(plan) => plan,
        Err(error) => {
            eprintln!("simulate: {error}");
            return ExitCode::FAILURE;
        }
    };
    let mut all = Report::default();
    for cell in 0..plan.cells {
        let report = Cell::new(&plan, plan.seed.wrapping_mul(1 << 20) + cell as u64).run();
        all.gaps.extend(report.gaps);
        all.moves.extend(report.moves);
        all.replays.extend(report.replays);
        all.deaths += report.deaths;
        all.writes += report.writes;
    }
    let seconds = plan.minutes * 60.0;
    println!(
        "{} cells of {} workers and {} partitions, lease {} s, {} minutes: {} deaths",
        plan.cells, plan.workers, plan.partitions, plan.lease, plan.minutes, all.deaths
    );
    print("partitions without a worker after a death", &mut all.gaps);
    print("partitions handed over", &mut all.moves);
    print("computing to bring the sessions of a dead worker back", &mut all.replays);
    println!(
        "writes to a cell's table: {:.1} a second",
        all.writes as f64 / seconds / plan.cells as f64
    );
    ExitCode::SUCCESS
}
