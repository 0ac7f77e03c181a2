//! What a soak found.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Serialize;

use super::WellBehaved;
use crate::hostile::Attacked;
use crate::load::PROMISE;
use crate::speaker::Seen;
use tapir_eval::Percentiles;

/// The most that the 99th percentile of a text of six words may take, milliseconds.
const TAG_PROMISE: f64 = 250.0;
/// Memory may grow by so much of itself.
const GROWTH: f64 = 0.05;
/// What a server needs has grown after so many minutes; in shorter runs, after a third.
const GROWN: f64 = 10.0;
/// Runs from which on that is so, minutes.
const LONG: f64 = 12.0;

/// What was run and what came of it.
#[derive(Clone, Debug, Serialize)]
pub struct SoakReport {
    /// When it began, seconds since 1970.
    pub started: u64,
    /// How long all of it took.
    pub seconds: f64,
    /// What was run.
    pub settings: SoakSettings,
    /// What was promised, and whether it was kept.
    pub bounds: Vec<Bound>,
    /// Of the whole run.
    pub totals: Totals,
    /// What the hostile clients did, by kind.
    pub hostile: Vec<Attacked>,
    /// Minute by minute; the last one may be shorter.
    pub minutes: Vec<Minute>,
}

/// What was run.
#[derive(Clone, Debug, Serialize)]
pub struct SoakSettings {
    /// What the server was started with.
    pub arguments: Vec<String>,
    /// For how long.
    pub minutes: f64,
    /// Well-behaved streams.
    pub streams: usize,
    /// Words a second of each.
    pub words_per_second: f64,
    /// Texts of six words a second.
    pub tags_per_second: f64,
}

/// A promise.
#[derive(Clone, Debug, Serialize)]
pub struct Bound {
    /// What is promised.
    pub name: &'static str,
    /// What was measured.
    pub measured: f64,
    /// The most that it may be.
    pub limit: f64,
    /// Was it kept?
    pub passed: bool,
}

/// What the well-behaved saw in the whole run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Totals {
    /// Words that were answered.
    pub words: usize,
    /// Share of them at which the policy revised.
    pub revised: f64,
    /// Sentences whose labels were compared with those of a session of our own.
    pub compared: usize,
    /// Differences, missing answers, refusals and lost streams.
    pub errors: usize,
    /// What the first one was.
    pub error: Option<String>,
    /// Milliseconds from when a word was due to its first answer.
    pub first: Percentiles,
    /// Milliseconds from when a word was due to its last answer.
    pub last: Percentiles,
    /// Milliseconds of a text of six words over a connection that stays open.
    pub tag_kept: Percentiles,
    /// Milliseconds of a text of six words over a connection of its own, which is made first.
    pub tag_fresh: Percentiles,
    /// Both.
    pub tag: Percentiles,
    /// Milliseconds that the generator woke up late, which are in all of the above.
    pub late: Percentiles,
    /// The server's memory, bytes.
    pub memory_max: u64,
    /// What the server said about itself after all clients had gone; none if it did not answer.
    pub left: Option<Gauges>,
    /// Seconds until it had forgotten them all; none if it did not.
    pub settled: Option<f64>,
}

/// A minute.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Minute {
    /// Which one, from 1.
    pub minute: usize,
    /// Words that were answered.
    pub words: usize,
    /// Milliseconds from when a word was due to its first answer.
    pub first: Percentiles,
    /// Milliseconds of a text of six words.
    pub tag: Percentiles,
    /// Differences, missing answers, refusals and lost streams.
    pub errors: usize,
    /// What the first one was.
    pub error: Option<String>,
    /// The server's memory, bytes.
    pub memory_mean: u64,
    /// The server's memory, bytes.
    pub memory_max: u64,
    /// The most that the server said about itself.
    pub gauges: Gauges,
    /// Milliseconds that the generator woke up late.
    pub late: Percentiles,
}

/// What a server says about itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Gauges {
    /// Sessions that are open.
    pub sessions: i64,
    /// Streams that are connected.
    pub connections: i64,
    /// Messages that are not answered yet.
    pub queue: i64,
}

impl Gauges {
    pub(super) fn max(self, other: Self) -> Self {
        Self {
            sessions: self.sessions.max(other.sessions),
            connections: self.connections.max(other.connections),
            queue: self.queue.max(other.queue),
        }
    }
}

impl SoakReport {
    /// Were all promises kept?
    pub fn passed(&self) -> bool {
        self.bounds.iter().all(|bound| bound.passed)
    }
}

/// What was seen so far.
#[derive(Default)]
pub(super) struct Rows {
    minutes: Vec<Minute>,
    /// Seconds since the start, and bytes.
    memory: Vec<(f64, u64)>,
    /// How many of them belong to minutes that are over.
    told: usize,
    streams: Seen,
    kept: Vec<f64>,
    fresh: Vec<f64>,
    late: Vec<f64>,
}

impl Rows {
    pub(super) fn memory(&mut self, second: f64, bytes: u64) {
        self.memory.push((second, bytes));
    }

    /// Ends a minute.
    pub(super) fn minute(&mut self, seen: &WellBehaved, gauges: Gauges) -> &Minute {
        let streams = seen.streams.take();
        let (kept, fresh) = (seen.kept.take(), seen.fresh.take());
        let (watch, late) = (seen.watch.take(), seen.late.take());
        let errors = streams.errors + kept.errors + fresh.errors + watch.errors;
        let error = streams.error.or(kept.error).or(fresh.error).or(watch.error);
        let memory: Vec<u64> = self.memory[self.told..].iter().map(|(_, bytes)| *bytes).collect();
        self.told = self.memory.len();
        let minute = Minute {
            minute: self.minutes.len() + 1,
            words: streams.words,
            first: Percentiles::of(streams.first.clone()),
            tag: Percentiles::of([&kept.first[..], &fresh.first].concat()),
            errors,
            error: error.clone(),
            memory_mean: memory.iter().sum::<u64>() / memory.len().max(1) as u64,
            memory_max: memory.iter().copied().max().unwrap_or_default(),
            gauges,
            late: Percentiles::of(late.first.clone()),
        };
        self.streams.words += streams.words;
        self.streams.revised += streams.revised;
        self.streams.compared += streams.compared;
        self.streams.errors += errors;
        if self.streams.error.is_none() {
            self.streams.error = error;
        }
        self.streams.first.extend(streams.first);
        self.streams.last.extend(streams.last);
        self.kept.extend(kept.first);
        self.fresh.extend(fresh.first);
        self.late.extend(late.first);
        self.minutes.push(minute);
        &self.minutes[self.minutes.len() - 1]
    }

    /// Ends the run.
    pub(super) fn report(
        self,
        settings: SoakSettings,
        started: SystemTime,
        took: Duration,
        hostile: Vec<Attacked>,
        left: Option<Gauges>,
        settled: Option<f64>,
    ) -> SoakReport {
        let totals = Totals {
            words: self.streams.words,
            revised: self.streams.revised as f64 / self.streams.words.max(1) as f64,
            compared: self.streams.compared,
            errors: self.streams.errors,
            error: self.streams.error,
            first: Percentiles::of(self.streams.first),
            last: Percentiles::of(self.streams.last),
            tag: Percentiles::of([&self.kept[..], &self.fresh].concat()),
            tag_kept: Percentiles::of(self.kept),
            tag_fresh: Percentiles::of(self.fresh),
            late: Percentiles::of(self.late),
            memory_max: self.memory.iter().map(|(_, bytes)| *bytes).max().unwrap_or_default(),
            left,
            settled,
        };
        let idle = hostile.iter().filter(|attacked| !attacked.got_to_work()).count();
        let left = left.map_or(f64::INFINITY, |Gauges { sessions, connections, queue }| {
            (sessions.abs() + connections.abs() + queue.abs()) as f64
        });
        let silent = if totals.words == 0 || totals.compared == 0 { 1.0 } else { 0.0 };
        let below =
            |name, measured: f64, limit| Bound { name, measured, limit, passed: measured < limit };
        let none =
            |name, measured: f64| Bound { name, measured, limit: 0.0, passed: measured == 0.0 };
        let bounds = vec![
            none("errors", totals.errors as f64),
            below("first answer, 99 %, ms", totals.first.p99, PROMISE),
            below("six words tagged, 99 %, ms", totals.tag.p99, TAG_PROMISE),
            below("growth of memory", growth(&self.memory, settings.minutes), GROWTH),
            none("gauges left after the last client", left),
            none("kinds that did not attack", idle as f64),
            none("well-behaved that were not heard", silent),
        ];
        SoakReport {
            started: started.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
            seconds: took.as_secs_f64(),
            settings,
            bounds,
            totals,
            hostile,
            minutes: self.minutes,
        }
    }
}

/// By how much of itself the memory grew, at its largest, once it was as large as it needs to be.
/// A run of some minutes is cut into minutes, a shorter one into twelve parts, and the mean of
/// each counts: a moment may be anything. Without any figure nothing can be promised.
fn growth(memory: &[(f64, u64)], minutes: f64) -> f64 {
    let (part, grown) = if minutes >= LONG { (60.0, GROWN) } else { (5.0 * minutes, 5.0) };
    let mut sums: Vec<(f64, f64)> = Vec::new();
    // From the start of the tenth minute on, or of the part that ends the first third.
    for (second, bytes) in memory {
        let index = (second / part - (grown - 1.0)).floor();
        if index >= 0.0 {
            let index = index as usize;
            if sums.len() <= index {
                sums.resize(index + 1, (0.0, 0.0));
            }
            sums[index].0 += *bytes as f64;
            sums[index].1 += 1.0;
        }
    }
    let means: Vec<f64> =
        sums.iter().filter(|(_, count)| *count > 0.0).map(|(sum, count)| sum / count).collect();
    let largest = means.iter().copied().fold(0.0, f64::max);
    means.first().map_or(f64::INFINITY, |first| largest / first - 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_counts_from_the_tenth_minute_on() {
        let of = |minutes: usize, bytes: &dyn Fn(usize) -> u64| {
            let memory: Vec<_> = (0..60 * minutes).map(|s| (s as f64, bytes(s))).collect();
            growth(&memory, minutes as f64)
        };
        // What grows before is what the server needs, and one second is nothing.
        assert!(of(30, &|second| 1000 * second.min(540) as u64) < 0.01);
        assert!(of(30, &|second| if second == 1000 { 1500 } else { 1000 }) < 0.01);
        // A leak is seen: it doubles from the tenth minute to the twentieth.
        assert!((of(20, &|second| 1000 * second as u64) - 1.0).abs() < 0.1);
        // A short run counts from its first third on.
        assert!(of(3, &|second| 1000 * second.min(60) as u64) < 0.01);
        assert!(of(3, &|second| 1000 * second as u64) > 1.0);
        assert!(growth(&[], 30.0) > GROWTH);
    }
}
