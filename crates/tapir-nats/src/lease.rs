//! Who serves which partition: a rule that every worker follows by itself.
//!
//! A worker beats: it writes its own line of a table, again and again. A partition belongs to the
//! worker that its line names, as long as that worker beats. Everybody sees the whole table, takes
//! what nobody serves up to an even share, and gives up what is above its share, or what another
//! lacks. Two that want the same line write it against the revision they saw, so that one of them
//! fails.
//!
//! Clocks are never compared: a worker is dead when a whole lease has passed *here* without a
//! change of its line.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The line of a partition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// Who serves it; nobody after it was given up.
    pub worker: Option<String>,
    /// All its messages up to this one were answered when the line was written.
    pub floor: u64,
}

/// The line of a worker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beat {
    /// Of each partition that it serves: all messages up to this one are answered.
    pub floors: BTreeMap<u32, u64>,
    /// It takes no partition any more.
    pub leaving: bool,
}

/// A line as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line<T> {
    /// Which change of the table wrote it.
    pub revision: u64,
    /// What it says.
    pub value: T,
}

/// All lines.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// Those of partitions; one that was never served has none.
    pub leases: BTreeMap<u32, Line<Lease>>,
    /// Those of workers.
    pub beats: BTreeMap<String, Line<Beat>>,
}

/// When each worker's line was last seen to change.
#[derive(Clone, Debug)]
pub struct Witness {
    lease: Duration,
    seen: BTreeMap<String, (u64, Duration)>,
}

/// What a worker is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Take a partition by writing its line against this revision; go on behind this message.
    Take {
        /// Which one.
        partition: u32,
        /// The revision of its line; 0 if it has none.
        revision: u64,
        /// Where it was left.
        floor: u64,
    },
    /// Give one up.
    Release {
        /// Which one.
        partition: u32,
    },
}

impl Witness {
    /// Somebody who has not seen anything yet.
    pub fn new(lease: Duration) -> Self {
        Self { lease, seen: BTreeMap::new() }
    }

    /// Looks at the table, at a time of our own clock, and says who is alive.
    pub fn look(&mut self, table: &Table, now: Duration) -> BTreeSet<String> {
        self.seen.retain(|worker, _| table.beats.contains_key(worker));
        for (worker, line) in &table.beats {
            let seen = self.seen.entry(worker.clone()).or_insert((line.revision, now));
            if seen.0 != line.revision {
                *seen = (line.revision, now);
            }
        }
        let is_alive = |since: Duration| now.saturating_sub(since) < self.lease;
        let alive = self.seen.iter().filter(|(_, (_, since))| is_alive(*since));
        alive.map(|(worker, _)| worker.clone()).collect()
    }
}

impl Table {
    /// What a worker is to do, if these are alive.
    ///
    /// ```
    /// use tapir_nats::lease::{Action, Table};
    /// let alive = ["a".to_owned(), "b".to_owned()].into();
    /// // Nobody serves anything yet: each of two takes half.
    /// assert_eq!(Table::default().actions("a", 8, &alive).len(), 4);
    /// ```
    pub fn actions(&self, me: &str, partitions: u32, alive: &BTreeSet<String>) -> Vec<Action> {
        let is_leaving =
            |worker: &str| self.beats.get(worker).is_some_and(|line| line.value.leaving);
        let takers: Vec<&str> =
            alive.iter().map(String::as_str).filter(|worker| !is_leaving(worker)).collect();
        let owner = |partition: &u32| self.leases.get(partition)?.value.worker.as_deref();
        let mut loads: BTreeMap<&str, usize> = takers.iter().map(|taker| (*taker, 0)).collect();
        for owner in (0..partitions).filter_map(|partition| owner(&partition)) {
            loads.entry(owner).and_modify(|load| *load += 1);
        }
        let mine: Vec<u32> =
            (0..partitions).filter(|partition| owner(partition) == Some(me)).collect();
        let release = |partition: &u32| Action::Release { partition: *partition };
        let Some(rank) = takers.iter().position(|taker| *taker == me) else {
            // Who leaves gives up all.
            return mine.iter().map(release).collect();
        };
        let (least, most) =
            (partitions as usize / takers.len(), (partitions as usize).div_ceil(takers.len()));
        if mine.len() > most {
            return mine[most..].iter().map(release).collect();
        }
        let is_free = |partition: &u32| owner(partition).is_none_or(|owner| !alive.contains(owner));
        let mut free: Vec<u32> = (0..partitions).filter(is_free).collect();
        // Somebody has less than everybody can have: those with more give up one each, as many as
        // are wanted.
        let wanted: usize = loads.values().map(|load| least.saturating_sub(*load)).sum();
        let mut donors = loads.iter().filter(|(_, load)| **load > least).map(|(taker, _)| *taker);
        if let Some(turn) = donors.position(|donor| donor == me)
            && turn + free.len() < wanted
        {
            return mine.last().map(release).into_iter().collect();
        }
        // Each begins elsewhere, so that few want the same.
        let begin = rank * free.len() / takers.len();
        free.rotate_left(begin);
        let mut room = most - mine.len();
        let mut room_for_given = if wanted > 0 { least.saturating_sub(mine.len()) } else { room };
        free.retain(|partition| {
            // What was given up is for those who want it.
            let was_given = self.leases.contains_key(partition) && owner(partition).is_none();
            let takes = room > 0 && (!was_given || room_for_given > 0);
            if takes {
                room -= 1;
                room_for_given = room_for_given.saturating_sub(1);
            }
            takes
        });
        free.into_iter().map(|partition| self.take(partition)).collect()
    }

    fn take(&self, partition: u32) -> Action {
        let Some(line) = self.leases.get(&partition) else {
            return Action::Take { partition, revision: 0, floor: 0 };
        };
        // Its worker may have come further since it wrote the line.
        let beat = line.value.worker.as_ref().and_then(|worker| self.beats.get(worker));
        let reached = beat.and_then(|line| line.value.floors.get(&partition)).copied();
        let floor = line.value.floor.max(reached.unwrap_or_default());
        Action::Take { partition, revision: line.revision, floor }
    }

    /// Workers that are dead and serve nothing: their lines can go.
    pub fn gone(&self, alive: &BTreeSet<String>) -> Vec<String> {
        let serves = |worker: &String| {
            self.leases.values().any(|line| line.value.worker.as_ref() == Some(worker))
        };
        let dead = self.beats.keys().filter(|worker| !alive.contains(*worker));
        dead.filter(|worker| !serves(worker)).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn line<T>(revision: u64, value: T) -> Line<T> {
        Line { revision, value }
    }

    /// Does what a worker was told, as the broker would: a revision that has changed fails.
    fn obey(table: &mut Table, me: &str, actions: Vec<Action>, revision: &mut u64) {
        for action in actions {
            *revision += 1;
            let (partition, expected, lease) = match action {
                Action::Take { partition, revision, floor } => {
                    (partition, revision, Lease { worker: Some(me.into()), floor })
                }
                Action::Release { partition } => {
                    let line = &table.leases[&partition];
                    (partition, line.revision, Lease { worker: None, floor: line.value.floor })
                }
            };
            if table.leases.get(&partition).map_or(0, |line| line.revision) == expected {
                table.leases.insert(partition, line(*revision, lease));
            }
        }
    }

    fn loads(table: &Table) -> BTreeMap<String, usize> {
        let mut loads = BTreeMap::new();
        for owner in table.leases.values().filter_map(|line| line.value.worker.clone()) {
            *loads.entry(owner).or_default() += 1;
        }
        loads
    }

    /// Rounds in which every live worker beats, looks at one and the same table, and acts.
    fn rounds(table: &mut Table, workers: &[&str], partitions: u32, count: usize) {
        let mut revision =
            1000 + table.leases.values().map(|line| line.revision).max().unwrap_or(0);
        for _ in 0..count {
            let alive: BTreeSet<String> = workers.iter().map(ToString::to_string).collect();
            let before = table.clone();
            for worker in workers {
                obey(table, worker, before.actions(worker, partitions, &alive), &mut revision);
            }
        }
    }

    #[test]
    fn partitions_are_shared_evenly_and_move_as_workers_come_and_go() {
        let mut table = Table::default();
        rounds(&mut table, &["a"], 16, 3);
        assert_eq!(loads(&table), [("a".to_owned(), 16)].into());
        rounds(&mut table, &["a", "b", "c"], 16, 6);
        let shares: Vec<usize> = loads(&table).into_values().collect();
        assert_eq!(shares.iter().sum::<usize>(), 16);
        assert!(shares.len() == 3 && shares.iter().all(|share| *share <= 6), "{shares:?}");
        // Nothing moves any more.
        let settled = table.leases.clone();
        rounds(&mut table, &["a", "b", "c"], 16, 3);
        assert_eq!(table.leases, settled);
        // `b` dies.
        rounds(&mut table, &["a", "c"], 16, 6);
        assert_eq!(loads(&table), [("a".to_owned(), 8), ("c".to_owned(), 8)].into());
    }

    /// 64 partitions for 20 workers: everybody has three or four, also who comes back.
    #[test]
    fn who_comes_back_gets_a_share() {
        let names: Vec<String> = (0..20).map(|index| format!("w{index:02}")).collect();
        let all: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut table = Table::default();
        rounds(&mut table, &all, 64, 8);
        let is_even = |table: &Table| {
            let loads = loads(table);
            loads.len() == 20 && loads.values().all(|load| (3..=4).contains(load))
        };
        assert!(is_even(&table), "{:?}", loads(&table));
        for dead in 0..5 {
            let others: Vec<&str> = all.iter().copied().filter(|name| *name != all[dead]).collect();
            rounds(&mut table, &others, 64, 8);
            assert_eq!(loads(&table).values().sum::<usize>(), 64);
            assert!(!loads(&table).contains_key(all[dead]));
            rounds(&mut table, &all, 64, 8);
            assert!(is_even(&table), "{:?}", loads(&table));
        }
        let settled = table.leases.clone();
        rounds(&mut table, &all, 64, 3);
        assert_eq!(table.leases, settled, "nothing moves any more");
    }

    #[test]
    fn a_worker_that_leaves_gives_up_all() {
        let mut table = Table::default();
        rounds(&mut table, &["a", "b"], 4, 3);
        let leaving = Beat { leaving: true, ..Beat::default() };
        table.beats.insert("a".into(), line(1, leaving));
        rounds(&mut table, &["a", "b"], 4, 4);
        assert_eq!(loads(&table), [("b".to_owned(), 4)].into());
    }

    #[test]
    fn a_partition_goes_on_where_its_dead_worker_was() {
        let mut table = Table::default();
        table.leases.insert(0, line(7, Lease { worker: Some("dead".into()), floor: 10 }));
        let floors = [(0, 25)].into();
        table.beats.insert("dead".into(), line(9, Beat { floors, leaving: false }));
        let alive = ["me".to_owned()].into();
        let action = Action::Take { partition: 0, revision: 7, floor: 25 };
        assert_eq!(table.actions("me", 1, &alive), [action]);
        assert!(table.gone(&alive).is_empty(), "its line says where it was");
        table.leases.insert(0, line(10, Lease { worker: Some("me".into()), floor: 25 }));
        assert_eq!(table.gone(&alive), ["dead"]);
    }

    #[test]
    fn who_does_not_beat_for_a_lease_is_dead() {
        let mut table = Table::default();
        let mut witness = Witness::new(2 * SECOND);
        table.beats.insert("a".into(), line(1, Beat::default()));
        // A worker that was never seen before has the time of a lease, whenever it last beat.
        assert!(witness.look(&table, 100 * SECOND).contains("a"));
        assert!(witness.look(&table, 101 * SECOND).contains("a"));
        table.beats.insert("a".into(), line(2, Beat::default()));
        assert!(witness.look(&table, 102 * SECOND).contains("a"));
        assert!(witness.look(&table, 103 * SECOND).contains("a"));
        assert!(!witness.look(&table, 104 * SECOND).contains("a"));
    }
}
