//! A queue that is fair to clients, and among the connections of a client.
//!
//! Start-time fair queueing (Goyal, Vin and Cheng, 1996), once for clients and once more inside
//! each for its connections: who has had least of the worker is served next, and pays what it cost.
//! Who comes back after a while begins at the time of the others: it owes nothing, and is owed
//! nothing. So work waits for the others' work in hand and for its own, however much others ask
//! for.
//!
//! There are two kinds of work with one account for both. Each kind is asked for by itself, so that
//! it can be computed in batches, and [`FairQueue::is_due`] says which is next.

use std::collections::{BTreeSet, HashMap, VecDeque};

use tapir::batch::Work;

/// Whose work it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Flow {
    pub(crate) client: u64,
    pub(crate) connection: u64,
}

/// Virtual time: units of work that a flow has had.
type Time = u64;

/// An urgent item passes for one that is due so much earlier.
const HEAD_START: Time = 64;

/// Items of flows. Those of one connection come out in the order in which they went in.
pub(crate) struct FairQueue<T> {
    clients: Level<Level<VecDeque<T>>>,
}

impl<T> Default for FairQueue<T> {
    fn default() -> Self {
        Self { clients: Level::default() }
    }
}

impl<T> FairQueue<T> {
    /// Adds an item; an urgent one goes before others of its client that are due a little earlier.
    pub(crate) fn push(&mut self, flow: Flow, work: Work, urgent: bool, item: T) {
        let ahead = if urgent { HEAD_START } else { 0 };
        self.clients.push(flow.client, work, 0, |connections| {
            connections.push(flow.connection, work, ahead, |items| items.push_back(item));
        });
    }

    /// The next item of a kind, and what `cost` says that its flow is charged for it. It stays
    /// where it is if `cost` says nothing.
    pub(crate) fn pop(
        &mut self,
        work: Work,
        cost: impl Fn(&T) -> Option<Time>,
    ) -> Option<(T, Time)> {
        let take = |items: &mut VecDeque<T>| {
            let cost = cost(items.front()?)?;
            let item = items.pop_front()?;
            Some(Taken { item, cost, empty: items.is_empty() })
        };
        let taken = self.clients.pop(work, |connections| {
            let taken = connections.pop(work, take)?;
            Some(Taken { empty: connections.first(work).is_none(), ..taken })
        });
        taken.map(|taken| (taken.item, taken.cost))
    }

    /// Is there an item of the first kind that is due before all of the second?
    pub(crate) fn is_due(&self, work: Work, before: Work) -> bool {
        let Some((time, client)) = self.clients.first(work) else { return false };
        let Some((other, theirs)) = self.clients.first(before) else { return true };
        if client != theirs {
            return time < other;
        }
        let Some(account) = self.clients.accounts.get(&client) else { return false };
        let first = |work| account.queues[lane(work)].first(work).map(|(time, _)| time);
        first(work) < first(before)
    }

    pub(crate) fn is_empty(&self) -> bool {
        [Work::Word, Work::Revision].iter().all(|work| self.clients.first(*work).is_none())
    }
}

/// What came out of a flow's queue.
struct Taken<T> {
    item: T,
    cost: Time,
    /// Nothing of that kind is left in the queue.
    empty: bool,
}

/// Queues that are served by what they have had.
struct Level<Q> {
    accounts: HashMap<u64, Account<Q>>,
    /// For each kind of work, the flows that have some, by when they are due.
    due: [BTreeSet<(Time, u64)>; 2],
    /// When the flow that was due first was due, whenever one was served: virtual time.
    now: Time,
}

/// What a flow waits for, by kind, and when it is due.
struct Account<Q> {
    start: Time,
    queues: [Q; 2],
    /// By how much each kind is due earlier; none if there is nothing of it.
    ahead: [Option<Time>; 2],
}

fn lane(work: Work) -> usize {
    usize::from(work == Work::Revision)
}

impl<Q> Default for Level<Q> {
    fn default() -> Self {
        // Late enough for a head start.
        Self { accounts: HashMap::new(), due: Default::default(), now: HEAD_START }
    }
}

impl<Q: Default> Level<Q> {
    fn first(&self, work: Work) -> Option<(Time, u64)> {
        self.due[lane(work)].first().copied()
    }

    fn push(&mut self, flow: u64, work: Work, ahead: Time, add: impl FnOnce(&mut Q)) {
        let now = self.now;
        let new = || Account { start: now, queues: Default::default(), ahead: [None; 2] };
        let account = self.accounts.entry(flow).or_insert_with(new);
        account.leave(flow, &mut self.due);
        if account.ahead == [None; 2] {
            account.start = account.start.max(now);
        }
        let before = &mut account.ahead[lane(work)];
        *before = Some(before.unwrap_or(0).max(ahead));
        add(&mut account.queues[lane(work)]);
        account.enter(flow, &mut self.due);
    }

    fn pop<T>(
        &mut self,
        work: Work,
        take: impl FnOnce(&mut Q) -> Option<Taken<T>>,
    ) -> Option<Taken<T>> {
        let (_, flow) = self.first(work)?;
        let account = self.accounts.get_mut(&flow)?;
        let taken = take(&mut account.queues[lane(work)])?;
        // Not the time of who is served: a batch may have room for somebody who is not due.
        let first = self.due.iter().filter_map(|due| due.first()).map(|(time, _)| *time).min();
        self.now = self.now.max(first.unwrap_or(0));
        account.leave(flow, &mut self.due);
        account.start += taken.cost;
        // What is urgent is so once.
        account.ahead[lane(work)] = (!taken.empty).then_some(0);
        account.enter(flow, &mut self.due);
        if self.due.iter().all(BTreeSet::is_empty) {
            // Nobody waits: nobody has a claim on anybody.
            self.now = account.start;
        }
        self.forget();
        Some(taken)
    }

    /// Forgets flows that have nothing and owe nothing, now and then.
    fn forget(&mut self) {
        if self.accounts.len() > 2 * (self.due[0].len() + self.due[1].len()) + 64 {
            let now = self.now;
            self.accounts.retain(|_, account| account.start > now || account.ahead != [None; 2]);
        }
    }
}

impl<Q> Account<Q> {
    fn enter(&self, flow: u64, due: &mut [BTreeSet<(Time, u64)>; 2]) {
        for (due, ahead) in due.iter_mut().zip(self.ahead) {
            if let Some(ahead) = ahead {
                due.insert((self.start.saturating_sub(ahead), flow));
            }
        }
    }

    fn leave(&self, flow: u64, due: &mut [BTreeSet<(Time, u64)>; 2]) {
        for (due, ahead) in due.iter_mut().zip(self.ahead) {
            if let Some(ahead) = ahead {
                due.remove(&(self.start.saturating_sub(ahead), flow));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Work::{Revision, Word};
    use super::*;

    fn flow(client: u64, connection: u64) -> Flow {
        Flow { client, connection }
    }

    /// Small letters cost little.
    fn cost(item: char) -> Time {
        if item.is_lowercase() { 6 } else { 128 }
    }

    fn served(queue: &mut FairQueue<char>, count: usize) -> String {
        (0..count)
            .filter_map(|_| queue.pop(Revision, |item| Some(cost(*item))))
            .map(|(item, _)| item)
            .collect()
    }

    /// Two connections that always want a long revision, and urgently.
    fn busy(first: Flow, second: Flow) -> FairQueue<char> {
        let mut queue = FairQueue::default();
        for _ in 0..100 {
            queue.push(first, Revision, true, 'X');
            queue.push(second, Revision, true, 'Y');
        }
        assert_eq!(served(&mut queue, 20).matches('X').count(), 10, "they take turns");
        queue
    }

    #[test]
    fn who_asks_for_little_does_not_wait_for_who_asks_for_much() {
        let mut queue = busy(flow(1, 1), flow(1, 2));
        // The newcomer is served next, and so is what it asks for after that, word after revision.
        for _ in 0..10 {
            queue.push(flow(2, 3), Word, false, 'w');
            assert!(queue.is_due(Word, Revision));
            assert_eq!(queue.pop(Word, |_| Some(1)), Some(('w', 1)));
            queue.push(flow(2, 3), Revision, false, 'a');
            assert_eq!(served(&mut queue, 1), "a");
        }
        // But not for ever.
        for _ in 0..50 {
            queue.push(flow(2, 3), Revision, false, 'a');
        }
        assert!(served(&mut queue, 40).contains(['X', 'Y']));
    }

    #[test]
    fn nor_does_a_connection_wait_for_others_of_its_client() {
        let mut queue = busy(flow(1, 1), flow(1, 2));
        for _ in 0..10 {
            queue.push(flow(1, 3), Word, false, 'w');
            assert!(queue.is_due(Word, Revision));
            assert_eq!(queue.pop(Word, |_| Some(1)), Some(('w', 1)));
            queue.push(flow(1, 3), Revision, false, 'a');
            assert!(served(&mut queue, 2).contains('a'));
        }
    }

    /// A batch of words takes in those of busy clients, which must not make newcomers as late as
    /// they.
    #[test]
    fn words_of_the_busy_do_not_make_newcomers_late() {
        let mut queue = busy(flow(1, 1), flow(2, 2));
        queue.push(flow(1, 1), Word, false, 'w');
        queue.push(flow(3, 3), Revision, false, 'b');
        assert_eq!(queue.pop(Word, |_| Some(1)), Some(('w', 1)));
        queue.push(flow(4, 4), Revision, false, 'a');
        let served = served(&mut queue, 2);
        assert!(served.contains('a') && served.contains('b'), "{served}");
    }

    #[test]
    fn what_is_too_dear_stays() {
        let mut queue = FairQueue::default();
        queue.push(flow(1, 1), Revision, false, 'X');
        assert_eq!(queue.pop(Revision, |_| None), None);
        assert!(queue.pop(Word, |item| Some(cost(*item))).is_none() && !queue.is_empty());
        assert_eq!(served(&mut queue, 2), "X");
        assert!(queue.is_empty() && !queue.is_due(Word, Revision));
    }

    #[test]
    fn what_is_urgent_goes_first_within_a_client() {
        let mut queue = FairQueue::default();
        for connection in 0..10 {
            queue.push(
                flow(1, connection),
                Revision,
                connection == 7,
                char::from(b'a' + connection as u8),
            );
        }
        assert_eq!(served(&mut queue, 2), "ha");
    }

    #[test]
    fn flows_that_are_done_are_forgotten() {
        let mut queue = FairQueue::default();
        for i in 0..10_000 {
            queue.push(flow(i, i), Word, false, 'w');
            assert!(queue.pop(Word, |item| Some(cost(*item))).is_some());
        }
        assert!(queue.is_empty() && queue.clients.accounts.len() < 200);
    }

    proptest! {
        /// Nothing is lost, connections keep their order, and as long as two clients have work,
        /// what they have had differs by no more than one item of each.
        #[test]
        fn shares_are_equal(
            items in proptest::collection::vec((0u64..3, 0u64..3, 1u64..200, any::<bool>()), 1..300),
        ) {
            let mut queue = FairQueue::default();
            for (index, &(client, connection, cost, urgent)) in items.iter().enumerate() {
                let item = (index, client, connection, cost);
                queue.push(flow(client, connection), Revision, urgent, item);
            }
            let mut left = [0u64; 3];
            items.iter().for_each(|&(client, ..)| left[client as usize] += 1);
            let mut had = [0u64; 3];
            let mut last: HashMap<(u64, u64), usize> = HashMap::new();
            while let Some(((index, client, connection, _), cost)) =
                queue.pop(Revision, |item| Some(item.3))
            {
                had[client as usize] += cost;
                left[client as usize] -= 1;
                if let Some(before) = last.insert((client, connection), index) {
                    prop_assert!(before < index);
                }
                for a in 0..3 {
                    for b in 0..3 {
                        if left[a] > 0 && left[b] > 0 {
                            prop_assert!(had[a] <= had[b] + 200);
                        }
                    }
                }
            }
            prop_assert_eq!(left, [0; 3]);
        }
    }
}
